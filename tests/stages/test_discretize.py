"""Discretizers: k-means against its definition, point masses against Theorem 2."""

import sys

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from shoal.exceptions import SubsampleWarning
from shoal.probability import (
    class_given_domain,
    cluster_given_domain,
    match_rows,
    normalize_rows,
)
from shoal.stages._kmeans import _first_largest
from shoal.stages.discretize import (
    GivenClusters,
    KMeansDiscretizer,
    PointMassDiscretizer,
    assign_to_centers,
    assign_to_masses,
    find_point_masses,
    kmeans,
)
from support import (
    check_table_estimator,
    make_table_problem,
    parametrize_with_table_checks,
)
from support.battery import fitted_state

ENGINES = ["sklearn", "faiss"]


@pytest.fixture
def blobs(seed):
    """Four blobs in five dimensions, with the blob of each row."""
    rng = np.random.default_rng(seed)
    centers = 10 * np.eye(5)[:4]
    blob = rng.permutation(np.repeat(np.arange(4), [40, 60, 80, 100]))
    return centers[blob] + rng.normal(size=(280, 5)), blob


def same_partition(first, second):
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))


# ---- k-means ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blobs_are_found(blobs, engine, dtype, seed):
    points, blob = blobs
    points = points.astype(dtype)
    model = KMeansDiscretizer(4, engine=engine, random_state=seed).fit(points)
    assert same_partition(model.labels_, blob)
    assert model.n_clusters_ == 4
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(points), model.labels_)
    assert_array_equal(model.fit_predict(points), model.labels_)
    assert model.labels_.dtype.kind == "i"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_centers_are_the_means_of_their_rows(engine, weighted, seed):
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(4), size=400)
    weight = rng.uniform(0.1, 5, size=400) if weighted else np.ones(400)
    model = KMeansDiscretizer(6, engine=engine, max_iter=1000, random_state=seed)
    model.fit(points, sample_weight=weight if weighted else None)
    for cluster, center in enumerate(model.cluster_centers_):
        rows = model.labels_ == cluster
        mean = np.average(points[rows], axis=0, weights=weight[rows])
        # scikit-learn stops at tol=1e-4, faiss works in single precision
        assert_allclose(center, mean, atol=0.02)
        distance = ((points[rows][:, None] - model.cluster_centers_) ** 2).sum(axis=2)
        assert_array_equal(distance.argmin(axis=1), cluster)


def test_scikit_learn_is_called_as_it_is(blobs, seed):
    points, _ = blobs
    ours = KMeansDiscretizer(7, random_state=seed).fit(points)
    theirs = KMeans(7, n_init=5, max_iter=100, random_state=seed).fit(points)
    assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert_array_equal(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("engine", ENGINES)
def test_hellinger_is_euclidean_between_square_roots(engine, seed):
    points = np.random.default_rng(seed).dirichlet(np.ones(4), size=300)
    options = {"engine": engine, "random_state": seed}
    ours = KMeansDiscretizer(5, metric="hellinger", **options).fit(points)
    theirs = KMeansDiscretizer(5, **options).fit(np.sqrt(points))
    assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_array_equal(ours.predict(points), ours.labels_)
    with pytest.raises(ValueError, match="takes distributions, and points has negat"):
        ours.fit(points - 0.5)


def test_faiss_as_published(seed):
    """The paper's settings; its silent sample is repeated only when asked for."""
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(3), size=2_000).astype(np.float32)
    published = faiss.Kmeans(3, 3, niter=100, nredo=5, seed=seed)
    published.train(points)

    model = KMeansDiscretizer(3, engine="faiss", random_state=seed)
    model.set_params(max_points_per_centroid=256)
    message = r"a sample of 768 of 2000 rows \(max_points_per_centroid\)"
    with pytest.warns(SubsampleWarning, match=message):
        model.fit(points)
    assert_array_equal(model.cluster_centers_, published.centroids)

    whole = clone(model).set_params(max_points_per_centroid=None).fit(points)
    nearest = ((points[:, None] - whole.cluster_centers_) ** 2).sum(axis=2).argmin(1)
    means = [points[nearest == c].mean(axis=0) for c in range(3)]
    assert_allclose(whole.cluster_centers_, means, atol=1e-3)
    assert np.abs(whole.cluster_centers_ - published.centroids).max() > 1e-4


