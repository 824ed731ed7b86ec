"""Naming and merging classes of a fitted estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal import DDFA, DomainMixture
from shoal.datasets import load_penguins
from shoal.datasets._generated import make_latent_shift


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module", params=[DomainMixture, DDFA], ids=["mixture", "ddfa"])
def model(request, penguins):
    options = {"random_state": 0}
    if request.param is DDFA:
        options["discriminator"] = "logistic"
    return request.param(3, **options).fit(penguins.X, penguins.domains)


def test_probabilities_of_merged_classes_add_up(model, penguins):
    merged = model.merge("c0", 2, name="both")
    both = merged.class_names_.index("both")
    for domains in (penguins.domains, "Dream", None):
        whole = model.predict_proba(penguins.X, domains)
        parts = merged.predict_proba(penguins.X, domains)
        assert parts.shape == (342, 2)
        assert_allclose(parts[:, both], whole[:, 0] + whole[:, 2])
        assert_allclose(parts.sum(axis=1), 1)
    assert_allclose(
        merged.prevalence_[:, both], model.prevalence_[:, [0, 2]].sum(axis=1)
    )


def test_merges_of_merged_classes_add_up_to_the_fit():
    X, domains, _ = make_latent_shift(
        1000, n_classes=4, n_domains=6, separation=1.0, random_state=0
    )
    model = DomainMixture(4, search=False, random_state=0).fit(X, domains)
    model = model.set_names(list("abcd"))
    twice = model.merge("a", "b", name="ab").merge("ab", "d", name="abd")
    assert twice._origin is model
    alone, own = twice.class_names_.index("c"), [0.4, 0.3, 0.2, 0.1]
    assert_allclose(twice._add_up(np.array(own))[alone], 0.2)
    assert_allclose(twice.prevalence_[:, alone], model.prevalence_[:, 2])
    for where in (domains, 3, None):
        whole, parts = (one.predict_proba(X, where) for one in (twice, model))
        assert_allclose(whole[:, alone], parts[:, 2], atol=1e-9)
    assert_array_equal(twice.labels_ == alone, model.labels_ == 2)
    mix = twice.prevalence_.mean(axis=0)
    assert_allclose(twice.predict_proba(X, prevalence=mix), twice.predict_proba(X))
    assert twice.score(X, domains) == model.score(X, domains)


def test_merged_classes_stay_in_canonical_order(model):
    merged = model.merge(1, 2)
    means = merged.prevalence_.mean(axis=0)
    assert np.all(np.diff(means) <= 0)
    assert set(merged.class_names_) == {"c0", "c1+c2"}


def test_a_merge_changes_nothing_it_need_not(model, penguins):
    before = model.prevalence_.copy()
    merged = model.merge(0, 1)
    assert_array_equal(model.prevalence_, before)
    assert merged.estimator is model
    assert merged.score(penguins.X, penguins.domains) == model.score(
        penguins.X, penguins.domains
    )
    known = set(zip(model.labels_.tolist(), merged.labels_.tolist(), strict=True))
    assert len(known) == 3
    assert_array_equal(merged.transform(penguins.X), merged.predict_proba(penguins.X))


def test_a_prevalence_of_merged_classes_is_split_as_in_training(model, penguins):
    merged = model.merge(0, 1)
    as_trained = merged.predict_proba(
        penguins.X, prevalence=merged.prevalence_.mean(axis=0)
    )
    assert_allclose(as_trained, merged.predict_proba(penguins.X), atol=1e-6)


def test_merged_classes_adapt(model, penguins):
    merged = model.merge(0, 1)
    rows = penguins.X[penguins.domains == "Biscoe"]
    found = merged.adapt(rows, random_state=0)
    assert_allclose(found.prevalence, merged.prevalence_[0], atol=0.1)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ((0,), "merge needs at least two different classes"),
        ((1, "c1"), "merge needs at least two different classes"),
        ((0, 1, 2), "merge would leave one class"),
        ((0, "c9"), "no class 'c9'; classes are"),
        (([0, 1],), "no class \\[0, 1\\]; classes are"),
    ],
)
def test_bad_merges_are_refused(model, classes, message):
    with pytest.raises(ValueError, match=message):
        model.merge(*classes)


def test_merged_classes_cannot_be_fitted(model, penguins):
    with pytest.raises(ValueError, match="merged classes cannot be fitted"):
        model.merge(0, 1).fit(penguins.X, penguins.domains)


def test_names_live_beside_the_classes(model, penguins):
    named = model.set_names({"c0": "Adelie", 1: "Gentoo"})
    assert named.class_names_ == ["Adelie", "Gentoo", "c2"]
    assert model.class_names_ == ["c0", "c1", "c2"]
    assert_array_equal(named.predict(penguins.X), model.predict(penguins.X))
    assert named.set_names({"Adelie": "A"}).class_names_[0] == "A"
    assert named.set_names(["a", "b", "c"]).class_names_ == ["a", "b", "c"]
    with pytest.raises(ValueError, match="names has 2 entries, the model has 3"):
        named.set_names(["a", "b"])
    with pytest.raises(ValueError, match="class names must differ"):
        named.set_names(["a", "a", "b"])
    assert "Adelie+Gentoo" in named.merge("Adelie", "Gentoo").class_names_


@pytest.fixture(scope="module")
def alike():
    """Three classes of about the same size: any two of them together come first."""
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=4, separation=4.0, random_state=1
    )
    return DomainMixture(3, search=False, random_state=0).fit(X, domains)


def test_a_class_that_was_never_named_is_called_by_its_new_id(alike):
    merged = alike.merge("c1", "c2", name="Sick")
    assert merged.groups[0] == [1, 2]
    assert merged.class_names_ == ["Sick", "c1"]
    assert merged.set_names({"c0": "Foo"}).class_names_ == ["Foo", "c1"]
    named = alike.set_names({"c0": "Well"}).merge("c1", "c2")
    assert named.class_names_ == ["c1+c2", "Well"]
    for name in ("c0", "c1"):  # what the other class was called, and is called now
        with pytest.raises(ValueError, match=f"got name='{name}', which another"):
            alike.merge("c1", "c2", name=name)


def test_no_class_is_called_by_the_id_of_another(alike):
    for names in ({"c0": "c1"}, {"c0": "c1", "c1": "c0"}, ["c0", "c2", "c1"]):
        with pytest.raises(ValueError, match="the id of another class; choose"):
            alike.set_names(names)
    assert alike.set_names({"c0": "c0", "c1": "c3"}).class_names_[1] == "c3"
    with pytest.raises(ValueError, match="no class 'c9'; classes are c0, c1, c2"):
        alike.set_names({"c9": "x"})


def test_ids_come_before_names_in_older_models(alike):
    crossed = alike.set_names(["a", "b", "c"])
    crossed.class_names_ = ["Sick", "c0", "c"]  # as merges once made them
    assert crossed.set_names({"c0": "Foo"}).class_names_ == ["Foo", "c0", "c"]
    assert crossed.merge("c0", "c2", name="x").class_names_ == ["x", "c1"]
