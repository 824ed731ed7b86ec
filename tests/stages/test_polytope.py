"""Appendix F: corners of the smallest simplex around the points f(x)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import class_posterior, domain_given_class, match_rows
from shoal.stages.adjust import simplex_least_squares
from shoal.stages.factorize import (
    minimum_volume_polytope,
    successive_nonnegative_projection,
    successive_projection,
)
from shoal.stages.factorize._polytope import (
    WORKING_SET,
    newton_step,
    smallest_simplex,
    wall_slope,
    wall_value,
)
from support.data import well_conditioned


def draw_corners(rng, n_classes, n_domains):
    return domain_given_class(well_conditioned(rng, n_classes, n_domains))


def draw_posteriors(rng, n_classes, n_rows, anchor_share):
    """q(y|x) of sampled rows; a share of them is certain (in an anchor sub-domain)."""
    posterior = rng.dirichlet(np.full(n_classes, 0.5), n_rows)
    certain = rng.random(n_rows) < anchor_share
    posterior[certain] = np.eye(n_classes)[rng.integers(n_classes, size=certain.sum())]
    return posterior


def draw_scattered(rng, n_classes, n_rows):
    """q(y|x) that rules out one class or more, and is never certain."""
    posterior = rng.dirichlet(np.ones(n_classes), n_rows)
    ranks = posterior.argsort(axis=1).argsort(axis=1)
    posterior[ranks >= rng.integers(2, n_classes, n_rows)[:, None]] = 0
    return posterior / posterior.sum(axis=1, keepdims=True)


def corner_error(truth, corners):
    return np.abs(corners[match_rows(truth, corners)] - truth).max()


# ---- exact f ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_classes", "n_domains"), [(2, 2), (3, 5), (5, 5), (10, 15), (20, 30)]
)
@pytest.mark.parametrize("problem_seed", range(20))
def test_sampled_rows_with_oracle_points_are_exact(n_classes, n_domains, problem_seed):
    """However few the rows: no cell is counted, so there is no sampling error."""
    rng = np.random.default_rng(problem_seed)
    corners = draw_corners(rng, n_classes, n_domains)
    class_given_x = draw_posteriors(rng, n_classes, 40 * n_classes, anchor_share=0.3)
    class_given_x[:n_classes] = np.eye(n_classes)
    points = rng.permutation(class_given_x) @ corners
    found = minimum_volume_polytope(points, n_classes)
    assert corner_error(corners, found) < 1e-9

    matched = found[match_rows(corners, found)]
    # Rows come from domains that can produce them (Lemma 2 asks for q(x, d) > 0).
    codes = [rng.choice(n_domains, p=row) for row in class_given_x @ corners]
    got = simplex_least_squares(class_given_x @ corners, matched)
    assert_allclose(
        class_posterior(got, matched, codes),
        class_posterior(class_given_x, corners, codes),
        atol=1e-6,
    )


@pytest.mark.parametrize(("n_classes", "n_domains"), [(3, 4), (5, 8), (10, 12)])
def test_points_on_every_facet_are_enough(n_classes, n_domains, seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, n_classes, n_domains)
    points = draw_scattered(rng, n_classes, 60 * n_classes) @ corners
    found = minimum_volume_polytope(points, n_classes)
    assert corner_error(corners, found) < 1e-6
    start = points[successive_projection(points, n_classes)]
    assert corner_error(corners, start) > 1e-3


def test_a_hundred_thousand_points(seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 6, 8)
    anchored = draw_posteriors(rng, 6, 100_000, anchor_share=0.001) @ corners
    assert corner_error(corners, minimum_volume_polytope(anchored, 6)) < 1e-9
    scattered = draw_scattered(rng, 6, 100_000) @ corners
    found = minimum_volume_polytope(scattered, 6, random_state=seed)
    assert corner_error(corners, found) < 1e-6


def test_two_classes_are_the_ends_of_a_segment(seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 2, 5)
    chance = rng.uniform(0.1, 0.8, 200)
    found = minimum_volume_polytope(np.c_[chance, 1 - chance] @ corners, 2)
    ends = np.array([[low, 1 - low] for low in (chance.min(), chance.max())]) @ corners
    assert corner_error(ends, found) < 1e-8


def test_no_nearby_triangle_is_smaller(seed):
    """k = 3: random enclosing triangles are never smaller; mid-sides touch points."""
    rng = np.random.default_rng(seed)
    points = rng.dirichlet([2, 3, 4], 100)
    corners, _ = smallest_simplex(points, 3, weight=np.full(100, 0.01))
    area = abs(np.linalg.det(corners))
    assert (points @ np.linalg.inv(corners)).min() > -1e-8
    for _ in range(300):
        other = corners + rng.normal(scale=10 ** rng.uniform(-4, -1), size=(3, 3))
        other /= other.sum(axis=1, keepdims=True)
        inside = points @ np.linalg.inv(other)
        # Grow it about its centre until it encloses all points.
        growth = max(1.0, 1 - 3 * inside.min())
        assert abs(np.linalg.det(other)) * growth**2 >= area * (1 - 1e-7)
    # Klee's theorem: the middle of every side of a minimal triangle is in the hull.
    for side in range(3):
        middle = np.delete(corners, side, axis=0).mean(axis=0)
        nearest = simplex_least_squares(middle[None], points) @ points
        assert_allclose(nearest[0], middle, atol=1e-5)


# ---- noisy f ----------------------------------------------------------------------


def noisy_points(rng, corners, n_rows, precision):
    clean = draw_posteriors(rng, len(corners), n_rows, anchor_share=0.5) @ corners
    return np.array([rng.dirichlet(row * precision + 1e-3) for row in clean])


def test_at_most_the_stated_share_is_beyond_a_facet(seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 4, 6)
    points = noisy_points(rng, corners, 2_000, precision=300)
    errors = []
    for outside in (0.0, 0.02, 0.1, 0.25):
        found, _ = smallest_simplex(
            points, 4, weight=np.full(2_000, 1 / 2_000), outside=outside
        )
        # Coordinates of the points within the simplex's own subspace.
        beyond = (points @ np.linalg.pinv(found) < -1e-6).mean(axis=0)
        assert (beyond <= outside + 0.002).all()
        if outside:
            assert (beyond > 0.7 * outside).all()
        errors.append(corner_error(corners, found))
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 0.3 * errors[0]


def test_heavy_anchors_stay_corners_although_some_may_be_cut(seed):
    """Exact when every anchor weighs outside / (k-1) or more; more points than fit."""
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 4, 6)
    for n_rows in (1_000, 2 * WORKING_SET):
        points = draw_posteriors(rng, 4, n_rows, anchor_share=0.4) @ corners
        found = minimum_volume_polytope(points, 4, outside=0.1, random_state=seed)
        assert corner_error(corners, found) < 1e-6


def test_weights_are_counts(seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 3, 4)
    points = noisy_points(rng, corners, 200, precision=100)
    counts = rng.integers(1, 4, 200)
    weighted = minimum_volume_polytope(points, 3, outside=0.1, sample_weight=counts)
    repeated = minimum_volume_polytope(
        np.repeat(points, counts, axis=0), 3, outside=0.1
    )
    assert_allclose(weighted, repeated, atol=1e-6)


# ---- invariances and parts --------------------------------------------------------


def test_order_of_rows_and_precision_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 5, 7)
    points = draw_posteriors(rng, 5, 500, anchor_share=0.2) @ corners
    plain = minimum_volume_polytope(points, 5)
    assert_allclose(
        minimum_volume_polytope(rng.permutation(points), 5), plain, atol=1e-9
    )
    single = minimum_volume_polytope(points.astype(np.float32), 5)
    assert_allclose(single, plain, atol=1e-4)
    domains = rng.permutation(7)
    moved = minimum_volume_polytope(points[:, domains], 5)
    assert_allclose(moved, plain[:, domains], atol=1e-9)


def test_classes_come_in_decreasing_prevalence():
    corners = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    for first, second in [(3, 1), (1, 3)]:
        points = np.repeat(corners, [first, second], axis=0)
        found = minimum_volume_polytope(points, 2)
        expected = corners if first > second else corners[::-1]
        assert_allclose(found, expected, atol=1e-9)


def test_wall_is_a_soft_hinge_with_these_derivatives():
    g = np.linspace(-0.3, 0.4, 71)
    for width in (0.5, 0.05, 0.01):
        eps = 1e-6 * width
        slope, curvature = wall_slope(g, width)
        numeric = wall_value(g - eps, width) - wall_value(g + eps, width)
        assert_allclose(slope, numeric / (2 * eps), rtol=1e-5)
        low, high = wall_slope(g - eps, width)[0], wall_slope(g + eps, width)[0]
        assert_allclose(curvature, (low - high) / (2 * eps), rtol=1e-4)
    hard = wall_value(g, 1e-9) - wall_value(np.zeros(1), 1e-9)
    assert_allclose(hard, np.maximum(0, -g), atol=1e-6)


def test_newton_step_descends_and_keeps_coordinates_summing_to_one(seed):
    rng = np.random.default_rng(seed)
    points = np.c_[rng.normal(size=(50, 3)), np.ones(50)]
    unmix = np.linalg.inv(points[successive_projection(points, 4)])
    step, decrease = newton_step(points, unmix, np.full(50, 6.0), 0.01)
    assert decrease > 0
    assert_allclose(step.sum(axis=1), 0, atol=1e-9)
    assert_allclose((points @ (unmix + step)).sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize(
    "pick", [successive_projection, successive_nonnegative_projection]
)
def test_anchor_picking_finds_every_corner_once(pick, seed):
    rng = np.random.default_rng(seed)
    corners = draw_corners(rng, 6, 9)
    points = np.r_[rng.dirichlet(np.ones(6), 50) @ corners, corners, corners]
    chosen = pick(points, 6)
    assert sorted((chosen - 50) % 6) == list(range(6))
    assert (chosen >= 50).all()


def test_more_corners_than_directions_go_on_by_distance():
    """A square in the plane has four corners but three independent directions."""
    square = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]]) / 2
    points = np.r_[square, [[0.25] * 4, [0.3, 0.2, 0.3, 0.2]]]
    assert sorted(successive_projection(points, 4)) == [0, 1, 2, 3]


# ---- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_classes": 1}, "n_classes must be a whole number from 2, got 1"),
        ({"n_classes": 2.5}, "n_classes must be a whole number from 2, got 2.5"),
        ({"n_classes": 5}, "n_classes=5 corners do not fit in 4 domains"),
        ({"n_classes": 4}, "has 3 rows, a simplex with n_classes=4"),
        ({"outside": 1.0}, r"outside must be in \[0, 1\), got 1.0"),
        ({"outside": -0.1}, r"outside must be in \[0, 1\), got -0.1"),
        ({"sample_weight": [1, 2]}, r"one entry per row \(3\)"),
        ({"sample_weight": [1, -2, 1]}, "finite and not negative"),
        ({"domain_given_x": np.ones((3, 4))}, "must sum to 1"),
    ],
)
def test_bad_input_is_named(change, message):
    points = np.eye(4)[:3]
    arguments = {"domain_given_x": points, "n_classes": 2} | change
    with pytest.raises(ValueError, match=message):
        minimum_volume_polytope(**arguments)


def test_points_on_a_line_hold_no_third_class(seed):
    chance = np.random.default_rng(seed).random(20)
    points = np.c_[chance, 1 - chance] @ [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    with pytest.warns(IdentifiabilityWarning, match="span 1 dimensions"):
        found = minimum_volume_polytope(points, 3)
    assert_allclose(found.sum(axis=1), 1)