@pytest.mark.parametrize(
    ("engine", "cap"),
    [("faiss", {"max_points_per_centroid": 256}), ("sklearn", {"max_samples": 280})],
)
def test_a_cap_above_the_number_of_rows_is_none_at_all(blobs, engine, cap):
    points, _ = blobs
    model = KMeansDiscretizer(2, engine=engine, random_state=0)
    capped = clone(model).set_params(**cap).fit(points)  # a warning would be an error
    assert_array_equal(capped.cluster_centers_, model.fit(points).cluster_centers_)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stated_sample(blobs, engine, seed):
    points, blob = blobs
    model = KMeansDiscretizer(4, engine=engine, max_samples=60, random_state=seed)
    with pytest.warns(
        SubsampleWarning, match=r"sample of 60 of 280 rows \(max_samples"
    ):
        model.fit(points)
    assert len(model.labels_) == 280
    assert same_partition(model.labels_, blob)


def test_many_rows_are_sampled_aloud_unless_told_otherwise(monkeypatch, seed):
    """A sample of a hundredth finds the centers of all rows, and all are assigned."""
    assert KMeansDiscretizer().max_samples == 100_000
    rng = np.random.default_rng(seed)
    blob = np.repeat(np.arange(3), 34_000)
    points = rng.normal(size=(len(blob), 2), scale=0.05)
    points += np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[blob]
    model = KMeansDiscretizer(3, n_init=1, random_state=seed)
    with pytest.warns(SubsampleWarning, match="sample of 100000 of 102000 rows"):
        model.fit(points)
    assert same_partition(model.labels_, blob)
    model.set_params(max_samples=None).fit(points)
    assert same_partition(model.labels_, blob)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_assignment_is_to_the_nearest_also_far_from_the_origin(dtype, offset, seed):
    rng = np.random.default_rng(seed)
    points = (offset + rng.normal(size=(5_000, 3))).astype(dtype)
    centers = (offset + rng.normal(size=(7, 3))).astype(dtype)
    gap = points[:, None].astype(float) - centers.astype(float)
    distance = (gap**2).sum(axis=2)
    chosen = assign_to_centers(points, centers)
    nearest = distance.min(axis=1)
    assert_allclose(distance[np.arange(5_000), chosen], nearest, atol=1e-8)
    assert assign_to_centers(points[:1], centers) == chosen[0]


def test_missing_faiss_names_the_extra(monkeypatch, blobs):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'shoal\[faiss\]'"):
        KMeansDiscretizer(2, engine="faiss").fit(blobs[0])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_rows", [3, 50])
def test_fewer_distinct_points_than_clusters(engine, n_rows, seed):
    rng = np.random.default_rng(seed)
    words = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    which = np.r_[0, 1, 2, rng.integers(3, size=n_rows - 3)]
    model = KMeansDiscretizer(8, engine=engine, random_state=seed).fit(words[which])
    assert model.n_clusters_ == 3
    assert same_partition(model.labels_, which)
    assert_array_equal(np.sort(model.cluster_centers_, axis=0), np.sort(words, axis=0))


