"""Generated problems: exact truths, real violations, the same sample every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from shoal.datasets._generated import KINDS, VIOLATIONS, make_latent_shift
from shoal.datasets._worlds import apportion
from shoal.probability import class_posterior, condition_number, normalize_rows
from shoal_bench.published import paper_prevalence

ALL_KINDS = [*KINDS, *VIOLATIONS]
CLOUDS = [kind for kind in ALL_KINDS if kind != "anchored"]


def generate(n_samples=3000, **arguments):
    return make_latent_shift(n_samples, return_bunch=True, **arguments)


def share_of(values, n_values):
    return np.bincount(values, minlength=n_values) / len(values)


# Every kind


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_truths_fit_together(kind, seed):
    data = generate(kind=kind, n_classes=5, random_state=seed)
    n_domains, n_classes = data.prevalence.shape
    assert n_classes == 5
    assert data.X.shape[0] == len(data.domains) == len(data.labels) == 3000
    assert set(data.domains) == set(range(n_domains))
    assert data.labels.max() < 5
    for matrix in (
        data.prevalence,
        data.domain_given_class,
        data.class_given_x,
        data.domain_given_x,
        data.posterior,
    ):
        assert_allclose(matrix.sum(axis=1), 1, atol=1e-9)
        assert (matrix >= 0).all()
    # q(d, y) the same from both sides, with domains of equal weight.
    joint = data.prevalence / n_domains
    assert_allclose(data.domain_given_class * joint.sum(axis=0)[:, None], joint.T)
    assert_array_equal(data.bayes_posterior(data.X), data.class_given_x)
    assert_array_equal(data.bayes_posterior(data.X, data.domains), data.posterior)
    assert_array_equal(data.bayes_discriminator(data.X), data.domain_given_x)


@pytest.mark.parametrize("kind", [k for k in ALL_KINDS if k not in ("drift", "leak")])
def test_label_shift_holds_unless_it_is_the_violation(kind, seed):
    """q(d|x) = q(y|x) T and Lemma 2, exactly."""
    data = generate(kind=kind, n_classes=4, random_state=seed)
    assert_allclose(
        data.domain_given_x, data.class_given_x @ data.domain_given_class, atol=1e-12
    )
    expected = class_posterior(
        data.class_given_x, data.domain_given_class, data.domains
    )
    assert_allclose(data.posterior, expected, atol=1e-9)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_same_arguments_same_sample(kind, seed):
    first = make_latent_shift(500, kind=kind, n_classes=4, random_state=seed)
    again = make_latent_shift(500, kind=kind, n_classes=4, random_state=seed)
    other = make_latent_shift(500, kind=kind, n_classes=4, random_state=seed + 1)
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    assert (first[0] != other[0]).any()
    bunch = generate(500, kind=kind, n_classes=4, random_state=seed)
    assert_array_equal(bunch.X, first[0])
    assert_array_equal(bunch.labels, first[2])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_posteriors_are_calibrated(kind, seed):
    """Rows whose posterior says p are of that class a share p of the time.

    With one standard error of .5 / sqrt(rows), five of them are allowed.
    """
    data = generate(20_000, kind=kind, n_classes=4, random_state=seed)
    confidence = data.posterior.ravel()
    is_class = np.eye(4)[data.labels].ravel()
    for low in np.arange(0, 1, 0.2):
        here = (confidence > low) & (confidence <= low + 0.2)
        if here.sum() > 100:
            gap = abs(confidence[here].mean() - is_class[here].mean())
            assert gap < 5 * 0.5 / np.sqrt(here.sum())


def test_parts_do_not_disturb_each_other(seed):
    """One seed: other alphas leave the clouds, violations leave labels and mixes."""
    plain = generate(1000, random_state=seed)
    flatter = generate(1000, alpha=10, max_condition=None, random_state=seed)
    assert_array_equal(plain.means, flatter.means)
    for violation in ({"drift": 0.5}, {"leakage": 2.0}):
        broken = generate(1000, random_state=seed, **violation)
        assert_array_equal(broken.labels, plain.labels)
        assert_array_equal(broken.domains, plain.domains)
        assert_array_equal(broken.prevalence, plain.prevalence)


# Prevalences and counts


def test_empirical_prevalence_converges(seed):
    """The error falls like one over the root of the rows."""
    errors = []
    for n_samples in (1000, 100_000):
        data = generate(n_samples, n_classes=5, n_domains=5, random_state=seed)
        counts = np.zeros((5, 5))
        np.add.at(counts, (data.domains, data.labels), 1)
        errors.append(np.abs(normalize_rows(counts) - data.prevalence).mean())
    assert 4 < errors[0] / errors[1] < 25
    assert errors[1] < 0.005


def test_exact_counts(seed):
    data = generate(1000, n_classes=4, n_domains=5, counts="exact", random_state=seed)
    counts = np.zeros((5, 4))
    np.add.at(counts, (data.domains, data.labels), 1)
    assert_array_equal(counts.sum(axis=1), 200)
    assert np.abs(counts - 200 * data.prevalence).max() < 1


@given(
    share=st.lists(st.floats(0.001, 1), min_size=1, max_size=12),
    total=st.integers(0, 1000),
)
@settings(max_examples=200)
def test_apportion_is_whole_complete_and_close(share, total):
    got = apportion(share, total)
    assert got.sum() == total
    assert np.abs(got - np.array(share) / sum(share) * total).max() <= 1 + 1e-9


def test_given_prevalence_is_used(seed):
    prevalence = [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]
    data = generate(prevalence=prevalence, random_state=seed)
    assert_allclose(data.prevalence, prevalence)


def test_drawn_prevalence_keeps_the_limit(seed):
    data = generate(n_classes=4, n_domains=6, max_condition=4, random_state=seed)
    assert condition_number(data.prevalence) <= 4.001


def test_domain_sizes(seed):
    data = generate(700, n_classes=3, domain_sizes=[100, 100, 100, 100, 50, 250],
                    random_state=seed)  # fmt: skip
    assert_array_equal(np.bincount(data.domains), [100, 100, 100, 100, 50, 250])
    scaled = generate(70, n_classes=2, n_domains=3, domain_sizes=[4, 2, 1],
                      random_state=seed)  # fmt: skip
    assert_array_equal(np.bincount(scaled.domains), [40, 20, 10])


def test_further_rows_of_the_same_problem(seed):
    data = generate(n_classes=3, random_state=seed)
    X, domains, labels = data.problem.sample(50_000, random_state=seed)
    assert_allclose(share_of(domains, 6), 1 / 6, atol=1e-4)
    for label in range(3):
        assert_allclose(X[labels == label].mean(axis=0), data.means[label], atol=0.06)


# Bayes by a slow formula


def slow_joint(data, row):
    """p(x, d, y) from densities, one number at a time."""
    n_domains, n_classes = data.prevalence.shape
    joint = np.zeros((n_domains, n_classes))
    n_columns = data.centres.shape[2]
    for domain, label in np.ndindex(n_domains, n_classes):
        moved = 0 if data.drift is None else data.drift[domain, label]
        densities = [
            multivariate_normal.pdf(row[:n_columns], centre + moved)
            for centre in data.centres[label]
        ]
        density = np.mean(densities)
        if data.leak is not None:
            density *= norm.pdf(row[-1], data.leak[domain])
        joint[domain, label] = data.prevalence[domain, label] / n_domains * density
    return joint


@pytest.mark.parametrize("kind", CLOUDS)
def test_posteriors_equal_the_slow_formula(kind, seed):
    data = generate(600, kind=kind, n_classes=3, n_features=2, random_state=seed)
    for row, domain, class_given_x, domain_given_x, posterior in zip(
        data.X[:10],
        data.domains,
        data.class_given_x,
        data.domain_given_x,
        data.posterior,
        strict=False,
    ):
        joint = slow_joint(data, row)
        assert_allclose(class_given_x, joint.sum(axis=0) / joint.sum(), atol=1e-9)
        assert_allclose(domain_given_x, joint.sum(axis=1) / joint.sum(), atol=1e-9)
        assert_allclose(posterior, joint[domain] / joint[domain].sum(), atol=1e-9)


def test_one_domain_for_all_rows(seed):
    data = generate(200, n_classes=3, random_state=seed)
    by_scalar = data.bayes_posterior(data.X, 2)
    assert_array_equal(by_scalar, data.bayes_posterior(data.X, np.full(200, 2)))


def test_far_rows_keep_a_posterior(seed):
    """Where every density underflows, logarithms still know the nearest cloud."""
    data = generate(200, kind="drift", n_classes=3, random_state=seed)
    far = 1000 * (data.means[:1] + 1)
    for proba in (data.bayes_posterior(far), data.bayes_posterior(far, 0)):
        assert_allclose(proba.sum(), 1)


# Kinds


def test_anchored_words(seed):
    data = generate(20_000, kind="anchored", n_classes=4, n_words=50, random_state=seed)
    assert data.X.shape == (20_000, 1)
    assert data.word_given_class.shape == (4, 50)
    assert_allclose(data.word_given_class.sum(axis=1), 1)
    assert_allclose(data.word_given_domain, data.prevalence @ data.word_given_class)
    anchors = (data.word_given_class > 0).sum(axis=0) == 1
    owner = data.word_given_class.argmax(axis=0)
    mass = data.word_given_class[:, anchors].sum(axis=1)
    assert_allclose(mass, 0.3)
    assert set(owner[anchors]) == {0, 1, 2, 3}
    # Only anchors settle the class (Appendix A: one-hot exactly there).
    words = data.X[:, 0]
    settled = data.class_given_x.max(axis=1) == 1
    assert_array_equal(settled, anchors[words])
    assert_array_equal(data.labels[settled], owner[words[settled]])
    assert_allclose(
        share_of(words[data.labels == 2], 50), data.word_given_class[2], atol=0.02
    )


def test_words_that_a_domain_cannot_have_get_its_prevalence(seed):
    data = generate(100, kind="anchored", prevalence=[[1, 0], [0.5, 0.5]],
                    random_state=seed)  # fmt: skip
    anchor_of_1 = int(np.flatnonzero(
        (data.word_given_class[0] == 0) & (data.word_given_class[1] > 0))[0]
    )  # fmt: skip
    assert_allclose(data.bayes_posterior([[anchor_of_1]], 0), [[1, 0]])
    assert_allclose(data.bayes_posterior([[anchor_of_1]], 1), [[0, 1]])


def test_a_vocabulary_of_anchors_only(seed):
    data = generate(kind="anchored", n_classes=4, n_words=4, random_state=seed)
    assert_allclose(np.sort(data.word_given_class, axis=1)[:, -1], 1)
    assert_array_equal(data.posterior.argmax(axis=1), data.labels)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_multimodal_pieces_are_far_apart_and_beside_other_classes(n_classes, seed):
    data = generate(kind="multimodal", n_classes=n_classes, random_state=seed)
    centres = data.centres
    assert centres.shape[1] == 2
    own = np.linalg.norm(centres[:, 0] - centres[:, 1], axis=1)
    assert own.min() > 12
    flat, owner = centres.reshape(-1, 10), np.repeat(np.arange(n_classes), 2)
    gap = np.linalg.norm(flat[:, None] - flat[None], axis=2) + 1e9 * np.eye(len(flat))
    assert_allclose(gap.min(axis=1), 4)
    assert (owner[gap.argmin(axis=1)] != owner).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_xor_clouds(n_classes, seed):
    data = generate(kind="xor", n_classes=n_classes, n_features=3, random_state=seed)
    assert_allclose(data.means, 0, atol=1e-12)
    flat = data.centres.reshape(-1, 3)
    gap = np.linalg.norm(flat[:, None] - flat[None], axis=2) + 1e9 * np.eye(len(flat))
    assert_allclose(gap.min(axis=1), 4.4)
    assert_allclose(np.linalg.norm(flat, axis=1), np.linalg.norm(flat[0]))


# Each violation violates


def class_means(data):
    n_domains, n_classes = data.prevalence.shape
    return np.array([
        [data.X[(data.domains == d) & (data.labels == y)].mean(axis=0)
         for y in range(n_classes)] for d in range(n_domains)
    ])  # fmt: skip


EVEN = np.full((4, 3), 1 / 3)


def test_drift_moves_class_means_between_domains(seed):
    still = generate(24_000, prevalence=EVEN, random_state=seed)
    moving = generate(24_000, prevalence=EVEN, drift=0.5, random_state=seed)
    # 2,000 rows a cell: means are known to .022.
    assert class_means(still).std(axis=0).mean() < 0.04
    assert class_means(moving).std(axis=0).mean() > 0.3
    assert_allclose(
        class_means(moving), moving.means + moving.drift, atol=5 / np.sqrt(2000)
    )
    assert_allclose(moving.drift.std(), 0.5, atol=0.15)
    # q(d|x) is no longer a mixture of k fixed rows.
    rebuilt = moving.class_given_x @ moving.domain_given_class
    assert np.abs(moving.domain_given_x - rebuilt).mean() > 0.02


def test_leak_tells_the_domain_whatever_the_class(seed):
    data = generate(kind="leak", prevalence=EVEN, random_state=seed)
    assert data.X.shape[1] == 11
    assert (data.domain_given_x.argmax(axis=1) == data.domains).mean() > 0.95
    nearest = np.abs(data.X[:, -1:] - data.leak).argmin(axis=1)
    assert (nearest == data.domains).mean() > 0.95
    # All domains have the same mix, so the leak says nothing about the class.
    without = generate(prevalence=EVEN, random_state=seed)
    assert_array_equal(data.labels, without.labels)
    assert_allclose(
        (data.posterior.argmax(axis=1) == data.labels).mean(),
        (without.posterior.argmax(axis=1) == without.labels).mean(),
        atol=0.02,
    )


def test_no_shift_leaves_nothing_to_discriminate(seed):
    data = generate(kind="no_shift", n_classes=4, random_state=seed)
    assert_allclose(data.prevalence, 0.25)
    assert_allclose(data.domain_given_x, 1 / 8)
    assert condition_number(data.prevalence) == np.inf


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_rank_deficient_prevalences(n_classes, seed):
    data = generate(kind="rank_deficient", n_classes=n_classes, random_state=seed)
    expected = min(max(1, round(0.6 * n_classes)), n_classes - 1)
    assert np.linalg.matrix_rank(data.prevalence, tol=1e-9) == expected < n_classes
    asked = generate(n_classes=10, n_domains=30, rank=7, random_state=seed)
    assert np.linalg.matrix_rank(asked.prevalence, tol=1e-9) == 7


def test_few_domains(seed):
    data = generate(kind="few_domains", n_classes=10, random_state=seed)
    assert data.prevalence.shape == (6, 10)


def test_overlap_leaves_no_anchors(seed):
    """At most a sliver of most classes is recognizable; with defaults, some of all."""
    shares = {}
    for kind in ("gaussian", "overlap"):
        data = generate(20_000, kind=kind, random_state=seed)
        clear = data.class_given_x[np.arange(20_000), data.labels] > 0.95
        by_class = [clear[data.labels == label].mean() for label in range(10)]
        shares[kind] = np.median(by_class)
    assert shares["overlap"] < 0.01 < 0.03 < shares["gaussian"]


def test_thin_domains(seed):
    sizes = np.bincount(generate(10_000, kind="thin", random_state=seed).domains)
    assert sizes.min() < 30
    assert 80 < sizes.max() / sizes.min() < 120


def test_arguments_override_what_a_kind_sets(seed):
    wide = generate(kind="drift", drift=2.0, random_state=seed)
    assert_allclose(wide.drift, 4 * generate(kind="drift", random_state=seed).drift)


# Difficulty


def labelled_accuracy(data, n_fit, model):
    """Held-out accuracy of a model fitted with labels, moved to each domain's mix."""
    model.fit(data.X[:n_fit], data.labels[:n_fit])
    proba = model.predict_proba(data.X[n_fit:])
    fitted_mix = share_of(data.labels[:n_fit], data.prevalence.shape[1])
    ratio = data.prevalence[:, model.classes_] / fitted_mix[model.classes_]
    guess = model.classes_[(proba * ratio[data.domains[n_fit:]]).argmax(axis=1)]
    return (guess == data.labels[n_fit:]).mean()


