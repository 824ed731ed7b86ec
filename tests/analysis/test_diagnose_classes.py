"""Checks of the classes themselves: are they domains, and who else would find them?"""

from types import SimpleNamespace

import numpy as np
import pytest

from shoal.analysis.diagnose import THRESHOLDS, Case, diagnose
from shoal.analysis.diagnose._findings import find_misfit, find_shift, find_signal
from shoal.analysis.diagnose._findings_domains import (
    find_class_domains,
    find_lone_classes,
)
from shoal.analysis.diagnose._findings_mix import find_other_count, find_witnesses
from shoal.analysis.diagnose._procedure import _witnesses, with_choice
from shoal.datasets import make_latent_shift
from shoal.mixture import DomainMixture
from shoal.mixture._route import Route

QUICK = {"n_permutations": 4, "n_simulations": 6, "n_restarts": 0}
SITES = np.array(["north", "south", "east", "west"])


def case(**numbers):
    return Case({"drift_fitted": False, **numbers}, SITES, ["c0", "c1", "c2"])


# ---- classes that are domains --------------------------------------------------------


def lone(share, at_home):
    """Classes whose largest share is in north, south, east."""
    return find_lone_classes(
        case(
            largest_domain_share=np.array(share),
            largest_domain=np.array([0, 1, 2]),
            share_at_home=np.array(at_home),
        )
    )


def test_a_class_that_is_a_domain_forbids_use_and_a_class_of_one_domain_does_not():
    assert lone([0.5, 0.9, 0.4], [0.9, 0.9, 0.9]).status == "ok"
    real = lone([0.5, 1.0, 0.4], [0.9, 0.6, 0.9])
    assert real.status == "caution"
    assert real.reason == "Some classes occur in one domain: c1 only in south."
    domain = lone([0.5, 1.0, 0.99], [0.9, 0.6, 0.97])
    assert domain.status == "fail"
    assert domain.reason == (
        "A class is nearly all of one domain and of no other: c2 only in east."
    )
    assert domain.advice.startswith("east cannot be compared with the others")
    assert domain.numbers["n_domains_filled"] == 1


def test_classes_that_are_groups_of_domains_are_told():
    def tell(largest):
        return find_class_domains(case(largest_class_share=np.array(largest)))

    mixed = tell([0.99, 0.98, 0.7, 0.6])
    assert mixed.status == "ok"
    assert "in 2 of 4 domains one class has nearly all rows" in mixed.reason
    pure = tell([0.99, 0.98, 1.0, 0.6])
    assert pure.status == "caution"
    assert "in 3 of 4 domains one class has over 95% of the rows" in pure.reason
    assert "More classes would only name more domains" in pure.advice


def test_domains_that_are_worlds_of_their_own_must_not_be_compared(seed):
    rng = np.random.default_rng(seed)
    centres = 12.0 * rng.normal(size=(4, 3))
    domains = np.repeat(np.arange(4), 150)
    X = centres[domains] + rng.normal(size=(600, 3))
    model = DomainMixture(4, search=False, random_state=seed).fit(X, domains)
    found = diagnose(model, X, domains, **QUICK, random_state=seed)
    assert found.verdict == "do not use"
    assert found["W139"].status == "fail"
    assert found["groups"].status == "caution"
    assert found["groups"].numbers["pure"] == 1


# ---- more classes --------------------------------------------------------------------


def misfit(unexplained, more=None, n_classes=3, n_domains=6):
    if np.isscalar(more):
        more = {"unexplained": more, "fills": []}
    return find_misfit(
        case(
            n_classes=n_classes,
            n_domains=n_domains,
            misfit=3.0,
            misfit_null={"mean": 1.0, "sd": 0.1},
            unexplained=unexplained,
            one_more=more,
        )
    )


def test_one_class_more_is_advised_only_where_it_helps():
    helps = misfit(0.2, 0.02)
    assert helps.status == "caution"
    assert helps.advice == "4 classes leave 2% unexplained: try more classes."
    in_vain = misfit(0.2, 0.19)
    assert in_vain.status == "fail"
    assert in_vain.advice.startswith("4 classes leave 19% unexplained as well")
    hides = misfit(0.2, {"unexplained": 0.0, "fills": [2]})
    assert hides.status == "fail"
    assert "With 4 classes, one is nearly all of east" in hides.advice
    none_left = misfit(0.2, 0.0, n_classes=4, n_domains=4)
    assert none_left.status == "fail"
    assert none_left.advice.startswith("As many classes as domains")
    assert misfit(0.02).status == "ok"  # nobody has asked


def test_advice_of_more_classes_is_the_same_everywhere():
    def shift(more):
        return find_shift(
            case(
                n_classes=3,
                n_domains=6,
                shift=0.3,
                worst_class_shift=0.3,
                shift_sure=9.0,
                worst_class_sure=9.0,
                shift_limit=0.1,
                worst_cells=[(0, 1, 0.4)],
                unexplained=0.2,
                one_more={"unexplained": more, "fills": []},
            )  # fmt: skip
        ).advice

    assert "more classes" in shift(0.01)
    assert "more classes" not in shift(0.19)


def test_one_more_class_explains_what_too_few_leave(seed):
    X, domains, _ = make_latent_shift(
        2500, n_classes=3, n_domains=6, n_features=4, separation=2.5, random_state=seed
    )
    model = DomainMixture(2, search=False, random_state=seed).fit(X, domains)
    found = diagnose(model, X, domains, **QUICK, random_state=seed)
    more = found.numbers["one_more"]
    assert more["n_classes"] == 3
    assert more["unexplained"] < found.numbers["unexplained"] / 3
    assert "try more classes" in found["misfit"].advice
    right = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    numbers = diagnose(right, X, domains, **QUICK, random_state=seed).numbers
    assert numbers["one_more"] is None


