"""How far verdicts and intervals can be trusted, on problems of eight shapes.

    OMP_NUM_THREADS=1 python benchmarks/tabular/verdicts.py --part development
    OMP_NUM_THREADS=1 python benchmarks/tabular/verdicts.py --part fresh
    OMP_NUM_THREADS=1 python benchmarks/tabular/verdicts.py --part summary

The design is frozen: problems are pure functions of their specs (``_problems.py``),
the thresholds of drift and instruments were set on *development*, without labels; those
of *fresh* are only reported. Every problem is fitted with the default route and the
number of classes given, then diagnosed. Labels enter only the scores: accuracy, and
that of the labelled reference, the better of trees and of a linear discriminant, out of
fold, with the domain as columns.
"""

import argparse
import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _problems import INSTRUMENTS, SHAPES, Problem, Spec, design, make_problem
from _record import FOLDER, append_line, mean, read_lines, versions
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict

from shoal import DomainMixture
from shoal.analysis._resample import match_by_rows
from shoal.analysis.diagnose import THRESHOLDS
from shoal.io.extend import write_whole
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/verdicts.py"
LINES = FOLDER / "verdicts.jsonl"
SUMMARY = FOLDER / "verdicts.json"
# Seeds of the design; those of one part never meet the other. Seeds 1000 to 1002 were
# reported once, and looked at then.
PARTS = {
    "development": range(2000, 2003),
    "earlier": range(4000, 4003),  # by the version before, whose rules they then set
    "fresh": range(6100, 6103),
}
LEVEL, RESAMPLES = 0.9, 40


def main() -> None:
    """Run what is missing of a part, or judge what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "summary"], required=True)
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--of", type=int, nargs=2, default=(0, 1), metavar=("I", "N"))
    args = parser.parse_args()
    if args.part == "summary":
        content = {"command": COMMAND, "versions": versions(),
                   "thresholds": asdict(THRESHOLDS),
                   "summary": summarize(read_lines(args.lines))}  # fmt: skip
        write_whole(SUMMARY, json.dumps(content, indent=1) + "\n")
        print(json.dumps(content["summary"], indent=1))
        return
    done = {Spec(**run["spec"]) for run in read_lines(args.lines)}
    specs = design(PARTS[args.part])
    order = np.random.default_rng(0).permutation(len(specs))  # any part is a fair one
    for spec in (specs[i] for i in order[args.of[0] :: args.of[1]]):
        if spec not in done:
            append_line(args.lines, {"part": args.part, **run(spec)})


def run(spec: Spec) -> dict[str, Any]:
    """Fit, diagnose and score one problem; resample where it is sound."""
    problem = make_problem(spec)
    model = DomainMixture(problem.n_classes, random_state=spec.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(problem.X, problem.domains)
        found = model.diagnose(problem.X, problem.domains, random_state=spec.seed)
    accuracy = matched_accuracy(problem.labels, model.labels_)
    reference = labelled_reference(problem)
    return {
        "spec": asdict(spec),
        "by": model.route_.by,
        "accuracy": round(accuracy, 4),
        "reference": round(reference, 4),
        "behind": round(reference - accuracy, 4),
        "culprit": problem.culprit,
        "verdict": found.verdict,
        "raised": {f.code: f.status for f in found.findings if f.status != "ok"},
        **told_drift(found.numbers["drift"]),
        "coverage": None if spec.strength else covered(model, problem, spec.seed),
    }


def told_drift(drift: dict[str, Any] | None) -> dict[str, Any]:
    """Shares of domains apart, and domain and column of the first instrument."""
    if drift is None:
        return {"apart": None, "told": None}
    sure = drift["apart"] > THRESHOLDS.apart_sure * drift["apart_error"]
    first = drift["instruments"][:1]
    return {
        "apart": round(float(sure.sum() / np.isfinite(drift["apart"]).sum()), 3),
        "told": [first[0]["domain"], first[0]["column"]] if first else None,
    }


def labelled_reference(problem: Problem) -> float:
    """Accuracy of the better of two that were taught with labels, out of fold."""
    where = np.eye(problem.domains.max() + 1)[problem.domains]
    rows = np.column_stack([problem.X, where])
    taught = (
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        ExtraTreesClassifier(60, min_samples_leaf=3, random_state=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may be rarer than the folds
        guesses = [cross_val_predict(one, rows, problem.labels, cv=3) for one in taught]
    return max(float((guess == problem.labels).mean()) for guess in guesses)


def covered(model: Any, problem: Problem, seed: int) -> float:
    """Share of the true prevalences that the intervals hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.bootstrap(
            problem.X,
            problem.domains,
            n_resamples=RESAMPLES,
            level=LEVEL,
            random_state=seed,
        )
    truth_of = match_by_rows(problem.labels, model.labels_, problem.n_classes)
    truth = problem.prevalence[:, truth_of]
    return round(float(((found.low <= truth) & (truth <= found.high)).mean()), 4)


