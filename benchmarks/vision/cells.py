"""The image cells of the paper's matrices, several methods, on one machine.

    python benchmarks/vision/cells.py --data DIR --out STORE --cells cifar20-20-10 \
        --methods frozen end-to-end oracle --waves 0

``DIR`` holds CIFAR in its official binary layout (``cifar-10-batches-bin``,
``cifar-100-binary``) and ``weights/simclr_resnet18_{cifar10,cifar100}.safetensors``;
networks that several runs share are kept in ``DIR/scan`` and ``DIR/discriminators``.
``STORE`` is a folder: one line of
JSON per finished run in ``records.jsonl``, failures apart; what is there is not run
again, and several processes may share it. Settings that a flag sets become part of a
run's spec; ``--set name=value`` sets any other, ``--sweep name=value,value`` tries
several. ``--workers N`` runs N trials side by side, so that the GPU
works on one while another fits its frozen mixture on the CPU.
Needs torch, numpy, scipy, scikit-learn and safetensors.
"""

import argparse
import json
import os
import sys
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import shoal_bench.image_methods  # noqa: F401  (registers the methods)
from shoal.vision import FineTuning
from shoal_bench.methods import find_method
from shoal_bench.published import PAPER_ALPHAS, PAPER_DATASETS
from shoal_bench.run import Tally, run_missing
from shoal_bench.spec import Setting, Spec
from shoal_bench.store import Store

#: Name on the command line -> method of the benchmark and what it is set to.
METHODS: dict[str, tuple[str, dict[str, Setting]]] = {
    "frozen": ("ours_end_to_end", {"epochs": 0}),
    "end-to-end": ("ours_end_to_end", {}),
    "oracle": ("oracle", {}),
    "scan": ("scan", {}),
    "scan-prior": ("scan_prior", {}),
    "ddfa-si": ("ddfa_si", {}),
    "ddfa-si-anchored": ("ddfa_si", {"stages": "anchored"}),
    "ddfa-si-best": ("ddfa_si", {"stages": "best"}),
    "ddfa-spi": ("ddfa_spi", {}),
    "ddfa-spi-best": ("ddfa_spi", {"stages": "best"}),
    "ddfa-ri": ("ddfa_ri", {}),
    "ddfa-ri-best": ("ddfa_ri", {"stages": "best"}),
    "majority": ("majority", {}),
}
#: Flags of end-to-end, by the name of the setting.
TUNING: dict[str, type] = {
    **{one.name: type(one.default) for one in fields(FineTuning) if one.name != "told"},
    "n_starts": int,
    "n_components": int,
    "doubt": float,
}
CELLS = [
    f"{dataset}-{r}-{alpha:g}"
    for dataset in ("cifar20", "cifar10")
    for r in PAPER_DATASETS[dataset].n_domains
    for alpha in PAPER_ALPHAS
]


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)
    specs = [
        make_spec(cell, wave, method, args, varied)
        for wave in args.waves
        for cell in args.cells
        for method in args.methods
        for varied in sweep(args.sweep)
    ]
    if args.list:
        print(*specs, sep="\n")
        return 0
    where: dict[str, Any] = {}
    if args.workers > 1:
        where = {"where": "processes", "workers": args.workers}
    tally = run_missing(
        specs,
        Store(args.out),
        data_dir=args.data,
        retry_failed=args.retry_failed,
        on_result=show,
        **where,
    )
    print(
        f"{len(tally.done)} run, {len(tally.known)} known, {len(tally.failed)} failed "
        f"in {tally.seconds:.0f} s",
        flush=True,
    )
    if args.tally:
        keep_tally(args, tally)
    return 1 if tally.failed else 0