def test_xor_needs_more_than_lines(seed):
    data = generate(8000, kind="xor", n_domains=8, random_state=seed)
    quadratic = make_pipeline(
        StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=500)
    )
    bayes = (data.posterior.argmax(axis=1) == data.labels).mean()
    assert labelled_accuracy(data, 5000, quadratic) > bayes - 0.02 > 0.94
    assert labelled_accuracy(data, 5000, LogisticRegression()) < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "n_classes", "n_fit", "alpha", "documented"),
    [
        ("cifar10", 10, 7000, 0.5, 0.954),
        ("cifar10", 10, 7000, 3, 0.877),
        ("cifar10", 10, 7000, 10, 0.806),
        ("cifar20", 20, 10_000, 0.5, 0.988),
        ("cifar20", 20, 10_000, 3, 0.955),
        ("cifar20", 20, 10_000, 10, 0.923),
    ],
)
def test_documented_reference_accuracies(dataset, n_classes, n_fit, alpha, documented):
    accuracies = []
    for wave in range(3):
        prevalence = paper_prevalence(dataset, n_classes, alpha, wave)
        for seed in range(10):
            data = generate(n_fit + 3000, prevalence=prevalence, random_state=seed)
            model = LogisticRegression(max_iter=300)
            accuracies.append(labelled_accuracy(data, n_fit, model))
    assert_allclose(np.mean(accuracies), documented, atol=0.002)


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "moons"}, "kind must be one of .*'gaussian'.*got 'moons'"),
        ({"n_samples": 0}, "n_samples must be a whole number from 1, got 0"),
        ({"n_samples": 3}, "n_samples=3 leaves domain .* without rows"),
        ({"n_classes": 1}, "n_classes must be a whole number from 2, got 1"),
        ({"n_domains": 1}, "n_domains must be a whole number from 2, got 1"),
        ({"n_features": 0}, "n_features must be a whole number from 1, got 0"),
        ({"kind": "xor", "n_features": 1}, "n_features must be a whole number from 2"),
        ({"separation": -1}, "separation must be a number from 0, got -1"),
        ({"drift": float("nan")}, "drift must be a number from 0, got nan"),
        ({"rank": 11}, "rank must be at most 10.*got 11"),
        ({"rank": 0}, "rank must be a whole number from 1, got 0"),
        ({"counts": "poisson"}, "counts must be 'multinomial' or 'exact'"),
        ({"alpha": -1}, "alpha must be a number above 0, got -1"),
        ({"max_condition": 1.0001, "n_classes": 3}, "max_condition=1.0001 was not"),
        ({"domain_sizes": [1, 2]}, "domain_sizes must be 20 positive numbers"),
        ({"domain_sizes": "small"}, "domain_sizes must be .* or 'geometric'"),
        ({"domain_sizes": [0] + [1] * 19}, "domain_sizes must be 20 positive"),
        ({"prevalence": [[1, 1]]}, "rows of prevalence must sum to 1"),
        ({"prevalence": np.eye(3), "n_classes": 4}, "prevalence has shape .3, 3."),
        ({"prevalence": np.eye(3), "n_domains": 4}, "prevalence has shape .3, 3."),
        ({"prevalence": np.eye(3), "rank": 2}, "prevalence cannot be given together"),
        ({"prevalence": np.eye(3), "kind": "no_shift"}, "prevalence cannot be given"),
        ({"kind": "anchored", "n_words": 5}, "n_words must be a whole number from 10"),
        ({"kind": "anchored", "separation": 2}, "separation is the probability"),
        ({"kind": "anchored", "drift": 1.0}, "drift and leakage need clouds"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_latent_shift(**{"random_state": 0, **arguments})


def test_posterior_refuses_other_rows(seed):
    clouds = generate(50, n_classes=2, random_state=seed)
    with pytest.raises(ValueError, match="X must have 10 columns"):
        clouds.bayes_posterior(clouds.X[:, :3])
    with pytest.raises(ValueError, match=r"domains has codes outside 0\.\.3"):
        clouds.bayes_posterior(clouds.X, 4)
    with pytest.raises(ValueError, match="domains must be one code or 50"):
        clouds.bayes_posterior(clouds.X, clouds.domains[:3])
    words = generate(50, kind="anchored", n_classes=2, random_state=seed)
    with pytest.raises(ValueError, match="one column of word numbers"):
        words.bayes_posterior([[0.5]])
    with pytest.raises(ValueError, match=r"X has words outside 0\.\.19"):
        words.bayes_posterior([[20]])
