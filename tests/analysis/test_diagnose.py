"""Diagnoses end to end: what is planted is found, and nothing else is."""

import os

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from shoal.analysis.diagnose import Case, diagnose
from shoal.analysis.diagnose._findings import find_lost_gain
from shoal.analysis.diagnose._procedure import with_columns
from shoal.datasets import load_activities, load_penguins, make_latent_shift
from shoal.ddfa import DDFA
from shoal.discrete import DiscreteMixture
from shoal.exceptions import IdentifiabilityWarning
from shoal.mixture import DomainMixture

SMALL = {"n_classes": 3, "n_domains": 5, "n_features": 4, "separation": 2.0}


QUICK = {"n_permutations": 4, "n_simulations": 6, "n_restarts": 1}

# Fits to violated assumptions may well end with an empty class, or with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::shoal.exceptions.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::shoal.exceptions.IdentifiabilityWarning"),
]


def ask(model, X, domains, seed=0):
    return diagnose(model, X, domains, **QUICK, random_state=seed)


def fit_and_ask(seed, n_classes=3, n_rows=1200, **options):
    options = {**SMALL, **options}
    X, domains, _ = make_latent_shift(n_rows, **options, random_state=seed)
    model = DomainMixture(n_classes, search=False, random_state=seed).fit(X, domains)
    return ask(model, X, domains, seed)


def raised(diagnosis):
    return {finding.code for finding in diagnosis.findings if finding.status != "ok"}


@pytest.fixture(scope="module")
def clean(seed):
    X, domains, _ = make_latent_shift(1200, **SMALL, random_state=seed)
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    return model, X, domains


def test_a_clean_problem_is_clear(clean, seed):
    model, X, domains = clean
    diagnosis = model.diagnose(X, domains, random_state=seed)
    assert diagnosis.verdict == "clear", str(diagnosis)
    for finding in diagnosis.findings:
        assert finding.status == "ok"
        assert "holds" not in finding.reason
        if finding.code != "E138":
            assert finding.reason.startswith("No sign of a problem found")
    assert {f.assumption for f in diagnosis.findings} >= {"A.1", "A.2", "A.3", "A.4"}
    shape = (model.n_classes_, len(model.domains_))
    assert diagnosis.numbers["class_domain_shift"].shape == shape


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("E138", {"kind": "no_shift"}),
        ("misfit", {"kind": "drift", "drift": 1.0}),
        ("alike", {"kind": "drift", "drift": 1.0}),
        ("W121", {"kind": "leak"}),
        ("anchors", {"separation": 0.5}),
        ("rank", {"rank": 2}),
        ("W111", {"kind": "thin"}),
    ],
)
def test_a_planted_violation_is_named(seed, code, options):
    diagnosis = fit_and_ask(seed, **options)
    assert code in raised(diagnosis), str(diagnosis)
    assert diagnosis.verdict != "clear"
    assert diagnosis[code].advice


def test_many_tiny_domains_are_thin_and_nothing_worse(seed):
    diagnosis = fit_and_ask(seed, n_domains=150, n_rows=1200, alpha=1.0)
    assert raised(diagnosis) == {"W111"}, str(diagnosis)


def test_strong_violations_forbid_use(seed):
    for options in ({"kind": "no_shift"}, {"kind": "drift", "drift": 1.0}):
        assert fit_and_ask(seed, **options).verdict == "do not use"


def test_too_few_classes_do_not_explain_the_domains(seed):
    diagnosis = fit_and_ask(seed, n_classes=2, n_domains=6, n_rows=3000)
    assert "misfit" in raised(diagnosis)
    assert diagnosis["misfit"].advice.startswith("3 classes leave ")
    assert "try more classes" in diagnosis["misfit"].advice


@pytest.mark.filterwarnings("ignore::shoal.exceptions.IdentifiabilityWarning")
def test_more_classes_than_domains_violate_a1(seed):
    X, domains, _ = make_latent_shift(900, **SMALL, random_state=seed)
    model = DomainMixture(
        6, search=False, check_identifiable=False, random_state=seed
    ).fit(X, domains)
    finding = ask(model, X, domains, seed)["E112"]
    assert (finding.status, finding.assumption) == ("fail", "A.1")


