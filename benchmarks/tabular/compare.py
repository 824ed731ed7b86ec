"""Whether `shoal.compare` is calibrated, what it sees, and what it says of real cells.

    OMP_NUM_THREADS=1 python benchmarks/tabular/compare.py

Generated sets of four kinds: two groups of domains; two groups with an age that differs
between them and moves mixes too; pairs; and two groups whose classes are estimated from
rows that overlap, so that bootstrap draws carry the noise. Each set is made twice from
one seed, without an effect on class 0 and with one (log odds +0.8). Beside it stands a
logit test as propeller does it: empirical log odds, all domains weighed alike,
variances moderated between classes, p-values of Student's t. Then the cells of COVID-19
patients (171 samples, known counts) against the directions that their authors report
for severe disease in progress. Writes results/tabular/compare.json.
"""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _record import Record, Run, mean, options
from scipy.special import digamma, polygamma
from scipy.stats import kstest, norm
from scipy.stats import t as student

import shoal
from shoal.analysis import mixture_proportions

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/compare.py"
KINDS = ("groups", "age", "pairs", "unsure")
EFFECT = 0.8
LEVEL = 0.9
CELLS = Path(__file__).parents[3] / "shared" / "data" / "real" / "covid_cells.csv.xz"
#: Of severe disease in progress against controls, as its authors tell (Ren 2021).
PUBLISHED = {"Plasma": 1, "Mega": 1, "Mono": 1, "B": 1, "CD8": -1, "DC": -1, "NK": -1}


def main() -> None:
    """Run what is missing, and print the summary."""
    parser = options(__doc__, "compare", sets=250, permutations=999)
    parser.add_argument("--cells", type=Path, default=CELLS)
    args = parser.parse_args()
    settings = {
        "kinds": KINDS,
        "effect": EFFECT,
        "level": LEVEL,
        "n_permutations": args.permutations,
    }
    record = Record(args.record, COMMAND, settings, ("kind", "seed"), summarize)
    keys = [(kind, seed) for seed in range(args.sets) for kind in KINDS]
    for kind, seed in record.missing(keys):
        record.runs.append(run(kind, seed, args.permutations))
    if args.cells.exists():
        for key in record.missing([("cells", 0)]):
            record.runs.append({"kind": key[0], "seed": key[1], **cells(args.cells)})
    record.write()
    print(json.dumps(summarize(record.runs), indent=1))


def run(kind: str, seed: int, n_permutations: int) -> Run:
    """One set without and one with an effect."""
    done: Run = {"kind": kind, "seed": seed}
    for name, effect in (("null", 0.0), ("effect", EFFECT)):
        found, table, formula = draw(kind, seed, effect)
        start = time.process_time()
        result = shoal.compare(
            found, table, formula, level=LEVEL, n_permutations=n_permutations,
            random_state=seed,
        )  # fmt: skip
        done[name] = {
            "p": float(result.p_value[0, 0]),
            "p_model": float(result.p_model[0, 0]),
            "p_logit": logit_test(found, table, kind),
            "estimate": round(float(result.estimate[0, 0]), 4),
            "covered": bool(result.low[0, 0] <= effect <= result.high[0, 0]),
            "seconds": round(time.process_time() - start, 3),
        }
    return done


def draw(kind: str, seed: int, effect: float) -> tuple:
    """Domains with their covariates and the counts, or the draws, of their classes."""
    rng = np.random.default_rng([26, KINDS.index(kind), seed])
    half = int(rng.integers(4, 16))
    n_domains, n_classes = 2 * half, int(rng.integers(2, 9))
    treated = np.tile([0.0, 1.0], half)
    logits = rng.normal(scale=1.0, size=n_classes) + rng.normal(
        scale=rng.uniform(0.2, 0.8), size=(n_domains, n_classes)
    )
    table = pd.DataFrame({"drug": np.where(treated > 0, "yes", "no")})
    formula = "~ drug"
    if kind == "age":
        age = rng.normal(50, 12, n_domains) + 10 * treated
        logits[:, 0] += 0.03 * (age - 50)
        table["age"], formula = age, "~ drug + age"
    if kind == "pairs":
        patient = np.repeat(np.arange(half), 2)
        logits += rng.normal(scale=0.7, size=(half, n_classes))[patient]
        table["patient"], formula = patient.astype(str), "~ drug | patient"
    # the log odds of class 0 against all others move by the effect, exactly
    logits[:, 0] += effect * treated
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sizes = np.round(np.exp(rng.uniform(np.log(60), np.log(1500), n_domains)))
    if kind == "unsure":
        return overlapping(shares, np.minimum(sizes, 400), rng), table, formula
    counts = np.array(
        [rng.multinomial(int(n), p) for n, p in zip(sizes, shares, strict=True)]
    )
    kept = counts.sum(axis=0) > 0
    kept[0] = True
    if counts[:, 0].sum() == 0 or kept.sum() < 2:
        counts[0, :2] += 1
        kept[:2] = True
    frame = pd.DataFrame(counts[:, kept], columns=np.flatnonzero(kept))
    return frame, table, formula