# ---- the summary ---------------------------------------------------------------------


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Rates of verdicts, of names and of coverage, for both parts."""
    parts = {}
    for part in PARTS:
        mine = [run for run in runs if run["part"] == part]
        if mine:
            parts[part] = rates(mine)
    return parts


def rates(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All that the study is asked for."""
    clear = [run for run in runs if run["verdict"] == "clear"]
    strong = [run for run in runs if run["spec"]["strength"] == 3]
    harmed = {limit: [run for run in strong if run["behind"] > limit]
              for limit in (0.05, 0.15)}  # fmt: skip
    sound = [run for run in runs if not run["spec"]["strength"]]
    by_kind = {}
    for kind in sorted({run["spec"]["violation"] for run in runs}):
        for strength in range(4):
            some = [r for r in runs if (r["spec"]["violation"], r["spec"]["strength"])
                    == (kind, strength)]  # fmt: skip
            if some:
                by_kind[f"{kind} {strength}"] = one_kind(some)
    return {
        "problems": len(runs),
        "clear": len(clear),
        "clear, within .05 of the reference": share(r["behind"] <= 0.05 for r in clear),
        "clear, more than .15 below it": share(r["behind"] > 0.15 for r in clear),
        "sound and called clear": share(r["verdict"] == "clear" for r in sound),
        "sound and forbidden": share(r["verdict"] == "do not use" for r in sound),
        "strong and forbidden": share(r["verdict"] == "do not use" for r in strong),
        **{
            f"strong, more than {limit} below the reference, forbidden": share(
                r["verdict"] == "do not use" for r in some
            )
            for limit, some in harmed.items()
        },
        "strong, within .05 of the reference, forbidden": share(
            r["verdict"] == "do not use" for r in strong if r["behind"] <= 0.05
        ),
        "all more than .15 below, forbidden": share(
            r["verdict"] == "do not use" for r in runs if r["behind"] > 0.15
        ),
        "mean loss by verdict": {
            verdict: mean(r["behind"] for r in runs if r["verdict"] == verdict)
            for verdict in sorted({r["verdict"] for r in runs})
        },
        "instruments named first": {
            f"{kind} {strength}": share(named(r) for r in runs
                if (r["spec"]["violation"], r["spec"]["strength"]) == (kind, strength))
            for kind in INSTRUMENTS for strength in (1, 2, 3)
        },
        "sound, and an instrument named": share("W124" in r["raised"] for r in sound),
        "coverage by shape": coverage(sound),
        "by violation and strength": by_kind,
    }  # fmt: skip


def share(flags: Any) -> list[float]:
    """A share, and of how many."""
    flags = list(flags)
    return [round(sum(flags) / max(len(flags), 1), 3), len(flags)]


def one_kind(runs: list[dict[str, Any]]) -> dict[str, Any]:
    verdicts = [run["verdict"] for run in runs]
    codes = sorted({code for run in runs for code in run["raised"]})
    return {
        "verdicts": {one: verdicts.count(one) for one in sorted(set(verdicts))},
        "raised": {code: sum(code in run["raised"] for run in runs) for code in codes},
        "accuracy": mean(run["accuracy"] for run in runs),
        "reference": mean(run["reference"] for run in runs),
    }


def named(run: dict[str, Any]) -> bool:
    """Whether W124 is told, of the column and the domain that were planted."""
    return "W124" in run["raised"] and run["told"] == list(run["culprit"])


def coverage(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean over problems of the share of cells that intervals hold."""
    known = [run for run in runs if run["coverage"] is not None]
    result = {"all": mean(run["coverage"] for run in known)}
    for shape in SHAPES:
        some = [r for r in known if r["spec"]["shape"] == shape]
        if some:
            result[shape] = [mean(r["coverage"] for r in some), len(some)]
    return result


if __name__ == "__main__":
    main()