def test_a_class_of_one_domain_is_a_note_not_a_ban(seed):
    prevalence = [[0.5, 0.5, 0], [0.8, 0.2, 0], [0.2, 0.8, 0], [0.3, 0.2, 0.5]]
    X, domains, _ = make_latent_shift(
        1600, prevalence=prevalence, n_features=4, separation=3.0, random_state=seed
    )
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    diagnosis = ask(model, X, domains, seed)
    assert diagnosis["W139"].status == "caution"
    assert "only in 3" in diagnosis["W139"].reason
    assert diagnosis.verdict == "caution"


def test_copied_rows_are_seen(seed):
    X, domains, _ = make_latent_shift(1200, **SMALL, random_state=seed)
    X = np.vstack([X, X[domains == 0][:100]])
    domains = np.append(domains, np.ones(100, dtype=int))
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    finding = ask(model, X, domains, seed)["W122"]
    assert finding.status == "caution"
    assert finding.numbers["rows"] == 200


def test_thin_domains_say_how_many_rows_would_do(seed):
    diagnosis = fit_and_ask(seed, kind="thin")
    # 1.645^2 * .25 / .05^2: half of the rows in a class, 90%, five points
    assert diagnosis.numbers["rows_for_five_points"] == 270
    assert "about 270 would give ±5 points" in diagnosis["W111"].reason


# ---- contract ------------------------------------------------------------------


def test_same_seed_same_bits_and_nothing_is_changed(clean):
    model, X, domains = clean
    before = joblib.hash(model)
    first, second = (ask(model, X, domains, seed=7) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    assert joblib.hash(model) == before
    other = ask(model, X, domains, seed=8)
    assert other.numbers["misfit_null"] != first.numbers["misfit_null"]


def test_order_of_rows_and_names_of_domains_do_not_matter(clean, seed):
    model, X, domains = clean
    first = ask(model, X, domains)
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = ask(model, X[order], domains[order])
    for name in ("gain", "gain_through", "misfit", "unexplained", "shift"):
        assert shuffled.numbers[name] == pytest.approx(first.numbers[name], rel=1e-6)
    names = np.array(["north", "oak", "pine", "quay", "river"])[domains]
    renamed = DomainMixture(3, search=False, random_state=seed).fit(X, names)
    again = ask(renamed, X, names)
    assert again.numbers["misfit"] == pytest.approx(first.numbers["misfit"], rel=1e-6)


def test_a_sample_is_stated(clean):
    model, X, domains = clean
    diagnosis = diagnose(model, X, domains, max_rows=600, random_state=0)
    assert diagnosis.numbers["n_rows_used"] == 600
    assert "1200 rows, judged on a sample of 600" in str(diagnosis)


def test_the_leaking_column_is_called_by_its_name(seed):
    X, domains, _ = make_latent_shift(1000, **SMALL, kind="leak", random_state=seed)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "latitude"])
    model = DomainMixture(3, search=False, random_state=seed).fit(frame, domains)
    diagnosis = ask(model, frame, domains, seed)
    assert "latitude" in diagnosis["W121"].reason
    assert diagnosis.verdict == "do not use"


def test_columns_of_an_array_can_be_named_afterwards(seed):
    X, domains, _ = make_latent_shift(1000, **SMALL, kind="leak", random_state=seed)
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    numbered = ask(model, X, domains, seed)
    assert numbered["W121"].reason.startswith("Column 4 alone names the domain")
    named = with_columns(numbered, ["a", "b", "c", "d", "latitude"])
    assert named["W121"].reason.startswith('"latitude" alone names the domain')
    assert named.verdict == numbered.verdict
    assert named.numbers["naming_columns"]["latitude"] > 0.9
    again = with_columns(named, ["v", "w", "x", "y", "z"])  # named already
    assert again["W121"].reason == named["W121"].reason


def test_merged_counts_are_sized_by_their_words(seed):
    rng = np.random.default_rng(seed)
    domains = np.arange(40) % 8
    counts = rng.poisson(1 + 6 * rng.dirichlet(np.ones(12), size=8)[domains] * 4)
    model = DiscreteMixture(3, input="counts", random_state=seed).fit(counts, domains)
    found, whole = (ask(m, counts, domains, seed) for m in (model.merge(0, 1), model))
    assert found.numbers["n_rows"] == whole.numbers["n_rows"] == counts.sum()
    assert found.numbers["naming_columns"] == {}


