"""Training runs that tests start as processes of their own.

``python workers.py resume CHECKPOINT KILL_AT`` trains and kills itself at a step.
``torchrun workers.py parallel OUT`` trains with all processes and writes what came.
Either may be followed by the backend that compiles the parts of the steps.
"""

import json
import os
import signal
import sys

import numpy as np
import torch
from torch import nn

from shoal.vision.augment import Identity, simclr_view
from shoal.vision.data import ImageSet
from shoal.vision.loop import fit
from shoal.vision.nets import Backbone
from shoal.vision.parts import part, view_part
from shoal.vision.schedules import cosine
from shoal.vision.simclr import simclr

EPOCHS, N_IMAGES, BATCH = 3, 40, 8


class Tiny(Backbone):
    """Two convolutions; norms and dropout when asked for."""

    n_features = 8

    def __init__(self, norm=True, dropout=0.0):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2)

    def features(self, x):
        x = self.dropout(torch.relu(self.norm(self.conv1(x))))
        return self.conv2(x).mean((2, 3))


def make_images(n=N_IMAGES, size=8):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def train(checkpoint=None, kill_at=None, seed=0, on_epoch=None, **options):
    """Train on random views; the process kills itself in step ``kill_at``."""
    torch.manual_seed(1)
    net, head = Tiny(dropout=0.3), nn.Linear(8, 2)
    images, view = ImageSet(make_images(), "cpu"), simclr_view(8)
    make_views, steps_here = view_part(view), 0

    @part
    def classify(views):
        return head(net.features(views))

    def step(indices, generator):
        nonlocal steps_here
        steps_here += 1
        if steps_here == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        draws = view.draw(len(indices), images.device, generator)
        logits = classify(make_views(images.bytes_batch(indices), draws))
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
        on_epoch=on_epoch,
        progress=False,
        **options,
    )
    return modules, history


def train_together(**options):
    """SimCLR whose loss does not depend on how many processes share the batch."""
    torch.manual_seed(2)
    result = simclr(
        make_images(),
        net=Tiny(norm=False),
        epochs=EPOCHS,
        batch_size=BATCH,
        lr=0.1,
        view=Identity(),
        device="cpu",
        progress=False,
        **options,
    )
    weights = {name: w.tolist() for name, w in result.net.state_dict().items()}
    return {"loss": result.history["loss"], "weights": weights}


if __name__ == "__main__":
    torch.set_num_threads(1)
    task, path, *rest = sys.argv[1:]
    kill_at = int(rest.pop(0)) if task == "resume" else None
    compile = {"backend": rest[0]} if rest else False
    if task == "resume":
        train(path, kill_at=kill_at, compile=compile)
    else:
        outcome = train_together(compile=compile)
        if int(os.environ["RANK"]) == 0:
            with open(path, "w") as file:
                json.dump(outcome, file)