# ---- two witnesses -------------------------------------------------------------------


def test_two_witnesses_who_disagree_withhold_clear():
    def tell(share, *by_class, heard=True, rank=3, condition=5.0):
        both = {"by": "looks", "heard": heard, "agreement": share,
                "by_class": np.array(by_class), "n_rows": 200}  # fmt: skip
        mixes = {"rank": rank, "n_classes": 3, "condition": condition,
                 "smallest_singular_value": 0.1}  # fmt: skip
        return find_witnesses(case(witnesses=both, **mixes))

    assert find_witnesses(case(witnesses=None)) is None
    assert tell(0.97, 0.99, np.nan, 0.9).status == "ok"
    doubt = tell(0.8, 0.9, np.nan, 0.6)
    assert doubt.status == "caution"
    assert doubt.reason == (
        "How rows look and how they shift tell two stories: classes by looks and "
        "classes by shift agree on 80% of rows (least in c2: 60%)."
    )
    assert "the 40 rows on which they differ" in doubt.advice
    little = THRESHOLDS.witnesses_fail - 0.01
    assert tell(little, 0.1, 0.2, 0.3).status == "fail"
    assert tell(little, 0.1, 0.2, 0.3, heard=False).status == "caution"
    # mixes too poor for so many classes need looks to confirm them
    for poor in ({"rank": 1}, {"condition": 51.0}):
        assert tell(0.8, 0.9, np.nan, 0.6, **poor).status == "fail"
        assert tell(0.8, 0.9, np.nan, 0.6, **poor, heard=False).status == "caution"
        assert tell(0.97, 0.99, np.nan, 0.9, **poor).status == "ok"


@pytest.mark.parametrize("by", ["shift", "looks"])
def test_who_cannot_contradict_is_not_heard(by):
    def heard(reason, less=0.5):
        gain = {"shift": (0.5, 0.01), "looks": (0.5, 0.01)}
        gain["looks" if by == "shift" else "shift"] = (less, 0.01)
        classes = np.zeros(9, dtype=int)
        route = Route(by, reason, gain, 0.5, np.array([0.5, 0.4]), classes)
        return _witnesses(SimpleNamespace(route_=route, n_classes_=2))["witnesses"][
            "heard"
        ]

    assert heard("better")
    assert not heard("better", 0.4)  # it tells domains far worse
    assert not heard("silent")
    assert not heard("drift")  # shift takes drift for classes


def test_witnesses_are_heard_where_both_spoke(seed):
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=4, n_features=3, separation=3.0, random_state=seed
    )
    model = DomainMixture(2, random_state=seed).fit(X, domains)
    both = diagnose(model, X, domains, **QUICK, random_state=seed).numbers["witnesses"]
    same = model.route_.other_labels == model.labels_
    assert both["agreement"] == pytest.approx(same.mean())
    assert both["by_class"] == pytest.approx(
        [same[model.labels_ == y].mean() for y in range(2)]
    )
    assert both["n_rows"] == len(X)
    assert both["heard"]  # both tell domains about as well
    assert model.route_.reason == "better"
    one = DomainMixture(2, by="shift", random_state=seed).fit(X, domains)
    assert (
        diagnose(one, X, domains, **QUICK, random_state=seed).numbers["witnesses"]
        is None
    )


# ---- the curve of numbers of classes -------------------------------------------------


def test_a_curve_that_prefers_another_number_withholds_clear(seed):
    assert find_other_count(case(choice=None, n_classes=3)) is None
    X, domains, _ = make_latent_shift(
        1200, n_classes=3, n_domains=5, n_features=4, separation=2.0, random_state=seed
    )
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    found = diagnose(model, X, domains, **QUICK, random_state=seed)
    assert with_choice(found, None) is found
    same = SimpleNamespace(n_classes=3, rank=3, sentence="3 classes: best")
    assert with_choice(found, same)["curve"].status == "ok"
    other = SimpleNamespace(n_classes=None, rank=4, sentence="No clear number: 3 or 4")
    told = with_choice(found, other)
    assert told["curve"].status == "caution"
    assert "does not say 3: No clear number: 3 or 4." in told["curve"].reason
    # and there is one answer to how many classes the table supports
    assert "support 4 classes, 3 were fitted" in told["rank"].reason


# ---- nothing to learn from -----------------------------------------------------------


def signal(gain, table, n_rows=1000, n_columns=3):
    return find_signal(
        case(
            gain=gain,
            gain_error=0.01,
            gain_null=np.array([0.01, -0.01, 0.0]),
            table_signal=table,
            n_rows=n_rows,
            columns=["x"] * n_columns,
        )  # fmt: skip
    )


def test_a_table_that_differs_beyond_chance_vetoes_no_signal():
    assert signal(0.5, -1.0).status == "ok"
    none = signal(0.0, 0.0)
    assert none.status == "fail"
    assert none.advice.startswith("There is nothing to learn classes from")
    veto = signal(0.0, 8.0)
    assert veto.status == "caution"
    assert "Domains differ, but too little to be confirmed" in veto.reason
    assert "lie 8 standard deviations from those of shuffled ones" in veto.reason


def test_too_few_rows_for_so_many_columns_are_called_that():
    for table in (0.0, 8.0):
        told = signal(0.0, table, n_rows=2400, n_columns=100).advice
        assert "too few rows for so many columns (2400 for 100)" in told
        assert "too few" not in signal(0.0, table).advice