def test_merged_words_are_diagnosed(words, seed):
    X, domains, _ = words
    model = DiscreteMixture(3, random_state=seed).fit(X, domains)
    found = ask(model.merge(0, 1), X, domains, seed)
    assert found.class_names == model.merge(0, 1).class_names_
    whole = ask(model, X, domains, seed)
    assert found.numbers["gain"] == pytest.approx(whole.numbers["gain"])
    assert found.numbers["class_domain_shift"].shape == (2, 6)
    assert found.numbers["n_rows"] == whole.numbers["n_rows"]


def test_sparse_rows_are_diagnosed(seed):
    X, domains, _ = make_latent_shift(1000, **SMALL, random_state=seed)
    X = sparse.csr_array(np.where(X > 0, X, 0))
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    diagnosis = ask(model, X, domains, seed)
    assert diagnosis["E138"].status == "ok"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domains": None}, "domains must be passed"),
        ({"domains": np.zeros(1200, dtype=int)}, "no rows of"),
        ({"n_permutations": 1}, "n_permutations must be a whole number from 2"),
        ({"n_permutations": 2.5}, "n_permutations must be a whole number from 2"),
    ],
)
def test_bad_arguments_are_named(clean, change, message):
    model, X, domains = clean
    with pytest.raises(ValueError, match=message):
        model.diagnose(X, **{"domains": domains, **change})


# ---- merged classes ------------------------------------------------------------


def through(model, X, domains):
    """Gain through the classes before and after a merge, and the share kept."""
    found = [ask(one, X, domains, 0).numbers for one in (model, model.merge(0, 1))]
    return [(one["gain_through"], one["gain_kept"]) for one in found]


@pytest.mark.parametrize("kind", ["mixture", "words"])
def test_merged_classes_gain_nothing_from_noise(kind):
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(300, 6)), rng.integers(6, size=300)
    model = DomainMixture(4, search=False, ridge=1e-6, random_state=0)
    if kind == "words":
        X, model = rng.integers(60, size=(300, 1)), DiscreteMixture(4, random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="do not differ"):
        model.fit(X, domains)
    (whole, _), (merged, _) = through(model, X, domains)
    # on its own rows such a fit gains; on others it costs, merged or not
    assert whole < -0.2
    assert merged < -0.1


def test_merged_classes_keep_no_more_than_their_parts():
    X, domains, _ = make_latent_shift(
        400,
        n_classes=4,
        n_domains=5,
        n_features=8,
        separation=1.0,
        alpha=1.0,
        random_state=1,
    )
    model = DomainMixture(4, search=False, ridge=1e-6, random_state=0).fit(X, domains)
    (_, whole), (_, merged) = through(model, X, domains)
    assert 0 < merged < whole < 1


def test_a_merged_ddfa_is_held_against_its_own_discriminator(seed):
    X, domains, _ = make_latent_shift(1200, **SMALL, random_state=seed)
    model = DDFA(3, discriminator="logistic", random_state=seed).fit(X, domains)
    whole, merged = (ask(one, X, domains, 0) for one in (model, model.merge(0, 1)))
    assert merged.numbers["gain"] == whole.numbers["gain"]
    assert merged.numbers["gain_through"] < whole.numbers["gain_through"]


# ---- a share of the gain -------------------------------------------------------


def kept(gain: float, through: float, fitted: bool = False):
    """The finding on a free guesser's gain and that through the classes."""
    numbers = {
        "guesser": "trees",
        "gain": gain,
        "gain_error": 0.004,
        "gain_null": [-0.01, 0.0, 0.01],
        "gain_through": through,
        "gain_kept": through / gain,
        "gain_lost_sure": 9.0,
        "one_more": None,
        "drift_fitted": fitted,
    }
    return find_lost_gain(Case(numbers, np.array([]), []))


def test_a_share_of_next_to_nothing_is_no_finding():
    assert kept(0.0002, -0.033).status == "ok"
    assert kept(0.02, 0.0).status == "ok"  # within what shuffled domains give


def test_a_gain_that_is_lost_is_none_of_it():
    found = kept(0.2, -0.033)
    assert found.status == "fail"
    assert "The classes keep none of what tells domains apart" in found.reason
    assert "keep only 50% of what" in kept(0.2, 0.1).reason