@pytest.mark.parametrize("engine", ENGINES)
def test_points_that_nearly_coincide(engine, seed):
    rng = np.random.default_rng(seed)
    words = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    points = words[rng.integers(3, size=300)] + 1e-15 * rng.normal(size=(300, 2))
    model = KMeansDiscretizer(20, engine=engine, random_state=seed).fit(points)
    assert 3 <= model.n_clusters_ <= 20
    assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_without_weight_do_not_move_centers(blobs, engine, seed):
    points, blob = blobs
    weight = (blob != 3).astype(float)
    options = {"engine": engine, "random_state": seed}
    with_all, _ = kmeans(points, 3, sample_weight=weight, **options)
    without, _ = kmeans(points[blob != 3], 3, sample_weight=np.ones(180), **options)
    assert_array_equal(with_all, without)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_decides_everything(engine, seed):
    points = np.random.default_rng(seed).dirichlet(np.ones(6), size=500)
    before = points.copy()
    fits = [
        KMeansDiscretizer(9, engine=engine, random_state=random_state).fit(points)
        for random_state in (seed, seed, np.random.RandomState(seed), seed + 1)
    ]
    assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert not np.array_equal(fits[0].cluster_centers_, fits[3].cluster_centers_)
    assert_array_equal(points, before)
    again = KMeansDiscretizer(
        9, engine=engine, random_state=np.random.RandomState(seed)
    ).fit(points)
    assert_array_equal(fits[2].cluster_centers_, again.cluster_centers_)


def test_a_row_alone_and_in_a_batch(seed):
    points = np.random.default_rng(seed).dirichlet(np.ones(30), size=2_000)
    model = KMeansDiscretizer(20, n_init=1, random_state=seed).fit(points)
    alone = [model.predict(points[[row]])[0] for row in range(0, 2_000, 50)]
    assert_array_equal(alone, model.predict(points)[::50])


def test_assign_to_centers_is_the_nearest(seed):
    rng = np.random.default_rng(seed)
    points, centers = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    slow = [min(range(4), key=lambda c: ((p - centers[c]) ** 2).sum()) for p in points]
    assert_array_equal(assign_to_centers(points, centers), slow)
    assert_array_equal(assign_to_centers(points, centers[[0, 0]]), 0)


@given(st.sampled_from([1, 2, 20, 255, 256, 300]), st.integers(0, 2**16))
def test_first_largest_is_argmax(n_rows, seed):
    """Whole numbers tie often; one column is NaN, as after an overflow."""
    table = np.random.default_rng(seed).integers(0, 4, (n_rows, 30)).astype(float)
    table[:, 7] = np.nan
    assert_array_equal(_first_largest(table), table.argmax(axis=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number from 1, got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"n_init": 0}, "n_init must be a whole number from 1"),
        ({"max_iter": -1}, "max_iter must be a whole number from 1"),
        ({"metric": "cosine"}, "metric must be one of 'euclidean', 'hellinger', got"),
        ({"engine": "torch"}, "engine must be one of 'sklearn', 'faiss', got 'torch'"),
        ({"max_samples": 3}, "max_samples must be None or .* n_clusters=8, got 3"),
        ({"max_samples": 0.5}, "max_samples must be None or a whole number"),
        ({"max_points_per_centroid": 256}, "an option of engine='faiss'; use max_samp"),
        (
            {"max_points_per_centroid": 0, "engine": "faiss"},
            "max_points_per_centroid must be a whole number from 1, got 0",
        ),
    ],
)
def test_bad_options_of_kmeans(options, message, blobs):
    with pytest.raises(ValueError, match=message):
        KMeansDiscretizer(**options).fit(blobs[0])


# ---- point masses -----------------------------------------------------------------


def anchored_world(seed, n_classes=3, n_domains=5, n_anchors=4, n_mixed=40):
    """Finite space with several anchor inputs per class; population quantities.

    Returns prevalence, q(x|y) with one row per class, and the class each input is an
    anchor of (-1 for mixed inputs).
    """
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(n_classes), size=n_domains)
    anchor_of = np.r_[np.repeat(np.arange(n_classes), n_anchors), [-1] * n_mixed]
    mass = rng.uniform(0.5, 1, size=(n_classes, len(anchor_of)))
    for label in range(n_classes):
        mass[label, (anchor_of >= 0) & (anchor_of != label)] = 0
    # Half of the weight sits on anchors, so mixed inputs are light one by one.
    mass[:, anchor_of < 0] *= n_anchors / n_mixed
    return prevalence, normalize_rows(mass), anchor_of


