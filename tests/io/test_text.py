from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.exceptions import InputError
from shoal.io import batches, read
from shoal.io.table._words import count_words, learn_vocabulary

SENTENCES = {
    "sport": [
        "The team won the match",
        "A late goal won the game",
        "The match was lost",
    ],
    "food": ["Bake the bread slowly", "The soup needs salt", "Salt the bread, bake it"],
}


def reference_counts(texts: list[str], vocabulary: tuple[str, ...]) -> Any:
    """Words counted letter by letter, without a regular expression."""
    table = np.zeros((len(texts), len(vocabulary)))
    for row, text in enumerate(texts):
        cells = "".join(c if c.isalnum() else " " for c in text.lower())
        for word in cells.split():
            if word in vocabulary:
                table[row, vocabulary.index(word)] += 1
    return table


def test_counts_against_a_slow_reference() -> None:
    texts = ["Übung macht den Meister", "den DEN übung", "x 7 b2b, meister-meister", ""]
    vocabulary = learn_vocabulary(texts)
    assert vocabulary == ("den", "meister", "übung")
    np.testing.assert_array_equal(
        count_words(texts, vocabulary).toarray(), reference_counts(texts, vocabulary)
    )


def test_words_with_digits_are_words() -> None:
    texts = ["ICD J45.9 2024", "HbA1c 7 B12", "j45 b12 2024", "hba1c 10 7 mg", "x1_"]
    vocabulary = learn_vocabulary(texts)
    assert vocabulary == ("b12", "hba1c", "j45")
    np.testing.assert_array_equal(
        count_words(texts, vocabulary).toarray(), reference_counts(texts, vocabulary)
    )


def test_the_stated_rules_of_the_vocabulary() -> None:
    texts = ["common rare", "common twice", "common twice", "common", "b"]
    assert learn_vocabulary(texts) == ("twice",)
    many = [
        f"w{chr(97 + n % 26)}{chr(97 + n // 26)} " * (1 + n % 3) for n in range(600)
    ]
    assert len(learn_vocabulary(many * 2)) == 600
    words = ["".join(chr(97 + int(d)) for d in f"{n:05d}") for n in range(21_000)]
    assert len(learn_vocabulary(words * 2)) == 20_000


@pytest.mark.parametrize(
    ("texts", "silent", "said"),
    [
        (["the soup of the cook", "and the match was won"] * 100, "the", "soup"),
        (["der Löffel und die Suppe", "das Spiel ist aus"] * 100, "und", "suppe"),
        (["le chat et la soupe", "une partie de la ville"] * 100, "et", "soupe"),
    ],
)
def test_function_words_of_the_language_are_left_out(texts, silent, said) -> None:
    found = learn_vocabulary([*texts, *["w1 w2 w3"] * 250])
    assert silent not in found
    assert said in found
    few = learn_vocabulary([*texts[:6], *["w1 w2 w3"] * 10])
    assert silent in few  # so few words tell no language


def test_a_text_column() -> None:
    rng = np.random.default_rng(0)
    site = rng.choice(["a", "b"], 200)
    kind = np.where(rng.random(200) < np.where(site == "a", 0.8, 0.2), "sport", "food")
    text = [rng.choice(SENTENCES[one]) for one in kind]
    frame = pd.DataFrame({"site": site, "note": text, "size": rng.normal(size=200)})
    table = read(frame, domain="site", text="note")
    assert table.kind == "text"
    assert table.X.shape[1] == len(table.feature_names)
    np.testing.assert_array_equal(
        table.X.toarray(), reference_counts(text, table.schema.vocabulary)
    )
    assert {column.name: column.role for column in table.columns} == {
        "site": "domain", "note": "feature", "size": "set aside",
    }  # fmt: skip
    again = np.concatenate(
        [piece.X.toarray() for piece in batches(frame, table.schema, batch_rows=90)]
    )
    np.testing.assert_array_equal(again, table.X.toarray())
    model = shoal.DomainMixture(2, search=False, random_state=0)
    model.fit(table.X, table.domains)
    sports = model.predict(table.X) == model.predict(table.X[kind == "sport"])[0]
    assert max((sports == (kind == "sport")).mean(), 1 - sports.mean()) > 0.9


def test_texts_without_a_known_word() -> None:
    frame = pd.DataFrame({"site": list("ab") * 20, "note": ["one two", "two six"] * 20})
    frame.loc[3, "note"] = None
    frame.loc[5, "note"] = "zzz"
    table = read(frame, domain="site", text="note", merge_small=None)
    assert "W143" in [message.code for message in table.messages]
    message = next(one for one in table.messages if one.code == "W143")
    assert "2 texts" in message.text
    assert "first: row 4" in message.text


def test_no_words_at_all() -> None:
    frame = pd.DataFrame({"site": list("ab") * 20, "note": ["1 2 3", "4 5"] * 20})
    with pytest.raises(InputError, match='"note" has 0 words') as caught:
        read(frame, domain="site", text="note")
    assert caught.value.code == "E114"


def make_folder(root: Path) -> None:
    for domain in ("east", "west"):
        for kind, sentences in SENTENCES.items():
            for number, sentence in enumerate(sentences * 5):
                path = root / domain / kind / f"{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(sentence, encoding="utf-8")


def test_a_folder_of_texts(tmp_path: Path) -> None:
    make_folder(tmp_path)
    table = read(tmp_path)
    assert table.kind == "text"
    assert sorted(set(table.domains)) == ["east", "west"]
    assert table.ids[0] == "east/food/0.txt"
    assert table.X.shape[0] == 60
    pieces = list(batches(tmp_path, table.schema, batch_rows=40))
    assert [piece.n_rows for piece in pieces] == [40, 20]
    assert set(pieces[1].domains) == {"west"}


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images or texts below") as caught:
        read(tmp_path)
    assert caught.value.code == "E101"


def test_a_text_that_is_not_utf8(tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "east" / "food" / "0.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match='0.txt" is not UTF-8') as caught:
        read(tmp_path)
    assert caught.value.code == "E143"
