import numpy as np
import pytest
import torch

from shoal.vision._encode import knn_accuracy, knn_monitor, nearest


@pytest.fixture
def features(seed):
    return np.random.default_rng(seed).normal(size=(30, 5)).astype(np.float32)


def cosines(a, b):
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    return a @ b.T


@pytest.mark.parametrize("batch_size", [4, 100])
def test_nearest_is_the_sorted_cosine(features, batch_size):
    indices, similarity = nearest(features, 4, device="cpu", batch_size=batch_size)
    full = cosines(features, features)
    np.fill_diagonal(full, -2)
    np.testing.assert_array_equal(indices, np.argsort(-full, axis=1)[:, :4])
    np.testing.assert_allclose(similarity, -np.sort(-full, axis=1)[:, :4], atol=1e-6)


def test_queries_may_be_their_own_neighbours(features):
    indices, _ = nearest(features, 1, queries=features[:7], device="cpu")
    assert indices[:, 0].tolist() == list(range(7))


def test_bad_k(features):
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.29"):
        nearest(features, 30, device="cpu")
    with pytest.raises(ValueError, match="two axes"):
        nearest(features[0], 1, device="cpu")


def test_accuracy_is_a_vote(seed):
    rng = np.random.default_rng(seed)
    features, test = rng.normal(size=(40, 4)), rng.normal(size=(15, 4))
    labels, test_labels = rng.integers(0, 3, 40), rng.integers(0, 3, 15)
    names = np.array(["a", "b", "c"])
    similarity = cosines(test, features)
    right = 0
    for row, label in zip(similarity, test_labels, strict=True):
        best = np.argsort(-row)[:5]
        votes = [
            (sum(labels[best] == c), row[best][labels[best] == c].sum())
            for c in range(3)
        ]
        right += max(range(3), key=votes.__getitem__) == label
    got = knn_accuracy(
        features, names[labels], test, names[test_labels], k=5, device="cpu"
    )
    assert got == pytest.approx(right / 15)


def test_monitor_looks_and_leaves_the_network_as_it_was():
    images = np.zeros((12, 4, 4, 3), np.uint8)
    images[::2, :, :, 0] = 255
    images[1::2, :, :, 2] = 255
    labels = np.arange(12) % 2
    net = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten())
    monitor = knn_monitor(images, labels, images[:4], labels[:4], k=3, device="cpu")
    assert monitor(net) == {"knn_accuracy": 1.0}
    assert net.training
    assert knn_monitor(images, 1 - labels, images[:4], labels[:4], k=3, device="cpu")(
        net
    ) == {"knn_accuracy": 0.0}