def test_lemma_3_anchors_share_one_point_and_keep_it_to_themselves(seed):
    prevalence, inputs, anchor_of = anchored_world(seed)
    oracle = normalize_rows((prevalence @ inputs).T)  # f(x) = q(d|x), equal domains
    weight = (prevalence @ inputs).mean(axis=0)
    model = PointMassDiscretizer(epsilon=0.05).fit(oracle, sample_weight=weight)
    assert model.n_clusters_ == 4
    for label in range(3):
        clusters = np.unique(model.labels_[anchor_of == label])
        assert len(clusters) == 1
        assert_array_equal(
            np.flatnonzero(model.labels_ == clusters[0]),
            np.flatnonzero(anchor_of == label),
        )
        assert model.shares_[clusters[0]] == pytest.approx(
            weight[anchor_of == label].sum()
        )
    assert_array_equal(model.labels_[anchor_of < 0], 3)  # the rest comes last


def test_theorem_2_discretization_is_exact(seed):
    prevalence, inputs, anchor_of = anchored_world(seed)
    n_domains, n_inputs = prevalence.shape[0], inputs.shape[1]
    joint = prevalence @ inputs / n_domains  # q(d, x)
    domain, x = np.indices(joint.shape).reshape(2, -1)
    oracle = normalize_rows(joint.T)
    model = PointMassDiscretizer(epsilon=0.05).fit(
        oracle[x], sample_weight=joint.ravel()
    )
    clusters = model.predict(oracle)
    assert_array_equal(model.labels_, clusters[x])

    # The table of clusters is the product of both factors, with one anchor per class.
    table = cluster_given_domain(model.labels_, domain, 4, n_domains, joint.ravel())
    cluster_given_class = np.zeros((3, 4))
    for cluster in range(4):
        cluster_given_class[:, cluster] = inputs[:, clusters == cluster].sum(axis=1)
    assert_allclose(table, prevalence @ cluster_given_class, atol=1e-14)
    assert_array_equal((cluster_given_class[:, :3] > 0).sum(axis=0), 1)
    assert n_inputs == len(anchor_of)

    # The masses are q(d|y) itself; with q(d) = sum_y q(y) q(d|y) the rest follows.
    domain_given_class = model.masses_
    equal = np.full(n_domains, 1 / n_domains)
    class_weight = np.linalg.lstsq(domain_given_class.T, equal, rcond=None)[0]
    recovered = class_given_domain(domain_given_class, class_weight)
    order = match_rows(prevalence.T, recovered.T)
    assert_allclose(recovered[:, order], prevalence, atol=1e-12)


def test_sampled_rows_with_oracle_points(seed):
    rng = np.random.default_rng(seed)
    prevalence, inputs, anchor_of = anchored_world(seed)
    oracle = normalize_rows((prevalence @ inputs).T)
    joint = (prevalence @ inputs).ravel() / prevalence.shape[0]
    drawn = rng.choice(joint.size, p=joint, size=5_000) % inputs.shape[1]
    model = PointMassDiscretizer(epsilon=0.05).fit(oracle[drawn])
    assert model.n_clusters_ == 4
    assert_array_equal(model.labels_ == 3, anchor_of[drawn] < 0)
    new = np.array([[0.2] * 5, oracle[0]])
    assert model.predict(new)[0] == 3
    assert model.predict(new)[1] == model.predict(oracle)[0] < 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 30])
def test_masses_among_many_other_points(n_columns, dtype, seed):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(5, n_columns)).astype(dtype)
    which = rng.choice(6, size=3_000, p=[0.1, 0.12, 0.14, 0.16, 0.18, 0.3])
    points = rng.uniform(size=(3_000, n_columns)).astype(dtype)
    points[which < 5] = places[which[which < 5]]
    locations, shares = find_point_masses(points, 0.05)
    assert_array_equal(np.sort(locations, axis=0), np.sort(places, axis=0))
    assert locations.dtype == dtype
    assert_array_equal(shares, np.sort(np.bincount(which)[:5] / 3_000)[::-1])
    assert same_partition(assign_to_masses(points, locations), which)


