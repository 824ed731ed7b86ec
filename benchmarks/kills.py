"""kill -9 for workers, drivers and whole nodes in the middle of their work.

    python benchmarks/kills.py [--repetitions 10]

On a Ray cluster of two nodes of one core each, on this machine, each experiment ends a
process (or all of a node) while rows are counted, classed or trained on, and holds the
result against that of an undisturbed run in this process: every prevalence, label,
probability and count of rows, bit by bit; of a training, every weight. Writes
results/performance/kills.json after each repetition, and goes on from there when it is
called again.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _ending import Killer, killed_driver, lost_node, two_nodes
from _kills_training import Training
from _measure import ROOT, environment, write_json

import shoal
from shoal import DDFA, DomainMixture, scale
from shoal.datasets import make_latent_shift

RECORD = ROOT / "results" / "performance" / "kills.json"
MODELS = {
    "mixture": DomainMixture(3, search=False, random_state=0),
    "ddfa": DDFA(3, discriminator="logistic", cross_fit=3, random_state=0),
}
PASS, COUNT, PREDICT = "prevalences, pass 1", "count clusters", "predict"


# ---- what is disturbed ---------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Parquet files with a column ``site``, and how they are cut and learned from."""

    data: Path
    sample: int
    part_rows: int
    scratch: Path

    @property
    def options(self) -> dict[str, Any]:
        """Of a fit."""
        return {"domain": "site", "sample": self.sample, "passes": 1,
                "part_rows": self.part_rows}  # fmt: skip

    def fit(self, name: str, **where: Any) -> Any:
        """One of the models."""
        return scale.fit(MODELS[name], self.data, **self.options, **where)

    def predict(self, model: Any, out: Path, **where: Any) -> Any:
        """Classes of all rows."""
        return scale.predict(model, self.data, out, part_rows=self.part_rows, **where)

    @cached_property
    def undisturbed(self) -> dict[str, Any]:
        """The models as this process fits them."""
        return {name: self.fit(name, workers=1) for name in MODELS}

    @cached_property
    def predicted(self) -> Any:
        """What this process predicts."""
        out = self.scratch / "undisturbed"
        return self.predict(self.undisturbed["mixture"], out, workers=1)

    def same_fit(self, name: str, model: Any) -> bool:
        """Whether a fitted model is the undisturbed one, and has counted each row."""
        expected = self.undisturbed[name]
        return (
            np.array_equal(model.prevalence_, expected.prevalence_)
            and np.array_equal(model.labels_, expected.labels_)
            and model.scale_["rows"] == expected.scale_["rows"]
        )

    def same_predictions(self, found: Any) -> bool:
        """Whether predictions are the undisturbed ones, each row once."""
        folders = [sorted(one.path.iterdir()) for one in (found, self.predicted)]
        names = [[path.name for path in paths] for paths in folders]
        return (
            names[0] == names[1]
            and found.n_rows == self.predicted.n_rows
            and found.counts.equals(self.predicted.counts)
            and all(
                pd.read_parquet(one).equals(pd.read_parquet(other))
                for one, other in zip(*folders, strict=True)
            )
        )


# ---- experiments: each a problem, a cluster and a folder of its own, to facts --------

Facts = dict[str, Any]


