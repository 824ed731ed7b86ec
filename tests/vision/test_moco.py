import numpy as np
import pytest
import torch
import vision_workers as workers
from torch import nn
from torch.nn import functional

from shoal.vision.augment import simclr_view
from shoal.vision.contrast import info_nce
from shoal.vision.data import ImageSet, normalize
from shoal.vision.moco import Keys, moco, moco_pretext


def test_keys_follow_weights_and_statistics():
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
    for name in ("conv1.weight", "norm.running_mean"):
        expected = 0.9 * before[name] + 0.1 * target[name]
        torch.testing.assert_close(after[name], expected)
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


def test_a_key_depends_on_its_own_image_only():
    torch.manual_seed(0)
    keys = Keys(workers.Tiny(), nn.Linear(8, 4), 4, 5).eval()
    x = torch.randn(6, 3, 8, 8)
    torch.testing.assert_close(keys(x)[:2], keys(x[:2]))


def test_the_step_is_its_formula():
    torch.manual_seed(0)
    images = ImageSet(workers.make_images(), "cpu")
    view, net = simclr_view(8), workers.Tiny()
    task = moco_pretext(images, net=net, n_queue=6, momentum=0.5, device="cpu")
    keys = task.others["keys"].eval()
    queue = keys.queue.clone()
    rows = torch.tensor([3, 1, 4])
    loss = task.step(rows, torch.Generator().manual_seed(7))
    draws = view.draw(6, images.device, torch.Generator().manual_seed(7))
    x = normalize(view.apply(images.batch(rows.repeat(2)), draws))
    found = keys(x)
    swapped = torch.cat([found[3:], found[:3]])
    queries = task.head(net.features(x))
    torch.testing.assert_close(loss, info_nce(queries, swapped, queue, 0.1))
    torch.testing.assert_close(keys.queue, found)
    loss.backward()  # the queue has moved on, the gradient is still had
    assert net.conv1.weight.grad.abs().sum() > 0


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


def test_bad_momentum():
    with pytest.raises(ValueError, match=r"momentum must lie in \[0, 1\)"):
        moco(workers.make_images(), momentum=1.0, device="cpu")
