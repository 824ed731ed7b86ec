"""MoCo: keys follow, the queue keeps the newest, the step is its formula."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.datasets import load_digits  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from shoal.vision import Backbone, ImageSet, knn_monitor  # noqa: E402
from shoal.vision._images import normalize  # noqa: E402
from shoal.vision.augment import simclr_view  # noqa: E402
from shoal.vision.extend import info_nce  # noqa: E402
from shoal_bench.moco import Keys, MoCo, moco  # noqa: E402
from support import workers  # noqa: E402


def test_keys_follow_weights_and_have_statistics_of_their_own():
    torch.manual_seed(0)
    net, head = workers.Tiny(), nn.Linear(8, 4)
    keys = Keys(net, head, 4, 10)
    before = {name: w.clone() for name, w in keys.net.state_dict().items()}
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1)
        net.norm.running_mean.add_(2)
    keys.follow(net, head, momentum=0.9)
    after, target = keys.net.state_dict(), net.state_dict()
    expected = 0.9 * before["conv1.weight"] + 0.1 * target["conv1.weight"]
    torch.testing.assert_close(after["conv1.weight"], expected)
    assert torch.equal(after["norm.running_mean"], before["norm.running_mean"])
    assert not any(p.requires_grad for p in keys.parameters())


def test_the_queue_keeps_the_newest():
    keys = Keys(workers.Tiny(), nn.Linear(8, 4), 4, 5)
    torch.testing.assert_close(keys.queue.norm(dim=1), torch.ones(5))
    old = keys.queue.clone()
    new = functional.normalize(torch.randn(3, 4))
    keys.remember(new)
    assert torch.equal(keys.queue, torch.cat([new, old[:2]]))
    many = functional.normalize(torch.randn(8, 4))
    keys.remember(many)
    assert torch.equal(keys.queue, many[:5])


def test_norms_of_keys_go_by_the_batch():
    """Keys and learner with the same weights see the same, whatever was asked for."""
    torch.manual_seed(0)
    net, head = workers.Tiny(), nn.Linear(8, 4)
    keys = Keys(net, head, 4, 5).eval()
    x = torch.randn(6, 3, 8, 8)
    expected = functional.normalize(head(net.train().features(x)))
    torch.testing.assert_close(keys(x), expected)


def test_the_step_is_its_formula():
    torch.manual_seed(0)
    images = ImageSet(workers.make_images(), "cpu")
    view, net = simclr_view(8), workers.Tiny()
    task = MoCo(images, net=net, n_queue=6, momentum=0.5, device="cpu")
    keys = task.others["keys"]
    queue = keys.queue.clone()
    rows = torch.tensor([3, 1, 4])
    loss = task.step(rows, torch.Generator().manual_seed(7))
    draws = view.draw(6, images.device, torch.Generator().manual_seed(7))
    x = normalize(view.apply(images.batch(rows.repeat(2)), draws))
    found = keys(x)
    views = task.head(net.features(x))
    expected = info_nce(views, torch.cat([found, queue]), 0.2)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(keys.queue, found)
    loss.backward()  # the queue has moved on, the gradient is still had
    assert net.conv1.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(("n_images", "n_queue"), [(40, 10), (20_000, 4096)])
def test_the_queue_is_short_beside_an_epoch(n_images, n_queue):
    images = np.zeros((n_images, 4, 4), np.uint8)
    task = MoCo(images, net=workers.Tiny(), device="cpu")
    assert len(task.others["keys"].queue) == n_queue


def test_training_and_resuming(tmp_path):
    def train(**options):
        torch.manual_seed(0)
        return moco(
            workers.make_images(),
            net=workers.Tiny(),
            batch_size=8,
            n_queue=16,
            device="cpu",
            progress=False,
            **options,
        )

    whole = train(epochs=4)
    assert whole.method == "MoCo"
    assert np.isfinite(whole.history["loss"]).all()
    checkpoint = tmp_path / "run.pt"

    def stop(net):
        if stop.armed:
            raise KeyboardInterrupt
        return {}

    stop.armed = True
    with pytest.raises(KeyboardInterrupt):
        train(epochs=4, checkpoint=checkpoint, monitor=stop, monitor_every=3)
    stop.armed = False
    resumed = train(epochs=4, checkpoint=checkpoint, monitor=stop, monitor_every=3)
    assert resumed.history["loss"] == whole.history["loss"]
    for name, weight in whole.net.state_dict().items():
        assert torch.equal(weight, resumed.net.state_dict()[name])


class TwoLayers(Backbone):
    n_features = 32

    def __init__(self):
        super().__init__()
        layers = []
        for n_in, n_out in ((3, 16), (16, 32)):
            layers += [nn.Conv2d(n_in, n_out, 3, 2, 1, bias=False)]
            layers += [nn.BatchNorm2d(n_out), nn.ReLU()]
        self.body = nn.Sequential(*layers)

    def features(self, x):
        return self.body(x).mean((2, 3))


def test_its_defaults_learn_in_a_hundred_and_fifty_steps(seed):
    """Digits are found by their neighbours better than with random weights."""
    digits = load_digits()
    images, labels = (digits.images * 15).astype(np.uint8), digits.target
    monitor = knn_monitor(
        images[:1000], labels[:1000], images[1000:], labels[1000:], device="cpu"
    )
    torch.manual_seed(seed)
    net = TwoLayers()
    before = monitor(net)["knn_accuracy"]
    history = moco(
        images[:1000],
        net=net,
        epochs=15,
        batch_size=100,
        seed=seed,
        device="cpu",
        progress=False,
    ).history
    assert history["loss"][-1] < history["loss"][0] - 0.4
    assert monitor(net)["knn_accuracy"] > before + 0.02


def test_bad_momentum():
    with pytest.raises(ValueError, match=r"momentum must lie in \[0, 1\)"):
        moco(workers.make_images(), momentum=1.0, device="cpu")