def test_what_is_left_when_drift_is_taken_out_has_no_excuse():
    assert kept(0.2, 0.17).status == "caution"
    assert kept(0.2, 0.17, fitted=True).status == "fail"
    assert kept(0.2, 0.19, fitted=True).status == "ok"


# ---- other estimators ----------------------------------------------------------


def test_ddfa_is_judged_through_its_own_discriminator(seed):
    X, domains, _ = make_latent_shift(1200, **SMALL, random_state=seed)
    model = DDFA(3, discriminator="logistic", random_state=seed).fit(X, domains)
    diagnosis = ask(model, X, domains, seed)
    assert diagnosis["misfit"].status == "ok"
    assert diagnosis["alike"].status == "ok"
    kept = diagnosis.numbers["gain_through"] / diagnosis.numbers["gain"]
    assert kept > 0.9


def test_ddfa_with_an_oracle_needs_no_refit(seed):
    data = make_latent_shift(1200, **SMALL, random_state=seed, return_bunch=True)
    model = DDFA(3, discriminator=data.bayes_discriminator, random_state=seed)
    model.fit(data.X, data.domains)
    diagnosis = ask(model, data.X, data.domains, seed)
    own = data.domain_given_x[np.arange(1200), data.domains]
    true_gain = np.mean(np.log(own * 5))
    assert diagnosis.numbers["gain"] >= true_gain - 0.02


@pytest.fixture(scope="module")
def words(seed):
    return make_latent_shift(
        2000, kind="anchored", n_classes=3, n_domains=6, random_state=seed
    )


def test_words_and_their_counts_get_the_same_diagnosis(words, seed):
    X, domains, _ = words
    rows = DiscreteMixture(3, random_state=seed).fit(X, domains)
    by_row = ask(rows, X, domains, seed)
    assert "misfit" not in raised(by_row)
    assert "alike" not in raised(by_row)
    assert by_row["E138"].status == "ok"
    table = np.zeros((6, int(X.max()) + 1), dtype=int)
    np.add.at(table, (domains, X[:, 0]), 1)
    counts = DiscreteMixture(3, input="counts", random_state=seed).fit(table)
    by_count = ask(counts, table, None, seed)
    assert by_count.numbers["misfit"] == pytest.approx(by_row.numbers["misfit"])
    assert_array_equal(
        by_count.numbers["rows_per_domain"], by_row.numbers["rows_per_domain"]
    )
    assert {f.code for f in by_count.findings}.isdisjoint({"W121", "W122"})


def test_words_of_their_own_in_every_domain_are_seen(words, seed):
    X, domains, _ = words
    rng = np.random.default_rng(seed)
    dialect = np.where(rng.random(len(X)) < 0.4, 1000 + 100 * domains, 0)
    X = X % 10 + dialect[:, None]
    model = DiscreteMixture(3, random_state=seed).fit(X, domains)
    diagnosis = ask(model, X, domains, seed)
    assert diagnosis.verdict == "do not use"


def test_clusters_as_words(seed):
    X, domains, _ = make_latent_shift(1200, **SMALL, random_state=seed)
    model = DiscreteMixture(3, n_words=9, random_state=seed).fit(X, domains)
    diagnosis = ask(model, X, domains, seed)
    assert diagnosis["misfit"].status == "ok"
    assert "W121" in {finding.code for finding in diagnosis.findings}


# ---- real data -----------------------------------------------------------------


def test_penguins_are_not_forbidden(seed):
    data = load_penguins()
    model = DomainMixture(3, random_state=seed).fit(data.X, data.domains)
    diagnosis = ask(model, data.X, data.domains, seed)
    assert diagnosis.verdict == "caution"
    assert raised(diagnosis) == {"W139"}


@pytest.mark.slow
@pytest.mark.skipif(
    "SHOAL_DATA_DIR" not in os.environ, reason="needs the files of SHOAL_DATA_DIR"
)
def test_activities_must_not_be_used(seed):
    data = load_activities()
    model = DomainMixture(6, random_state=seed).fit(data.X, data.domains)
    diagnosis = ask(model, data.X, data.domains, seed)
    assert diagnosis.verdict == "do not use"
    failed = {f.code for f in diagnosis.findings if f.status == "fail"}
    assert failed >= {"misfit", "gain-kept", "alike"}