class Drawn:
    """What `compare` reads of intervals."""

    def __init__(self, prevalence: np.ndarray, draws: np.ndarray, n_rows: np.ndarray):
        self.prevalence, self.draws, self.n_rows = prevalence, draws, n_rows
        self.domains = list(range(len(prevalence)))
        self.class_names = [f"c{y}" for y in range(prevalence.shape[1])]


def overlapping(
    shares: np.ndarray, sizes: np.ndarray, rng: np.random.Generator
) -> Drawn:
    """Shares estimated from rows of Gaussians 1.5 apart, with 40 resamples."""
    n_classes = shares.shape[1]
    means = 1.5 * np.arange(n_classes)
    estimates, draws = [], []
    for share, size in zip(shares, sizes.astype(int), strict=True):
        values = means[rng.choice(n_classes, size, p=share)] + rng.normal(size=size)
        ratio = norm.pdf(values[:, None], means)
        weight = np.vstack(
            [np.ones(size), rng.multinomial(size, np.full(size, 1 / size), size=40)]
        )
        found = mixture_proportions(ratio, weight, tol=1e-4)
        estimates.append(found[0])
        draws.append(found[1:])
    return Drawn(np.array(estimates), np.array(draws).transpose(1, 0, 2), sizes)


def logit_test(found: object, table: pd.DataFrame, kind: str) -> float:
    """p-value of the drug for class 0 by moderated t of unweighted log odds."""
    counts = (
        found.prevalence * found.n_rows[:, None]
        if isinstance(found, Drawn)
        else found.to_numpy()
    )
    share = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    value = np.log(share / (1 - share))
    columns = [np.ones(len(table)), (table["drug"] == "yes") * 1.0]
    if kind == "age":
        columns.append(table["age"])
    X = np.column_stack(columns)
    if kind == "pairs":
        X = np.column_stack([X[:, 1:], pd.get_dummies(table["patient"]).to_numpy()])
    place = 0 if kind == "pairs" else 1
    inverse = np.linalg.inv(X.T @ X)
    freedoms = len(X) - X.shape[1]
    coefficient = inverse @ X.T @ value
    variance = ((value - X @ coefficient) ** 2).sum(axis=0) / freedoms
    logs = np.log(variance) - digamma(freedoms / 2) + np.log(freedoms / 2)
    spread = logs.var(ddof=1) - polygamma(1, freedoms / 2)
    if spread > 0:
        grid = np.exp(np.linspace(-5, 8, 4000))
        prior = 2 * grid[np.argmin(np.abs(polygamma(1, grid) - spread))]
        centre = np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2))
        scale = (prior * centre + freedoms * variance[0]) / (prior + freedoms)
        total = min(prior + freedoms, freedoms * len(variance))
    else:
        scale, total = np.exp(logs.mean()), freedoms * len(variance)
    statistic = coefficient[place, 0] / np.sqrt(scale * inverse[place, place])
    return float(2 * student.sf(abs(statistic), total))


def cells(path: Path) -> Run:
    """Directions of severe disease in progress, and how many agree with its authors."""
    frame = pd.read_csv(path).set_index("sample")
    start = time.process_time()
    formula = "~ C(state, control) + age + sex + sample_type"
    result = shoal.compare(frame.iloc[:, :10], frame, formula, random_state=0)
    row = result.effects.index("state: severe/critical_progression vs control")
    return {
        "formula": formula,
        "seconds": round(time.process_time() - start, 2),
        "log_odds": dict(
            zip(result.class_names, result.estimate[row].round(3).tolist(), strict=True)
        ),
        "q_value": dict(
            zip(result.class_names, result.q_value[row].round(4).tolist(), strict=True)
        ),
    }


def summarize(runs: list[Run]) -> dict:
    """Share of p-values below 1%, 5% and 10%, their uniformity, coverage and power."""
    summary = {
        kind: _summarize_kind([one for one in runs if one["kind"] == kind])
        for kind in (*KINDS, "all")
        if any(one["kind"] == kind for one in runs)
    }
    summary["all"] = _summarize_kind([one for one in runs if one["kind"] in KINDS])
    for one in runs:
        if one["kind"] == "cells":
            found, sure = one["log_odds"], one["q_value"]
            agree = {name: found[name] * sign > 0 for name, sign in PUBLISHED.items()}
            summary["cells"] = {
                "directions_as_published": f"{sum(agree.values())} of {len(agree)}",
                "and_q_below_0.1": [
                    name for name in agree if agree[name] and sure[name] < 0.1
                ],
            }
    return summary


def _summarize_kind(runs: list[Run]) -> dict:
    told: dict = {"sets": len(runs)}
    for method in ("p", "p_model", "p_logit"):
        null = np.array([one["null"][method] for one in runs])
        effect = np.array([one["effect"][method] for one in runs])
        told[method] = {
            **{f"null_below_{at}": mean(null <= at) for at in (0.01, 0.05, 0.1)},
            "null_uniform_p": round(float(kstest(null, "uniform").pvalue), 3),
            "power_at_0.05": mean(effect <= 0.05),
        }
    told["coverage"] = mean(
        [one[name]["covered"] for one in runs for name in ("null", "effect")]
    )
    told["bias"] = mean([one["effect"]["estimate"] - EFFECT for one in runs], 3)
    told["seconds"] = mean([one["null"]["seconds"] for one in runs], 3)
    return told


if __name__ == "__main__":
    main()