def worker_in_fit(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """A worker, in a pass over all rows."""
    return _worker_lost(problem, "mixture", PASS)


def worker_in_count(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """A worker, while a DDFA counts its clusters by domains."""
    return _worker_lost(problem, "ddfa", COUNT)


def _worker_lost(problem: Problem, name: str, stage: str) -> Facts:
    with Killer(stage) as killer:
        model = problem.fit(name, engine="ray", progress=killer.watch)
    same = problem.same_fit(name, model)
    return {"killed": len(killer.killed), "equal": same}


def worker_in_predict(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """A worker, while rows are classed."""
    model = problem.undisturbed["mixture"]
    with Killer(PREDICT) as killer:
        where = {"engine": "ray", "progress": killer.watch}
        found = problem.predict(model, folder / "out", **where)
    return {"killed": len(killer.killed), "equal": problem.same_predictions(found)}


def node_in_fit(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """A node, in a pass over all rows."""
    with lost_node(nodes, PASS) as (watch, lost):
        model = problem.fit("mixture", engine="ray", progress=watch)
        same = problem.same_fit("mixture", model)
    return {"killed": len(lost), "done_before": lost[0], "equal": same}


def node_in_predict(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """A node, while rows are classed."""
    model = problem.undisturbed["mixture"]
    with lost_node(nodes, PREDICT) as (watch, lost):
        found = problem.predict(model, folder / "out", engine="ray", progress=watch)
        same = problem.same_predictions(found)
    return {"killed": len(lost), "done_before": lost[0], "equal": same}


def driver_in_fit(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """The driver, in a pass over all rows; a second call goes on."""
    kept, data = str(folder / "kept"), str(problem.data)
    call = (
        f"scale.fit({MODELS['mixture']!r}, {data!r}, checkpoint={kept!r}, "
        f"**{problem.options!r}, **where)"
    )
    killed_driver(nodes, PASS, call)
    model = problem.fit("mixture", engine="ray", checkpoint=kept)
    (last,) = (one for one in model.scale_["stages"] if one["stage"] == PASS)
    return _resumed(last, problem.same_fit("mixture", model))


def driver_in_predict(problem: Problem, nodes: Any, folder: Path) -> Facts:
    """The driver, while rows are classed; a second call goes on."""
    saved = shoal.save(problem.undisturbed["mixture"], folder / "model")
    out, data = str(folder / "out"), str(problem.data)
    call = (
        f"scale.predict(shoal.load({str(saved)!r}), {data!r}, {out!r}, "
        f"part_rows={problem.part_rows}, **where)"
    )
    killed_driver(nodes, PREDICT, call)
    found = problem.predict(shoal.load(saved), Path(out), engine="ray")
    return _resumed(found.stages[0], problem.same_predictions(found))


def _resumed(stage: Mapping[str, Any], same: bool) -> Facts:
    """Not only is the result the same: what was finished was not done again."""
    kept, parts = stage["resumed"], stage["parts"]
    return {"killed": 1, "kept": kept, "parts": parts, "equal": same and kept > 0}


EXPERIMENTS: dict[str, Callable[[Problem, Any, Path], Facts]] = {
    "worker in fit": worker_in_fit,
    "worker in counting clusters": worker_in_count,
    "worker in predict": worker_in_predict,
    "node in fit": node_in_fit,
    "node in predict": node_in_predict,
    "driver in fit": driver_in_fit,
    "driver in predict": driver_in_predict,
}
TRAINING = "worker in training"


# ---- the record ----------------------------------------------------------------------


def make_problem(folder: Path, n_rows: int = 120_000, n_parts: int = 12) -> Problem:
    """Rows of five sites; parts that take long enough to be ended in the middle."""
    X, domains, _ = make_latent_shift(
        n_rows, n_classes=3, n_domains=5, n_features=6, separation=1.6, alpha=1.0,
        random_state=0,
    )  # fmt: skip
    frame = pd.DataFrame(X.astype(np.float32)).add_prefix("x").assign(site=domains)
    frame = frame.sample(frac=1, random_state=0)
    data = folder / "rows"
    data.mkdir()
    frame.to_parquet(data / "rows.parquet", row_group_size=n_rows // n_parts)
    return Problem(data, 2_000, n_rows // n_parts, folder)


def main() -> None:
    """Every experiment as often as asked for, less what the record has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, two_nodes() as nodes:
        problem = make_problem(Path(name))
        every = {**EXPERIMENTS, TRAINING: Training(Path(name))}
        record = read_record(args.record, problem, list(every))
        for turn, experiment in order_of(args.repetitions):
            done = record["repetitions"][experiment]
            if len(done) <= turn:
                done.append(one_repetition(every[experiment], problem, nodes))
                record["summary"] = summary(record["repetitions"])
                write_json(args.record, record)
                print(turn, experiment, done[-1], flush=True)


def order_of(repetitions: int) -> list[tuple[int, str]]:
    """Each once; then those that take longer after the others, training last."""
    slow = [name for name in EXPERIMENTS if name.startswith("driver")]
    fast = [name for name in EXPERIMENTS if name not in slow]
    more = range(1, repetitions)
    order = [(0, name) for name in (*EXPERIMENTS, TRAINING)]
    for names in (fast, slow, [TRAINING]):
        order += [(turn, name) for turn in more for name in names]
    return order


def read_record(path: Path, problem: Problem, names: list[str]) -> dict[str, Any]:
    if path.exists():
        return json.loads(path.read_text())
    stages = problem.undisturbed["mixture"].scale_
    return {
        "command": "python benchmarks/kills.py",
        "environment": environment("pandas", "pyarrow", "ray", "torch"),
        "data": {"rows": stages["rows"], "parts": stages["parts"]},
        "nodes": 2,
        "seconds": "wall; on a machine shared with other work, upper bounds",
        "repetitions": {name: [] for name in names},
    }


def one_repetition(run: Callable, problem: Problem, nodes: Any) -> Facts:
    """Facts of one experiment; what it raised counts as not equal."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=problem.scratch) as folder:
        try:
            facts = run(problem, nodes, Path(folder))
        except Exception as error:
            facts = {"equal": False, "error": f"{type(error).__name__}: {error}"}
    return {**facts, "seconds": round(time.perf_counter() - begun, 1)}


def summary(repetitions: Mapping[str, list[Facts]]) -> dict[str, Facts]:
    """How often something was ended, and how often the result was the same."""
    return {
        name: {
            "repetitions": len(done),
            "killed": sum(one.get("killed", 0) for one in done),
            "equal": sum(one["equal"] for one in done),
            "seconds": max((one["seconds"] for one in done), default=None),
        }
        for name, done in repetitions.items()
    }


if __name__ == "__main__":
    main()
