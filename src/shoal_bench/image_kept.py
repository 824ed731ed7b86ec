"""Networks that several runs share, kept once trained."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.io.extend import whole_file
from shoal.vision import ImageDiscriminator
from shoal.vision.extend import digest_rows
from shoal_bench.image_problems import ImageProblem, open_weights
from shoal_bench.scan import SCAN
from shoal_bench.scan_files import read_scan, write_scan
from shoal_bench.spec import Setting

Array = NDArray[Any]

NAME_LENGTH = 32
VIEW_SEED = 0
USUAL = SCAN().get_params()


class Discriminated(NamedTuple):
    """What a discriminator says of a problem."""

    q: Array  # (n_rows, n_domains), of the training rows
    q_view: Array  # the same, of one random view of each
    q_test: Array  # (n_test_rows, n_domains)
    held_out: Array  # numbers of the training rows that judged the epochs
    about: dict[str, Any]  # label-free numbers of its training

    def as_seen(self) -> Array:
        """q(d|x) of the rows as the training saw them: views, but clean if held out."""
        q = self.q_view.copy()
        q[self.held_out] = self.q[self.held_out]
        return q


ARRAYS = [name for name in Discriminated._fields if name != "about"]


def trained_scan(
    problem: ImageProblem,
    seed: int,
    backbone: str = "simclr_resnet18",
    **settings: Setting,
) -> SCAN:
    """SCAN of a data set's training images, trained once.

    ``settings`` are those of :class:`~shoal_bench.scan.SCAN`; what differs from its
    defaults is part of the file's name.
    """
    scan = SCAN(
        problem.n_classes,
        backbone=open_weights(problem, backbone),
        random_state=seed,
        **settings,  # type: ignore[arg-type]
    )
    special = [f"{k}={v}" for k, v in sorted(settings.items()) if v != USUAL[k]]
    name = "_".join([problem.dataset, Path(backbone).stem, *special, f"seed{seed}"])
    path = _place(problem, "scan", f"{name}.safetensors")
    if path is not None and path.exists():
        return read_scan(scan, path)
    scan.fit(problem.pool)
    if path is not None:
        write_scan(scan, path)
    return scan


def kept_discriminator(
    problem: ImageProblem,
    network: ImageDiscriminator,
    origin: str,
    start: Callable[[], Any] | None = None,
) -> Discriminated:
    """q(d|x) of training and test rows, for whatever stages come after.

    Parameters
    ----------
    problem : ImageProblem
    network : ImageDiscriminator
        Not fitted.
    origin : str
        Says which weights it starts from.
    start : callable, default=None
        Gives its ``backbone`` where that takes a training of its own (SCAN); asked only
        when no q(d|x) is kept.
    """
    settings = {
        name: repr(value)
        for name, value in sorted(network.get_params(deep=False).items())
        if name != "backbone"  # maybe an object; origin says which
    }
    about = json.dumps(settings), *ARRAYS
    name = digest_rows(problem_digest(problem), origin, *about)
    name = name[:NAME_LENGTH]
    path = _place(problem, "discriminators", f"{name}.npz")
    if path is not None and path.exists():
        return _read(path)
    if start is not None:
        network.set_params(backbone=start())
    network.fit(problem.X, problem.domains)
    found = Discriminated(
        network.predict_proba(problem.X),
        network.predict_view(problem.X, random_state=VIEW_SEED),
        network.predict_proba(problem.X_test),
        network.held_out_rows_,
        about_network(network),
    )
    if path is not None:
        _write(path, found)
    return found


def about_network(network: ImageDiscriminator) -> dict[str, Any]:
    """How the training went: held-out losses, the rate and epoch that they chose."""
    return {
        "held_out_loss": network.held_out_loss_,
        "learning_rate": network.learning_rate_,
        "losses": {f"{rate:g}": loss for rate, loss in network.losses_.items()},
        "best_epoch": network.best_epoch_,
        "rows_per_second": network.history_[-1]["rows_per_second"],
    }


def problem_digest(problem: ImageProblem) -> str:
    """What a fit may see of a problem: its rows in order, and their domains."""
    return digest_rows(problem.dataset, problem.X, problem.domains, problem.X_test)


def _place(problem: ImageProblem, kind: str, name: str) -> Path | None:
    return None if problem.folder is None else problem.folder / kind / name


def _write(path: Path, found: Discriminated) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as place:
        np.savez(place, **(found._asdict() | {"about": json.dumps(found.about)}))


def _read(path: Path) -> Discriminated:
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        arrays = {name: file[name] for name in ARRAYS}
    return Discriminated(**arrays, about={**about, "kept": True})