def test_jitter_within_tol_on_awkward_places(seed):
    """Places on multiples of tol, where a grid of cells would tear masses apart."""
    rng = np.random.default_rng(seed)
    tol = 1e-3
    places = np.array([[0.0] * 30, [0.5] * 30, [0.5] * 29 + [0.502], [1.0] * 30])
    which = rng.integers(4, size=2_000)
    points = places[which] + rng.uniform(-tol / 2, tol / 2, size=(2_000, 30))
    model = PointMassDiscretizer(epsilon=0.2, tol=tol).fit(points)
    assert model.n_clusters_ == 5
    assert same_partition(model.labels_, which)
    nearest = np.abs(model.masses_[:, None] - places).max(axis=2).min(axis=1)
    assert (nearest <= tol / 2).all()


@given(st.integers(0, 2**31), st.integers(1, 4), st.sampled_from([0.02, 0.1, 0.34]))
def test_masses_of_a_finite_space_are_its_heavy_words(seed, n_columns, epsilon):
    rng = np.random.default_rng(seed)
    words = rng.permutation(100)[:, None] / 100 + np.zeros(n_columns)
    weight = rng.dirichlet(np.full(100, 0.05))
    drawn = rng.choice(100, p=weight, size=300)
    counts = np.bincount(drawn, minlength=100)
    heavy = np.flatnonzero(counts >= 300 * epsilon - 1e-9)
    locations, shares = find_point_masses(words[drawn], epsilon)
    assert_array_equal(np.sort(locations[:, 0]), np.sort(words[heavy, 0]))
    assert_allclose(np.sort(shares), np.sort(counts[heavy] / 300))
    clusters = assign_to_masses(words[drawn], locations)
    assert_array_equal(clusters == len(locations), ~np.isin(drawn, heavy))


def test_copies_and_weights_are_the_same_thing(seed):
    rng = np.random.default_rng(seed)
    words = rng.uniform(size=(30, 3))
    copies = rng.integers(1, 20, size=30)
    by_copies = find_point_masses(np.repeat(words, copies, axis=0), 0.04)
    by_weight = find_point_masses(words, 0.04, sample_weight=copies)
    assert_array_equal(by_copies[0], by_weight[0])
    assert_allclose(by_copies[1], by_weight[1])


def test_exact_equality_and_signed_zeros():
    points = np.array([[0.0, 1.0], [-0.0, 1.0], [0.1 + 0.2, 0.7], [0.3, 0.7]])
    locations, shares = find_point_masses(points, 0.5, tol=0)
    assert_array_equal(locations, [[0, 1]])
    assert shares == [0.5]
    assert_array_equal(assign_to_masses(points, locations, tol=0), [0, 0, 1, 1])


def test_share_of_exactly_epsilon_counts():
    points = np.repeat(np.arange(10.0), 10)[:, None]
    locations, _ = find_point_masses(points, 0.1)
    assert len(locations) == 10


