"""Plots: what is drawn is what was computed, on the axes that were given."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

import shoal
from shoal import DomainMixture, choose_n_classes, plots
from shoal.analysis._profile import contrast_features, domain_plane, feature_plane
from shoal.analysis.diagnose import diagnose
from shoal.datasets import load_penguins
from shoal.plots._results import STATUS

mpl.use("agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return load_penguins()


@pytest.fixture(scope="module")
def model(data):
    model = DomainMixture(3, search=False, random_state=0).fit(data.X, data.domains)
    return model.set_names(["Adelie", "Gentoo", "Chinstrap"])


@pytest.fixture(scope="module")
def intervals(model, data):
    return model.bootstrap(data.X, data.domains, n_resamples=8, random_state=0)


@pytest.fixture(scope="module")
def diagnosis(model, data):
    return diagnose(
        model, data.X, data.domains, n_permutations=2, n_simulations=2, random_state=0
    )


@pytest.fixture(scope="module")
def choice(data):
    return choose_n_classes(
        data.X, data.domains, [2, 3, 4], n_resamples=0, random_state=0
    )


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def labels(ticks):
    return [text.get_text() for text in ticks]


def test_prevalence_dots_are_the_estimates(model):
    ax = plots.plot_prevalence(model)
    assert [line.get_label() for line in ax.lines] == ["Adelie", "Gentoo", "Chinstrap"]
    for index, line in enumerate(ax.lines):
        assert_allclose(line.get_xdata(), 100 * model.prevalence_[:, index])
        assert_allclose(np.round(line.get_ydata()), [0, 1, 2])
    assert labels(ax.get_yticklabels()) == ["Biscoe", "Dream", "Torgersen"]
    assert len({line.get_marker() for line in ax.lines}) == 3
    assert not ax.collections


def test_prevalence_lines_are_the_intervals(intervals):
    ax = plots.plot_prevalence(intervals)
    for index in range(3):
        wide, half = ax.collections[2 * index : 2 * index + 2]
        ends = np.array([path[:, 0] for path in wide.get_segments()])
        assert_allclose(ends[:, 0], 100 * intervals.low[:, index])
        assert_allclose(ends[:, 1], 100 * intervals.high[:, index])
        ends = np.array([path[:, 0] for path in half.get_segments()])
        inner = [end[:, index] for end in intervals.middle_half()]
        assert_allclose(ends.T, 100 * np.array(inner))


def test_simplex_points_are_in_the_plane_of_the_corners(model, data):
    ax = plots.plot_simplex(model, data.X, data.domains)
    *groups, corners = ax.collections
    T = model.domain_given_class_
    plane = domain_plane(model._class_given_x(data.X) @ T, T)
    classes = model.predict(data.X, data.domains)
    for index, group in enumerate(groups):
        assert_allclose(group.get_offsets(), plane.points[classes == index])
        assert group.get_label() == model.class_names_[index]
    assert_allclose(corners.get_offsets(), plane.corners)
    assert [text.get_text() for text in ax.texts] == model.class_names_


def test_simplex_draws_no_more_points_than_asked(model, data):
    *groups, _ = plots.plot_simplex(model, data.X, max_points=50).collections
    assert sum(len(group.get_offsets()) for group in groups) == 50


def test_profile_bars_are_the_differences(model, data):
    ax = plots.plot_class_profile(
        model, data.X, data.domains, "Gentoo", feature_names=data.feature_names
    )
    proba = model.predict_proba(data.X, data.domains)
    difference = contrast_features(data.X, proba).difference[1]
    order = np.argsort(-np.abs(difference))
    assert_allclose([bar.get_width() for bar in ax.patches], difference[order])
    assert labels(ax.get_yticklabels()) == [data.feature_names[j] for j in order]
    assert ax.get_title(loc="left") == "Gentoo"
    few = plots.plot_class_profile(model, data.X, data.domains, 1, n_features=2)
    assert len(few.patches) == 2


def test_curve_of_numbers_of_classes(choice):
    ax = plots.plot_choice(choice)
    assert_allclose(ax.lines[0].get_xdata(), choice.candidates)
    assert_allclose(ax.lines[0].get_ydata(), choice.held_out)
    points = ax.collections[-1]
    assert_allclose(points.get_offsets()[:, 1], choice.held_out)
    largest = choice.candidates[points.get_sizes().argmax()]
    assert largest == choice.n_classes
    hollow = np.array(
        [tuple(face[:3]) == (1, 1, 1) for face in points.get_facecolors()]
    )
    assert (hollow == ~choice.identifiable).all()
    assert ax.texts[0].get_text() == "chosen"


def test_no_clear_number_has_no_mark(choice):
    from dataclasses import replace

    ax = plots.plot_choice(replace(choice, n_classes=None))
    assert "chosen" not in [text.get_text() for text in ax.texts]


def test_findings_are_marked_by_place_and_shape(diagnosis):
    ax = plots.plot_diagnosis(diagnosis)
    columns = ["ok", "caution", "fail"]
    for place, (line, finding) in enumerate(
        zip(ax.lines, diagnosis.findings, strict=True)
    ):
        assert line.get_xdata()[0] == columns.index(finding.status)
        assert line.get_ydata()[0] == place
        assert line.get_marker() == STATUS[finding.status][0]
    assert ax.get_title(loc="left") == f"verdict: {diagnosis.verdict}"
    assert labels(ax.get_xticklabels())[0] == "no sign"


def test_shifts_are_written_into_their_cells(diagnosis):
    ax = plots.plot_diagnosis(diagnosis, kind="alike")
    shift = np.asarray(diagnosis.numbers["class_domain_shift"]).T
    assert_allclose(np.ma.filled(ax.images[0].get_array(), np.nan), shift)
    written = [text.get_text() for text in ax.texts]
    assert written == ["–" if np.isnan(v) else f"{v:.1f}" for v in shift.ravel()]
    with pytest.raises(ValueError, match="kind must be 'checks' or 'alike'"):
        plots.plot_diagnosis(diagnosis, kind="pie")


def test_given_axes_are_used_and_returned(model, data, intervals, diagnosis, choice):
    draw = [
        lambda ax: plots.plot_prevalence(intervals, ax=ax),
        lambda ax: plots.plot_simplex(model, data.X, ax=ax),
        lambda ax: plots.plot_class_profile(model, data.X, data.domains, 0, ax=ax),
        lambda ax: plots.plot_choice(choice, ax=ax),
        lambda ax: plots.plot_diagnosis(diagnosis, ax=ax),
        lambda ax: plots.plot_diagnosis(diagnosis, kind="alike", ax=ax),
    ]
    _, axes = plt.subplots(2, 3)
    for one, ax in zip(draw, axes.flat, strict=True):
        assert one(ax) is ax
    assert plt.get_fignums() == [1]  # nothing new was opened
    axes.flat[0].figure.canvas.draw()


def test_map_leaves_out_stripes_and_shows_every_row(model, data):
    year = np.resize([2007.0, 2008.0], len(data.X))
    X = np.column_stack([data.X, year])
    wide = DomainMixture(3, search=False, random_state=0).fit(X, data.domains)
    ax = plots.plot_map(wide, X, data.domains)
    drawn = sorted(tuple(p) for group in ax.collections for p in group.get_offsets())
    expected = sorted(tuple(p) for p in feature_plane(data.X, 0).points)
    assert_allclose(drawn, expected, atol=1e-9)
    assert ax.get_xlabel().startswith("direction 1 (")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["c0", "c1", "c2"]


def test_classes_lie_at_their_standardized_means(model, data):
    ax = plots.plot_classes(
        model, data.X, data.domains, feature_names=data.feature_names, n_features=3
    )
    proba = model.predict_proba(data.X, data.domains)
    standard = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    shown = labels(ax.get_yticklabels())
    assert len(shown) == 3
    columns = [data.feature_names.index(name) for name in shown]
    for index, line in enumerate(ax.lines[:3]):
        means = np.average(standard, axis=0, weights=proba[:, index])
        assert_allclose(line.get_xdata(), means[columns], atol=1e-9)
        assert line.get_label() == model.class_names_[index]


def test_models_draw_themselves_as_the_functions_do(model, data, intervals):
    rows = data.X, data.domains
    _, axes = plt.subplots(1, 4)
    drawn = [
        (model.plot_prevalence(ax=axes[0]), plots.plot_prevalence(model)),
        (model.plot_prevalence(intervals), plots.plot_prevalence(intervals)),
        (model.plot_map(*rows, ax=axes[1]), plots.plot_map(model, *rows)),
        (model.plot_classes(*rows, ax=axes[2]), plots.plot_classes(model, *rows)),
    ]
    for method, function in drawn:
        for one, other in zip(method.lines, function.lines, strict=True):
            assert_allclose(one.get_xdata(), other.get_xdata())
        assert method.get_xlabel() == function.get_xlabel()
    assert drawn[0][0] is axes[0]
    choice = model.plot_choice(*rows, [2, 3], ax=axes[3])
    assert choice is axes[3]
    assert choice.lines[0].get_xdata().tolist() == [2, 3]


def test_importing_plots_does_not_import_matplotlib():
    code = "import sys, shoal.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_an_explanation_is_a_bar_for_each_part(model, data):
    found = model.explain(data.X[0], "Torgersen")
    ax = plots.plot_explanation(found, n_classes=3)
    parts = found.to_records()
    widths = [bar.get_width() for bar in ax.patches]
    assert_allclose(widths, [one["nats"] for one in parts] + [found.log_odds])
    assert labels(ax.get_yticklabels())[0] == "(domain) = Torgersen"
    assert labels(ax.get_yticklabels())[-1] == "all together"
    few = plots.plot_explanation(found, most=1)
    widths = [bar.get_width() for bar in few.patches]
    assert labels(few.get_yticklabels())[-2] == "3 more columns"
    assert_allclose(sum(widths[:-1]), widths[-1])


def test_an_update_shows_then_and_now(model, data):
    rows = data.X[:80], np.where(np.arange(80) < 40, "Torgersen", "Anvers")
    found = shoal.update(model, *rows, before=(data.X, data.domains))
    ax = plots.plot_update(found)
    names = labels(ax.get_yticklabels())
    assert names == [
        f"{one.name} (new)" if one.is_new else one.name for one in found.domains
    ]
    for y, (now, then) in enumerate(zip(ax.lines[::2], ax.lines[1::2], strict=True)):
        assert_allclose(now.get_xdata(), [one.prevalence[y] for one in found.domains])
        known = [one for one in found.domains if not one.is_new]
        assert_allclose(then.get_xdata(), [one.before[y] for one in known])
