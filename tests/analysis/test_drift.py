"""Drift: planted, it is told; of classes that only change their shares, it is not."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from shoal.analysis.diagnose import THRESHOLDS, Case, diagnose, judge
from shoal.analysis.diagnose._drift import find_drift, read_domain, typical_scale
from shoal.analysis.diagnose._findings_domains import (
    find_domains_apart,
    find_instrument,
)
from shoal.analysis.diagnose._readings import (
    density,
    fit_pieces,
    in_units,
    other_units,
    own_mix,
    place,
)
from shoal.datasets import load_penguins, make_latent_shift
from shoal.mixture import DomainMixture

SMALL = {"n_classes": 3, "n_domains": 8, "n_features": 3, "separation": 2.0}
DOMAINS = np.array([f"site {d}" for d in range(8)])
COLUMNS = ["length", "temp_c", "mass"]


def table(seed, **options):
    X, domains, _ = make_latent_shift(1000, **SMALL, **options, random_state=seed)
    return X, domains


def case_of(drift, left=None, columns=COLUMNS):
    numbers = {"drift": drift, "columns": columns, "drift_fitted": left is not None,
               "drift_left": left}  # fmt: skip
    return Case(numbers, DOMAINS, [])


def ask(X, domains, seed=0):
    case = case_of(find_drift(X, domains, np.random.default_rng(seed)))
    return find_domains_apart(case), find_instrument(case)


# ---- what is planted is told, and nothing else ---------------------------------------


def test_a_shift_of_classes_is_no_drift(seed):
    raised = 0
    for problem in range(6):
        apart, instrument = ask(*table(100 * seed + problem))
        raised += (apart.status != "ok") + (instrument.status != "ok")
        assert "fail" not in (apart.status, instrument.status)
    assert raised <= 1  # rarely, where a class lives in one domain only


def test_domains_that_all_drift_are_told(seed):
    for kind in ({"drift": 1.0}, {"drift": 2.0}):
        apart, _ = ask(*table(seed, kind="drift", **kind))
        assert apart.status == "fail", apart.reason
        assert "8 of 8 domains" in apart.reason or "7 of 8" in apart.reason
        assert "More classes would only hide it" in apart.advice


@pytest.mark.parametrize(
    "change", [lambda x: 1.8 * x + 32, lambda x: x + 5, lambda x: 3 * x - 60]
)
def test_the_unit_of_one_column_in_one_domain_is_named(seed, change):
    X, domains = table(seed)
    X[:, 1] = 37 + X[:, 1]
    X[domains == 4, 1] = change(X[domains == 4, 1])
    _, instrument = ask(X, domains)
    assert instrument.code == "W124"
    assert instrument.status != "ok", instrument.reason
    assert instrument.reason.startswith('"temp_c" at site 4 is ')
    assert "elsewhere 3" in instrument.reason  # degrees Celsius
    # the unit leads back: 37 there reads as 37 elsewhere, to a spread
    factor, offset = instrument.numbers["factor"], instrument.numbers["offset"]
    spread = X[domains != 4, 1].std()
    assert factor * change(37.0) + offset == pytest.approx(37, abs=spread)


def tell_of(n_domains=8, left=None, **more):
    """The finding about one instrument."""
    one = {"domain": 2, "column": 1, "gain": 1.0, "error": 0.1, "beyond": 0.5,
           "beyond_error": 0.1, "rows": 90, "evidence": 67.5, "factor": 0.556,
           "offset": -17.8, "size": 4.0, "here": (96.0, 104.0),
           "elsewhere": (35.0, 41.0)}  # fmt: skip
    none = np.zeros(n_domains)
    drift = {"shift": none, "shift_error": none, "apart": none, "apart_error": none,
             "instruments": [{**one, **more}]}  # fmt: skip
    if left is not None:
        left = {**drift, "instruments": [drift["instruments"][0] | one for one in left]}
    return find_instrument(case_of(drift, left))


def test_a_large_instrument_forbids_use_and_a_doubtful_one_does_not():
    sure = tell_of()
    assert sure.status == "fail"
    assert sure.reason == (
        '"temp_c" at site 2 is 96 to 104, elsewhere 35 to 41: another unit or '
        "instrument?"
    )
    assert "0.556 x value -17.8 would make it like theirs" in sure.advice
    # an offset that the fit takes out, unless there is more to it than that
    assert tell_of(left=[]).status == "caution"
    assert tell_of(left=[{"evidence": 14.0}]).status == "caution"
    assert tell_of(left=[{"evidence": 40.0, "size": 0.5}]).status == "fail"
    doubtful = tell_of(beyond=-0.1)
    assert doubtful.status == "fail"  # large, and yet a class may be the reason
    assert "or a class of its own?" in doubtful.reason
    # a class of its own explains far more, or rows hardly change their class
    assert tell_of(beyond=-0.3).status == "caution"
    assert tell_of(size=0.9).status == "caution"
    assert tell_of(evidence=THRESHOLDS.unit_nats_fail).status == "caution"


def test_little_evidence_is_no_instrument():
    assert tell_of(evidence=THRESHOLDS.unit_nats).status == "ok"
    assert tell_of(size=0.09).status == "ok"
    # of many rows, a density that is a little off gains as much
    assert tell_of(rows=700).status == "ok"
    # among few domains, only what no class of its own can explain is told
    few = tell_of(n_domains=3, beyond=0.3)
    assert few.status == "ok"
    assert "a class that one domain alone has" in few.reason
    assert tell_of(n_domains=3, beyond=0.5).status == "fail"


@pytest.mark.parametrize("change", [lambda x: x + 2.5, lambda x: 2.5 * x])
def test_evidence_is_what_a_unit_gains_less_half_of_a_class(seed, change):
    X, domains = table(seed)
    X[domains == 4, 1] = change(X[domains == 4, 1])
    found = find_drift(X, domains, np.random.default_rng(seed))["instruments"]
    for one in found:
        # of a class of the domain's own, where it gains at all
        own = one["gain"] - one["beyond"]
        assert own >= -1e-12
        evidence = one["rows"] * (one["gain"] - own / 2)
        assert one["evidence"] == pytest.approx(evidence)
    ranked = [one["evidence"] for one in found]
    assert ranked == sorted(ranked, reverse=True)
    assert (found[0]["domain"], found[0]["column"]) == (4, 1)


def test_the_share_of_domains_apart_decides():
    def tell(n_apart, left=None):
        apart, error = np.zeros(8), np.full(8, 0.1)
        apart[:n_apart] = 1.01 * THRESHOLDS.apart_sure * error[:n_apart]
        drift = {"shift": apart, "shift_error": error, "apart": apart,
                 "apart_error": error, "instruments": []}  # fmt: skip
        still = None
        if left is not None:
            still = {**drift, "apart": apart * (np.arange(8) < left)}
        return find_domains_apart(case_of(drift, still))

    assert [tell(n).status for n in (0, 4, 5, 6, 8)] == [
        "ok", "ok", "caution", "fail", "fail"
    ]  # fmt: skip
    assert tell(6).reason == (
        "Domains do not hold the same classes in another mix: 6 of 8 domains hold rows "
        "that fit no mix of the others'; most: site 0."
    )
    fitted = tell(8, left=4)
    assert fitted.status == "caution"
    assert "the fit takes one offset per domain out" in fitted.reason
    assert tell(8, left=5).status == "fail"  # they differ by more than offsets


def test_a_class_of_one_domain_is_no_unit(seed):
    prevalence = [[0.5, 0.5, 0], [0.8, 0.2, 0], [0.2, 0.8, 0], [0.3, 0.2, 0.5]]
    X, domains, _ = make_latent_shift(
        1200, prevalence=prevalence, n_features=4, separation=3.0, random_state=seed
    )
    found = find_drift(X, domains, np.random.default_rng(0))
    assert found["apart"][3] > 3 * found["apart_error"][3]
    assert (found["apart"][:3] < found["apart"][3] / 3).all()
    case = case_of(found, columns=list("abcd"))
    assert find_instrument(case).status != "fail"
    assert find_domains_apart(case).status == "ok"


# ---- where it does not ask -----------------------------------------------------------


def test_tables_that_do_not_allow_it_say_nothing(seed):
    X, domains = table(seed)
    rng = np.random.default_rng(0)
    assert find_drift(X, domains % 2, rng) is None  # two domains: which is odd?
    assert find_drift(X[:60], np.arange(60) % 8, rng) is None  # too few rows
    assert find_drift(np.round(X > 0), domains, rng) is None  # kinds, not numbers
    assert find_drift(np.tile(X, 20), domains, rng) is None  # too wide
    assert find_domains_apart(case_of(None)) is None
    assert find_instrument(case_of(None)) is None


def test_gaps_and_thin_domains_are_left_out(seed):
    X, domains = table(seed)
    rng = np.random.default_rng(seed)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[domains == 1, 1] += 500
    X[(domains == 1) & (rng.random(len(X)) < 0.5), 1] = np.nan  # half of it misses
    keep = (domains != 0) | (np.cumsum(domains == 0) <= 10)
    found = find_drift(X[keep], domains[keep], np.random.default_rng(0))
    assert np.isnan(found["apart"][0])
    assert np.isfinite(found["apart"][1:]).all()
    assert (1, 1) not in [(i["domain"], i["column"]) for i in found["instruments"]]


def test_order_of_rows_and_units_of_the_whole_table_do_not_matter(seed):
    X, domains = table(seed)
    X[domains == 4, 1] += 5
    first = find_drift(X, domains, np.random.default_rng(0))
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = find_drift(X[order], domains[order], np.random.default_rng(0))
    np.testing.assert_allclose(shuffled["apart"], first["apart"])
    scaled = find_drift(X * 2.0**10, domains, np.random.default_rng(0))
    np.testing.assert_allclose(scaled["apart"], first["apart"], rtol=1e-6)
    one, other = first["instruments"][0], scaled["instruments"][0]
    assert (
        (one["domain"], one["column"]) == (other["domain"], other["column"]) == (4, 1)
    )
    assert other["offset"] == pytest.approx(one["offset"] * 2**10, rel=1e-4)


# ---- the parts -----------------------------------------------------------------------


def pieces_of(rng):
    Z = np.vstack([rng.normal(size=(200, 2)), rng.normal(4, 0.7, size=(200, 2))])
    return Z, fit_pieces(Z, 2, rng)


def test_densities_are_those_of_gaussians(seed):
    Z, pieces = pieces_of(np.random.default_rng(seed))
    slow = np.column_stack([
        multivariate_normal(mean, np.linalg.inv(inverse)).logpdf(Z)
        for mean, inverse in zip(pieces.means, pieces.inverse, strict=True)
    ])  # fmt: skip
    rows = place(Z, pieces)
    np.testing.assert_allclose(rows.log, slow)
    np.testing.assert_allclose(
        density(rows.log, pieces.share), logsumexp(slow + np.log(pieces.share), axis=1)
    )


def test_another_unit_is_found_and_its_density_counts_the_change(seed):
    rng = np.random.default_rng(seed)
    Z, pieces = pieces_of(rng)
    here = Z.copy()
    here[:, 1] = (Z[:, 1] - 3) / 2  # elsewhere = 2 * here + 3
    rows = place(here, pieces)
    units = other_units(rows, pieces, own_mix(rows.log, pieces.share))
    assert units.factor[1] == pytest.approx(2, rel=0.1)
    assert units.offset[1] == pytest.approx(3, abs=0.2)
    changed = here.copy()
    changed[:, 1] = units.factor[1] * here[:, 1] + units.offset[1]
    slow = density(place(changed, pieces).log, units.share[1]) + np.log(units.factor[1])
    np.testing.assert_allclose(in_units(rows, pieces, units)[1], slow)


def test_the_mix_of_a_domain_is_found(seed):
    rng = np.random.default_rng(seed)
    Z, pieces = pieces_of(rng)
    low = pieces.means[:2, 0] < 2
    own = np.vstack([Z[:180], Z[200:220]])  # nine to one
    share = own_mix(place(own, pieces).log, pieces.share)
    assert share[:2][low].sum() == pytest.approx(0.9, abs=0.04)
    readings = read_domain(own, pieces, rng)
    told = readings.told()
    assert told["shift"] > 3 * told["shift_error"]
    assert told["apart"] < 3 * told["apart_error"]


def test_one_odd_domain_does_not_set_the_scale(seed):
    X, domains = table(seed)
    before = typical_scale(X, domains, np.arange(8))
    X[domains == 3] *= 1000
    after = typical_scale(X, domains, np.arange(8))
    assert (np.abs(after.centre - before.centre) < before.spread).all()


# ---- in a diagnosis ------------------------------------------------------------------


def test_a_diagnosis_names_the_column(seed):
    X, domains = table(seed)
    X[domains == 4, 1] = 3 * X[domains == 4, 1] + 60
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    quick = {"n_permutations": 3, "n_simulations": 3, "n_restarts": 0}
    found = diagnose(model, X, domains, **quick, random_state=seed)
    assert found["W124"].reason.startswith("Column 1 at 4 is "), found["W124"].reason
    assert found.verdict != "clear"
    again = judge(found.numbers, DOMAINS, found.class_names)
    assert "at site 4" in again["W124"].reason


def test_penguins_of_three_islands_do_not_drift():
    penguins = load_penguins()
    codes = np.unique(penguins.domains, return_inverse=True)[1]
    found = find_drift(penguins.X, codes, np.random.default_rng(0))
    case = case_of(found, columns=list("abcd"))
    assert find_domains_apart(case).status == "ok"  # two islands, each with its own
    assert find_instrument(case).status == "ok"
