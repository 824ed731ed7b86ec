"""Estimators in notebooks: scikit-learn's picture first, then the prevalences."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from shoal import DomainMixture
from shoal.base._shown import found_html


def test_a_fitted_estimator_shows_its_prevalences(penguins, parse):
    ours = found_html(penguins.model)
    shown = penguins.model._repr_html_()
    assert shown.endswith(ours)
    assert "n_classes" in shown.removesuffix(ours)  # scikit-learn's table of parameters
    table = parse(ours).one("table", class_="shoal-repr")
    heads = [cell.text for cell in table.one("thead").all("th")]
    assert heads == ["domain", "Adelie", "Gentoo", "Chinstrap"]
    rows = table.one("tbody").all("tr")
    assert [row.one("th").text for row in rows] == ["Biscoe", "Dream", "Torgersen"]
    shown = [[float(cell.text.rstrip("%")) for cell in row.all("td")] for row in rows]
    expected = 100 * penguins.model.prevalence_
    np.testing.assert_allclose(shown, expected, atol=0.5001)


def test_an_unfitted_one_shows_only_its_parameters(penguins):
    shown = clone(penguins.model)._repr_html_()
    assert "shoal-repr" not in shown
    assert "DomainMixture" in shown


def test_both_ways_of_asking_agree(penguins):
    bundle = penguins.model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(penguins.model)
    assert found_html(penguins.model) in bundle["text/html"]


def test_plain_text_can_be_asked_for(penguins):
    with config_context(display="text"):
        assert not hasattr(penguins.model, "_repr_html_")
        assert list(penguins.model._repr_mimebundle_()) == ["text/plain"]


def test_names_are_escaped_and_many_domains_counted():
    class Fitted:
        prevalence_ = np.full((40, 2), 0.5)
        domains_ = np.array([f"<d{index}>" for index in range(40)])
        class_names_ = ("<b>", "c1")

    shown = found_html(Fitted())
    assert "<b>" not in shown
    assert "&lt;d0&gt;" in shown
    assert shown.count("<tr>") == 14
    assert "28 more domains" in shown


@pytest.mark.parametrize("name", ["_repr_html_", "_repr_mimebundle_"])
def test_parameters_are_not_changed_by_looking(name):
    model = DomainMixture(3)
    before = model.get_params()
    getattr(model, name)()
    assert model.get_params() == before


def test_the_verdict_is_shown_once_it_was_asked_for(penguins):
    model = DomainMixture(3, search=False, random_state=0)
    model = model.fit(penguins.data.X, penguins.data.domains)
    before = vars(model).copy()
    assert "Not checked yet" in found_html(model)
    diagnosis = model.diagnose(
        penguins.data.X, penguins.data.domains, n_permutations=2, random_state=0
    )
    assert vars(model).keys() == before.keys()  # asking changes no model
    shown = found_html(model.set_names(["<Adelie>", "Gentoo", "Chinstrap"]))
    assert "Use with caution.</strong> 3 classes in 3 domains." in shown
    reason = next(f.reason for f in diagnosis.findings if f.status == "caution")
    assert reason in shown
    assert "&lt;Adelie&gt;" in shown