def keep_tally(args: argparse.Namespace, tally: Tally) -> None:
    """Add one line: how many runs of which methods took how long, side by side."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    line = {
        "methods": args.methods,
        "cells": args.cells,
        "waves": args.waves,
        "workers": args.workers,
        "runs": len(tally.done),
        "failed": len(tally.failed),
        "seconds": round(tally.seconds, 1),
        "device": gpu or "CPU",
        "runs_per_hour": round(len(tally.done) * 3600 / tally.seconds, 1),
    }
    if args.beside:
        line["beside"] = args.beside
    with args.tally.open("a") as file:
        file.write(json.dumps(line) + "\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--data", type=Path, default=os.environ.get("SHOAL_DATA_DIR"))
    cli.add_argument("--out", type=Path, default=Path("results/vision"))
    cli.add_argument("--cells", nargs="+", default=CELLS, help="cifar20-20-10 ...")
    cli.add_argument("--waves", type=int, nargs="+", default=[0])
    cli.add_argument(
        "--methods", nargs="+", choices=[*METHODS], default=["frozen", "end-to-end"]
    )
    cli.add_argument("--workers", type=int, default=1, help="trials side by side")
    cli.add_argument("--retry-failed", action="store_true")
    cli.add_argument(
        "--tally", type=Path, help="JSON file that gets a line: runs, workers, seconds"
    )
    cli.add_argument("--beside", help="what else the machine does, for --tally")
    cli.add_argument("--list", action="store_true", help="print the specs and stop")
    tuning = cli.add_argument_group("end to end (and the frozen start)")
    for name, kind in TUNING.items():
        tuning.add_argument("--" + name.replace("_", "-"), type=kind)
    tuning.add_argument(
        "--no-refit", action="store_true", help="hold rows out to the end"
    )
    tuning.add_argument("--untold", action="store_true", help="self-labels as q(y|x)")
    tuning.add_argument("--search", action="store_true", help="searched frozen mixture")
    cli.add_argument("--compile", action="store_true", help="compile the steps")
    cli.add_argument("--rates", help="learning rates of discriminators, 1e-4,3e-4")
    cli.add_argument("--backbone", help="weights/<this>_<data set>.safetensors")
    cli.add_argument("--rows", type=int, help="training rows to draw from")
    cli.add_argument(
        "--sweep",
        nargs="+",
        default=[],
        metavar="NAME=VALUE,VALUE",
        help="every combination of these",
    )
    cli.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="any other setting"
    )
    return cli.parse_args(arguments)


def make_spec(
    cell: str,
    wave: int,
    method: str,
    args: argparse.Namespace,
    varied: dict[str, Setting],
) -> Spec:
    """One run: what the flags say, as far as the method has such a setting."""
    dataset, n_domains, alpha = cell.split("-")
    name, fixed = METHODS[method]
    given = flags(args, fine_tuned=method == "end-to-end") | fixed | varied
    known = find_method(name).settings
    strange = set(varied) - set(known)
    if strange:
        raise SystemExit(f"--sweep: {name} has no {sorted(strange)}")
    chosen = {
        key: value
        for key, value in given.items()
        if key in known and value != known[key]
    }
    return Spec(
        dataset,
        int(n_domains),
        float(alpha),
        wave,
        name,
        n_rows=args.rows,
        settings=chosen,
    )


def flags(args: argparse.Namespace, fine_tuned: bool) -> dict[str, Setting]:
    """Settings that were given, by name; those of fine-tuning only where asked for."""
    both = ("n_components", "n_starts")
    given: dict[str, Setting] = {
        name: getattr(args, name)
        for name in TUNING
        if getattr(args, name) is not None and (fine_tuned or name in both)
    }
    if args.untold and fine_tuned:
        given["told"] = False
    if args.no_refit and fine_tuned:
        given["refit"] = False
    others = {
        "search": args.search,
        "compile": args.compile,
        "learning_rates": args.rates,
        "backbone": args.backbone,
    }
    given |= {name: value for name, value in others.items() if value}
    pairs = [pair.partition("=") for pair in args.set]
    return given | {name: read_value(value) for name, _, value in pairs}


def sweep(pairs: list[str]) -> list[dict[str, Setting]]:
    """All combinations of ``name=value,value`` pairs."""
    names = [pair.partition("=")[0].replace("-", "_") for pair in pairs]
    values = [
        [read_value(text) for text in pair.partition("=")[2].split(",")]
        for pair in pairs
    ]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]


def read_value(text: str) -> Setting:
    """A number, true, false or none where it is one; text otherwise."""
    words: dict[str, Setting] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def show(spec: Spec, record: dict[str, Any]) -> None:
    if "failure" in record:
        print(f"FAILED {spec}: {record['failure']['text']}", flush=True)
        return
    metrics, notes = record["metrics"], record["notes"]
    parts = [f"accuracy {metrics['accuracy']:.4f}"]
    if metrics["prevalence_error"] is not None:
        parts.append(f"prevalence error {metrics['prevalence_error']:.4f}")
    if "gain" in notes:
        parts.append(f"gain {notes['gain']:.4f} ± {notes['gain_error']:.4f}")
        parts.append(f"epoch {notes['best_epoch']}")
    for key in ("score", "held_out_loss", "loss"):
        if notes.get(key) is not None:
            parts.append(f"{key} {notes[key]:.4f}")
    parts.append(f"{record['seconds']:.1f} s")
    if record["gpu_mib"] is not None:
        parts.append(f"{record['gpu_mib'] / 1024:.1f} GiB")
    print(f"{spec}: {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
