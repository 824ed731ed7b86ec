"""The last experiment of kills.py: a worker of Ray Train is ended while it trains."""

import os
import signal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from _ending import workers_at_work

WORKER = b"ray::RayTrainWorker"
EPOCHS = 6


class Training:
    """A small network that two workers train; one is ended after an epoch.

    Called as the other experiments are.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    @cached_property
    def undisturbed(self) -> Any:
        """The network of two workers to whom nothing happens."""
        return self.train(self.scratch / "training")

    def train(self, storage: Path, **options: Any) -> Any:
        """The network, trained by two workers."""
        from shoal.vision import train_on_ray

        return train_on_ray(make_train(), storage, workers=2, gpu=False, **options)

    def __call__(self, problem: Any, nodes: Any, folder: Path) -> dict[str, Any]:
        """Kill -9 for one of the workers after a whole epoch."""
        import torch

        expected, killed = self.undisturbed, []

        def kill(record: dict[str, Any]) -> None:
            found = workers_at_work(WORKER)
            if not killed and found:
                os.kill(found[-1], signal.SIGKILL)
                killed.append(record["epoch"])

        trained = self.train(folder / "run", on_checkpoint=kill)
        weights = [one.net.state_dict() for one in (trained, expected)]
        losses = [one.history["loss"] for one in (trained, expected)]
        same = losses[0] == losses[1] and all(
            torch.equal(weight, weights[1][name]) for name, weight in weights[0].items()
        )
        return {"killed": len(killed), "after_epoch": killed[:1], "equal": same}


def make_train() -> Any:
    """SimCLR on random images; all that it needs travels with it."""
    images = np.random.default_rng(0).integers(0, 256, (256, 16, 16, 3), np.uint8)

    def train(checkpoint: Any) -> Any:
        import torch

        from shoal.vision import Backbone, simclr

        class Tiny(Backbone):
            n_features = 16

            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(3, 16, 3, stride=2, bias=False)
                self.norm = torch.nn.BatchNorm2d(16)

            def features(self, x):
                return torch.relu(self.norm(self.conv(x))).mean((2, 3))

        torch.manual_seed(0)
        return simclr(
            images, net=Tiny(), epochs=EPOCHS, batch_size=32, device="cpu", seed=0,
            checkpoint=checkpoint, checkpoint_every=8, progress=False,
        )  # fmt: skip

    return train
