"""What others add to shoal, they add in one file of theirs and one registration."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal.io
from shoal import choose_n_classes
from shoal.analysis.diagnose import CHECKS, Finding
from shoal.base import LatentShiftEstimator
from shoal.datasets import make_latent_shift
from shoal.io.extend import MODELS, Content, Format, register
from shoal.io.source._open import FORMATS
from shoal.metrics import matched_accuracy
from shoal.probability import class_posterior, normalize_rows
from shoal.report import render, summarize
from shoal.stages.factorize import factorize
from shoal.validation import check_X_domains, resolve_domain_weight

# ---- a format ------------------------------------------------------------------------


def read_lines(path, options):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return Content(frame=pd.DataFrame(rows))


@pytest.fixture
def lines(tmp_path):
    """A file of a format that shoal does not know, and the table that it holds."""
    frame = pd.DataFrame(
        {"size": np.arange(40) + 0.5, "site": np.resize(["a", "b"], 40)}
    )
    path = tmp_path / "rows.lines"
    path.write_text(frame.to_json(orient="records", lines=True))
    with pytest.raises(shoal.exceptions.InputError, match="cannot tell the format"):
        shoal.io.read(path, domain="site")
    yield path, frame
    FORMATS.pop("lines", None)


def test_a_format(lines):
    path, frame = lines
    register(Format("lines", (".lines",), read=read_lines))
    table, expected = (shoal.io.read(one, domain="site") for one in lines)
    assert_array_equal(table.X, expected.X)
    assert_array_equal(table.domains, expected.domains)
    assert table.source["path"] == str(path)
    drawn = shoal.io.read(path, domain="site", sample=10)
    assert drawn.n_rows == 10
    pieces = list(shoal.io.batches(path, table.schema, batch_rows=16))
    assert [piece.n_rows for piece in pieces] == [16, 16, 8]
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), expected.X)


def test_a_format_that_is_read_in_pieces(lines):
    path, frame = lines
    asked = []

    def pieces(path, options, *, batch_rows, columns=None, as_text=None):
        asked.append((columns, as_text))
        content = read_lines(path, options)
        for first in range(0, content.n_rows, batch_rows):
            yield content.take(slice(first, first + batch_rows))

    register(
        Format(
            "lines",
            (".lines",),
            read=read_lines,
            pieces=pieces,
            columns=lambda path, options: list(frame.columns),
        )
    )
    table = shoal.io.read(path, domain="site")
    found = list(shoal.io.batches(path, table.schema, batch_rows=16))
    assert asked == [(["size", "site"], {"site"})]
    assert_array_equal(np.concatenate([piece.X for piece in found]), table.X)


# ---- an estimator --------------------------------------------------------------------


class BinMixture(LatentShiftEstimator):
    """Classes by looking rows up in a table of bins: all that this file adds."""

    def __init__(
        self,
        n_classes=2,
        *,
        n_bins=4,
        domain_weight="equal",
        check_identifiable=True,
        random_state=None,
    ):
        self.n_classes = n_classes
        self.n_bins = n_bins
        self.domain_weight = domain_weight
        self.check_identifiable = check_identifiable
        self.random_state = random_state

    def fit(self, X, y=None, *, domains=None):
        X, codes, names = check_X_domains(self, X, y if domains is None else domains)
        inner = np.linspace(0, 1, self.n_bins + 1)[1:-1]
        self.edges_ = np.quantile(X, inner, axis=0)
        counts = np.zeros((len(names), self.n_bins ** X.shape[1]))
        np.add.at(counts, (codes, self._bins(X)), 1)
        weight = resolve_domain_weight(self.domain_weight, names, np.bincount(codes))
        found = factorize(
            normalize_rows(counts),
            self.n_classes,
            domain_weight=weight,
            check_identifiable=self.check_identifiable,
            random_state=self.random_state,
        )
        self._store(found.class_given_domain, names, weight)
        joint = self.class_weight_[:, None] * found.cluster_given_class
        self.class_given_bin_ = normalize_rows(joint.T, empty=self.class_weight_)
        self.labels_ = self._most_probable(X, codes)
        return self

    def _bins(self, X):
        each = [
            np.searchsorted(edges, column)
            for edges, column in zip(self.edges_.T, X.T, strict=True)
        ]
        return np.ravel_multi_index(each, [self.n_bins] * X.shape[1])

    def _class_given_x(self, X):
        return self.class_given_bin_[self._bins(X)]

    def _probe_rows(self, n_rows):
        return np.resize(self.edges_, (n_rows, self.n_features_in_))


@pytest.fixture(scope="module")
def sites():
    return make_latent_shift(
        1500,
        n_classes=3,
        n_domains=5,
        n_features=2,
        separation=3.0,
        alpha=1.0,
        random_state=0,
        return_bunch=True,
    )


@pytest.fixture(scope="module")
def fitted(sites):
    return BinMixture(3, random_state=0).fit(sites.X, sites.domains)


def test_an_estimator_predicts_and_adapts(sites, fitted):
    assert matched_accuracy(sites.labels, fitted.labels_) > 0.8
    got = fitted.predict_proba(sites.X, sites.domains)
    slow = class_posterior(
        fitted._class_given_x(sites.X), fitted.domain_given_class_, sites.domains
    )
    assert_allclose(got, slow)
    of_last = sites.X[sites.domains == 4]
    adapted = fitted.adapt(of_last, random_state=0)
    assert_allclose(adapted.prevalence, fitted.prevalence_[4], atol=0.03)
    assert np.isnan(adapted.fit_score)  # the toy keeps no record of its rows
    assert adapted.as_domain("new").predict(of_last, "new").shape == (len(of_last),)


def test_an_estimator_is_resampled(sites, fitted):
    found = fitted.bootstrap(sites.X, sites.domains, n_resamples=30, random_state=0)
    assert (found.low <= fitted.prevalence_).all()
    assert (fitted.prevalence_ <= found.high).all()
    share = fitted.prevalence_
    expected = np.sqrt(share * (1 - share) / found.n_rows[:, None])
    assert_allclose(found.draws.std(axis=0), expected, atol=0.02)


def test_an_estimator_is_diagnosed_on_rows_held_out(sites, fitted):
    found = fitted.diagnose(sites.X, sites.domains, n_permutations=3, random_state=0)
    assert 0.5 < found.numbers["gain_kept"] <= 1.05
    merged = fitted.merge(0, 1)
    less = merged.diagnose(sites.X, sites.domains, n_permutations=3, random_state=0)
    assert less.numbers["gain_through"] < found.numbers["gain_through"]
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(300, 2)), rng.integers(6, size=300)
    noise = BinMixture(4, n_bins=6, random_state=0).fit(X, domains)
    told = noise.diagnose(X, domains, n_permutations=3, random_state=0)
    assert told.numbers["gain_through"] < 0
    assert told.verdict == "do not use"


def test_the_number_of_classes_of_an_estimator_is_chosen(sites):
    choice = choose_n_classes(
        sites.X,
        sites.domains,
        range(2, 6),
        estimator=BinMixture(),
        n_resamples=1,
        random_state=0,
    )
    assert choice.n_classes == 3


def test_an_estimator_is_saved_and_reported(sites, fitted, tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="estimator must be one of"):
        shoal.save(fitted, tmp_path / "model")
    monkeypatch.setitem(MODELS, "BinMixture", __name__)
    model = fitted.set_names({0: "first"}).merge(1, 2)
    loaded = shoal.load(shoal.save(model, tmp_path / "model"))
    assert loaded.class_names_ == model.class_names_
    assert_array_equal(
        loaded.predict_proba(sites.X, sites.domains),
        model.predict_proba(sites.X, sites.domains),
    )
    page = render(summarize(loaded, sites.X, sites.domains))
    assert "first" in page


# ---- a finding -----------------------------------------------------------------------


def find_lopsided(case):
    """Whether one domain has most of the rows."""
    share = float(case["rows_per_domain"].max() / case["n_rows"])
    largest = case.domains[int(case["rows_per_domain"].argmax())]
    return Finding(
        "lopsided",
        "Is the table sound?",
        "caution" if share > 0.5 else "ok",
        {"share": share},
        f"{largest} has {share:.0%} of the rows.",
    )


@pytest.fixture
def lopsided():
    CHECKS.append(find_lopsided)
    yield
    CHECKS.remove(find_lopsided)


@pytest.mark.usefixtures("lopsided")
def test_a_finding(sites, fitted):
    few = sites.domains == 4
    rows = np.concatenate([np.flatnonzero(~few)[::8], np.flatnonzero(few)])
    found = fitted.diagnose(
        sites.X[rows], sites.domains[rows], n_permutations=3, random_state=0
    )
    assert found["lopsided"].status == "caution"
    assert "4 has" in str(found)
    assert found.verdict != "clear"
