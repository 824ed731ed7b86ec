"""Training runs that tests start as processes of their own.

``python workers.py resume CHECKPOINT KILL_AT`` trains and kills itself at a step.
``torchrun workers.py parallel OUT`` trains with all processes and writes what came.
Either may be followed by the backend that compiles the parts of the steps.
"""

import json
import os
import signal
import sys
import warnings
from functools import partial

import numpy as np
import torch
from torch import nn

from shoal.exceptions import CollapseWarning
from shoal.vision import Backbone, ImageDiscriminator, ImageSet, fit, part, simclr
from shoal.vision.augment import simclr_view
from shoal.vision.extend import cosine, random_views
from shoal_bench.moco import moco
from shoal_bench.scan import SCAN

EPOCHS, N_IMAGES, BATCH = 3, 40, 8


class Tiny(Backbone):
    """Two convolutions; norms and dropout when asked for."""

    n_features = 8

    def __init__(self, norm=True, dropout=0.0):
        super().__init__()
        # A norm takes a constant away: a bias before it would only gather rounding.
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=not norm)
        self.norm = nn.BatchNorm2d(8) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2)

    def features(self, x):
        x = self.dropout(torch.relu(self.norm(self.conv1(x))))
        return self.conv2(x).mean((2, 3))


def make_images(n=N_IMAGES, size=8):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def train(checkpoint=None, kill_at=None, seed=0, dropout=0.3, **options):
    """Train on random views; the process kills itself in step ``kill_at``."""
    torch.manual_seed(1)
    net, head = Tiny(dropout=dropout), nn.Linear(8, 2)
    images, steps_here = ImageSet(make_images(), "cpu"), 0
    make_views = random_views(simclr_view(8))

    @part
    def classify(views):
        return head(net.features(views))

    def step(indices, generator):
        nonlocal steps_here
        steps_here += 1
        if steps_here == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        logits = classify(make_views(images.bytes_batch(indices), generator))
        loss = nn.functional.cross_entropy(logits, indices % 2)
        return loss, {"twice": 2 * loss}

    modules = {"net": net, "head": head}
    parameters = [*net.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01)
    history = fit(
        step,
        modules,
        optimizer,
        cosine(EPOCHS, warmup=0.5),
        N_IMAGES,
        batch_size=BATCH,
        epochs=EPOCHS,
        seed=seed,
        device="cpu",
        checkpoint=checkpoint,
        checkpoint_every=2,
        progress=False,
        **options,
    )
    return modules, history


def outcome(modules, history):
    """Weights and records of a run, without what the clock said."""
    clock = ("seconds", "rows_per_second")
    return {
        "weights": {f"{m}.{n}": weight for m, module in modules.items()
                    for n, weight in module.state_dict().items()},
        "records": [{k: v for k, v in record.items() if k not in clock}
                    for record in history.records],
    }  # fmt: skip


def train_together(methods, **options):
    """Curves and weights of runs that any number of processes can share."""
    return {name: METHODS[name](**options) for name in methods}


def pretrain(method, **options):
    torch.manual_seed(2)
    result = method(
        make_images(),
        net=Tiny(),
        epochs=EPOCHS,
        batch_size=BATCH,
        lr=0.1,
        device="cpu",
        progress=False,
        **options,
    )
    return describe(result.net, result.history["loss"])


def discriminate(**options):
    rows = np.arange(N_IMAGES)
    torch.manual_seed(2)
    model = ImageDiscriminator(
        Tiny(),
        epochs=EPOCHS,
        batch_size=BATCH,
        learning_rate=0.01,
        view="crop",
        valid_share=0.2,
        device="cpu",
        random_state=0,
        **options,
    )
    model.fit(make_images(), rows % 3, sample_weight=1 + rows % 2)
    return describe(model.net_, [record["loss"] for record in model.history_])


def cluster(**options):
    torch.manual_seed(2)
    model = SCAN(
        3,
        backbone=Tiny(),
        n_heads=2,
        n_neighbours=4,
        head_epochs=2,
        epochs=2,
        batch_size=BATCH,
        learning_rate=0.01,
        device="cpu",
        random_state=0,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        model.fit(make_images())
    return describe(model.net_, [record["loss"] for record in model.history_])


def describe(net, losses):
    weights = {name: w.tolist() for name, w in net.state_dict().items()}
    return {"loss": losses, "weights": weights}


METHODS = {
    "SimCLR": partial(pretrain, simclr),
    "MoCo": partial(pretrain, moco, n_queue=24),
    "ImageDiscriminator": discriminate,
    "SCAN": cluster,
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    task, path, *rest = sys.argv[1:]
    kill_at = int(rest.pop(0)) if task == "resume" else None
    compile = {"backend": rest[0]} if rest else False
    if task == "resume":
        train(path, kill_at=kill_at, compile=compile)
    else:
        outcome = train_together(METHODS, compile=compile)
        if int(os.environ["RANK"]) == 0:
            with open(path, "w") as file:
                json.dump(outcome, file)