def test_dense_clouds_with_a_wide_tol_end(seed):
    """More rows that might be masses than are tried: the heavy one is still found."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(20_000, 4))
    points[:400] = 0.25 + rng.uniform(-0.01, 0.01, size=(400, 4))
    locations, shares = find_point_masses(points, 0.02, tol=0.02)
    assert_allclose(locations, [[0.25] * 4], atol=0.01)
    assert shares[0] >= 0.02


def test_no_mass_is_an_error_with_advice(seed):
    points = np.random.default_rng(seed).uniform(size=(200, 3))
    assert find_point_masses(points, 0.05)[0].shape == (0, 3)
    assert_array_equal(assign_to_masses(points, np.empty((0, 3))), 0)
    message = "no point has a share of epsilon=0.05 of the 200 rows within tol=1e-06"
    with pytest.raises(ValueError, match=message):
        PointMassDiscretizer(epsilon=0.05).fit(points)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a share, 0 < epsilon <= 1, got 0"),
        ({"epsilon": 1.5}, "epsilon must be a share"),
        ({"epsilon": np.nan}, "epsilon must be a share"),
        ({"tol": -1}, "tol must be finite and not negative, got -1"),
        ({"tol": np.inf}, "tol must be finite"),
    ],
)
def test_bad_options_of_masses(options, message):
    with pytest.raises(ValueError, match=message):
        PointMassDiscretizer(**options).fit([[0.0], [0.0]])


# ---- given clusters ---------------------------------------------------------------


def test_given_clusters_are_taken_over():
    points = np.array([[0.0], [1.0], [0.2], [0.9]])
    model = GivenClusters(["near", "far", "near", "far"]).fit(points)
    assert_array_equal(model.labels_, [1, 0, 1, 0])
    assert_array_equal(model.clusters_, ["far", "near"])
    assert_allclose(model.cluster_centers_, [[0.95], [0.1]])
    assert_array_equal(model.predict([[0.3], [0.7]]), [1, 0])
    assert model.n_clusters_ == 2


def test_weights_move_the_means_of_given_clusters():
    model = GivenClusters([0, 0, 1, 1])
    model.fit([[0.0], [1.0], [5.0], [7.0]], sample_weight=[3, 1, 0, 0])
    assert_allclose(model.cluster_centers_, [[0.25], [6.0]])


def test_a_function_of_points_is_called_again(seed):
    points = np.random.default_rng(seed).dirichlet(np.ones(3), size=50)
    model = GivenClusters(lambda rows: rows.argmax(axis=1)).fit(points)
    assert_array_equal(model.labels_, points.argmax(axis=1))
    assert_array_equal(model.predict(points[:7]), model.labels_[:7])


def test_bad_given_clusters():
    with pytest.raises(ValueError, match="clusters has 2 entries, there are 3 points"):
        GivenClusters([0, 1]).fit([[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="clusters has 1 missing values"):
        GivenClusters([0, None]).fit([[0.0], [1.0]])
    model = GivenClusters(lambda rows: rows[:, 0]).fit([[0.0], [1.0]])
    with pytest.raises(ValueError, match="clusters gave 7.0, which fit has not seen"):
        model.predict([[7.0]])


# ---- what they share --------------------------------------------------------------

ALL = [
    KMeansDiscretizer(3, random_state=0),
    PointMassDiscretizer(0.2),
    GivenClusters([0, 0, 1, 1]),
]


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
class TestEveryDiscretizer:
    points = np.array([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9], [0.1, 0.9]])

    def test_clusters_are_counted_from_zero(self, model):
        fitted = clone(model).fit(self.points)
        assert_array_equal(fitted.labels_ == fitted.labels_[0], [1, 1, 0, 0])
        assert set(fitted.labels_) <= set(range(fitted.n_clusters_))
        assert_array_equal(fitted.predict(self.points), fitted.labels_)

    def test_not_fitted(self, model):
        with pytest.raises(NotFittedError):
            clone(model).predict(self.points)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([1, 2], r"one entry per row \(4\), got shape \(2,\)"),
            ([1, 2, 3, np.nan], "sample_weight must be finite and not negative"),
            ([1, 2, 3, -1], "sample_weight must be finite and not negative"),
            ([0, 0, 0, 0], "sample_weight is zero everywhere"),
        ],
    )
    def test_bad_weights(self, model, weight, message):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(self.points, sample_weight=weight)

    def test_bad_points(self, model):
        with pytest.raises(ValueError, match="NaN or infinite"):
            clone(model).fit([[np.nan, 1.0]] * 4)
        fitted = clone(model).fit(self.points)
        with pytest.raises(ValueError, match="X has 1 features"):
            fitted.predict([[1.0]])


# ---- the battery of table checks --------------------------------------------------

POINTS = make_table_problem(3, stochastic=False)
BATTERY = [
    KMeansDiscretizer(4, random_state=0),
    KMeansDiscretizer(4, engine="faiss", random_state=0),
    PointMassDiscretizer(0.05),
    GivenClusters(lambda points: points.argmax(axis=1)),
]


@parametrize_with_table_checks(BATTERY, problem=POINTS)
def test_table_contract(estimator, check):
    check(estimator)
    assert fitted_state(estimator) == {}  # a copy was looked at


def test_how_many_checks_ran():
    for estimator in BATTERY:
        assert len(check_table_estimator(estimator, problem=POINTS)) == 13
