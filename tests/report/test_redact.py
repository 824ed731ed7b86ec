"""Redaction: planted secrets appear neither in the page nor in its data."""

import json

import numpy as np
import pandas as pd
import pytest

from shoal import DomainMixture
from shoal.analysis.diagnose import diagnose
from shoal.report import render, summarize

SECRET = "Zebedee"
QUICK = {
    "n_permutations": 2,
    "n_simulations": 2,
    "n_restarts": 0,
    "random_state": 0,
}


def leaks(summary) -> list[str]:
    """Places where the secret can be read, in any case of letters."""
    texts = {"json": json.dumps(summary), "page": render(summary)}
    return [name for name, text in texts.items() if SECRET.lower() in text.lower()]


def picture(row: int):
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    image[..., 0] = row % 256
    return image


@pytest.fixture(scope="module")
def planted():
    """A table with a secret in every place where one can be."""
    rng = np.random.default_rng(0)
    n = 240
    domains = np.repeat(["north", "south", f"{SECRET}ville"], [117, 117, 6])
    labels = np.where(rng.random(n) < np.where(domains == "north", 0.8, 0.3), "a", "b")
    X = rng.normal(size=(n, 3)) + 3 * (labels == "a")[:, None]
    rare = np.zeros(n)
    rare[[3, 150]] = 1
    frame = pd.DataFrame(
        np.column_stack([X, rare]), columns=["x0", "x1", "x2", f"city = {SECRET}"]
    )
    model = DomainMixture(2, search=False, random_state=0).fit(frame, domains)
    labels = labels.astype(object)
    labels[:3] = f"{SECRET}itis"
    settings = {
        "frame": pd.DataFrame({"note": [f"written by {SECRET}"] * n}),
        "ids": [f"{SECRET}-{row}" for row in range(n)],
        "labels": labels,
        "diagnosis": diagnose(model, frame, domains, **QUICK),
        "groups": {"north": "up", "south": "down", f"{SECRET}ville": f"of {SECRET}"},
        "columns": [{"name": "who", "role": "id", "reason": f"as in {SECRET}"}],
        "source": {"path": f"/home/{SECRET}/a.csv", "paths": [SECRET], "rows": n},
        "command": f"shoal fit /home/{SECRET}/a.csv --out {SECRET}",
        "images": picture,
    }
    return model, frame, domains, settings


def test_the_secrets_are_there_without_redaction(planted):
    model, frame, domains, settings = planted
    assert leaks(summarize(model, frame, domains, **settings)) == ["json", "page"]


def test_no_secret_survives(planted):
    model, frame, domains, settings = planted
    summary = summarize(model, frame, domains, redact=True, **settings)
    assert leaks(summary) == []
    page = render(summary)
    assert "data:image" not in page
    assert not summary["maps"]
    assert all(
        not card["exemplars"] and not card["borderline"] for card in summary["cards"]
    )
    assert "Redacted:" in page


def test_what_is_common_keeps_its_name(planted):
    model, frame, domains, settings = planted
    summary = summarize(model, frame, domains, redact=True, **settings)
    assert [d["name"] for d in summary["domains"]] == [
        "rare domain 0",
        "north",
        "south",
    ]
    assert set(summary["score"]["labels"]) == {"a", "b", "rare labels"}
    features = {f["feature"] for card in summary["cards"] for f in card["features"]}
    assert features == {"x0", "x1", "x2", "rare value 3"}
    assert [group["group"] for group in summary["groups"]] == [
        "down",
        "rare group 0",
        "up",
    ]
    full = summarize(model, frame, domains, **settings)
    assert summary["prevalence"] == full["prevalence"]


@pytest.mark.parametrize("kind", ["counts", "text"])
def test_no_word_survives(texts, kind):
    model, counts, towns, frame = texts
    words = [f"{SECRET}{index}" for index in range(counts.shape[1])]
    frame = frame.assign(text=frame["text"] + f" {SECRET}")
    settings = {"feature_names": words, "frame": frame, "kind": kind}
    assert leaks(summarize(model, counts, towns, **settings)) == ["json", "page"]
    assert leaks(summarize(model, counts, towns, redact=True, **settings)) == []


def test_words_hide_in_findings_too():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 100)
    share = np.where(rng.random(200) < np.where(domains == "a", 0.8, 0.2), 6.0, 1.0)
    counts = rng.poisson(np.column_stack([share, 7 - share, np.full(200, 2.0)]))
    words = pd.DataFrame(counts, columns=[f"{SECRET}{index}" for index in range(3)])
    model = DomainMixture(2, search=False, random_state=0).fit(words, domains)
    diagnosis = diagnose(model, words, domains, **QUICK)
    settings = {"kind": "text", "diagnosis": diagnosis}
    assert leaks(summarize(model, words, domains, **settings)) == ["json", "page"]
    assert leaks(summarize(model, words, domains, redact=True, **settings)) == []


def test_sparse_indicators_are_rare_too():
    from scipy import sparse

    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 50)
    X = rng.normal(size=(100, 2)) + (rng.random(100) < 0.5)[:, None] * 3
    flags = np.zeros((100, 2))
    flags[:3, 0] = 1
    flags[:40, 1] = 1
    wide = sparse.csr_array(np.hstack([X, flags]))
    model = DomainMixture(2, search=False, random_state=0).fit(wide, domains)
    names = ["u", "v", f"is {SECRET}", "is tall"]
    summary = summarize(model, wide, domains, feature_names=names, redact=True)
    assert leaks(summary) == []
    shown = {f["feature"] for card in summary["cards"] for f in card["features"]}
    assert shown == {"u", "v", "rare value 2", "is tall"}
