"""What smoothing gains, whether changes are false alarms, and what is found in rodents.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/trend.py

Kinds of runs. "sets": generated years with Gaussian rows of three classes whose
densities are known, so that only the order is at work: mixes that stay (false alarms),
stay but scatter from year to year (false alarms), stay with thin years first (false
alarms), walk, or jump once. "fits": the same walks and jumps with classes found by
`DomainMixture` from the rows. "rodents": four species of Portal by year, the fit of all
defaults with k given, and the shares of the species (for scoring only). Error is the
mean distance of shares; "thin" is that of years with fewer than 30 rows. Seconds of
processor time of the trend stand beside those of the fit. Writes
results/tabular/trend.json.
"""

import json
import time

import numpy as np
from _record import Record, Run, mean, options, spread
from scipy.special import softmax

import shoal
from shoal.base import LatentShiftEstimator
from shoal.datasets import load_portal_rodents
from shoal.metrics import match_classes

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/trend.py"
SETS = ("still", "scatter", "growing", "walk", "jump")
FITS = ("walk", "jump")
STILL = ("still", "scatter", "growing")  # without any change
N_YEARS, N_CLASSES, APART = 24, 3, 2.5
WALK, SCATTER, LEAP = 0.25, 0.4, (1.5, -1.0, 0.0)
THIN = 30
STRENGTH = 10.0  # where only changes are asked for

Array = np.ndarray


class GaussianClasses(LatentShiftEstimator):
    """Classes whose densities are known: the rows are q(y|x) under equal shares."""

    def fit(self, X: Array, y: Array = None, *, domains: Array = None):  # noqa: D102
        k = self.n_features_in_ = X.shape[1]
        self._store(np.full((2, k), 1 / k), np.arange(2), np.full(2, 0.5))
        return self

    def _class_given_x(self, X: Array) -> Array:
        return X


def main() -> None:
    """Run what is missing, and print the summary."""
    counts = {"alarms": 150, "sets": 50, "fits": 5, "rodents": 3}
    parser = options(__doc__, "trend", **counts, permutations=499)
    args = parser.parse_args()
    settings = {
        "n_years": N_YEARS, "n_classes": N_CLASSES, "apart": APART, "walk": WALK,
        "scatter": SCATTER, "leap": LEAP, "thin": THIN,
        "n_permutations": args.permutations,
    }  # fmt: skip
    record = Record(args.record, COMMAND, settings, ("kind", "mix", "seed"), summarize)
    keys = [("fits", mix, seed) for seed in range(args.fits) for mix in FITS]
    record.fill(keys, lambda *key: run_fit(*key, args.permutations))
    keys = [("rodents", "real", seed) for seed in range(args.rodents)]
    record.fill(keys, lambda *key: run_rodents(*key, args.permutations))
    keys = [("sets", mix, seed) for seed in range(args.sets) for mix in SETS]
    keys += [("alarms", mix, seed) for seed in range(args.alarms) for mix in STILL]
    for index, (kind, mix, seed) in enumerate(record.missing(keys)):
        record.runs.append(run_set(kind, mix, seed, args.permutations))
        if index % 50 == 0:
            record.write()
    record.write()
    print(json.dumps(summarize(record.runs), indent=1))


# ---- generated years -----------------------------------------------------------------


def draw(mix: str, seed: int, n_rows: tuple[int, int] = (5, 80)) -> tuple:
    """Mixes of the years, the year and the class of each row, and the rows."""
    rng = np.random.default_rng([38, SETS.index(mix), seed])
    logits = rng.normal(scale=0.8, size=N_CLASSES) + np.zeros((N_YEARS, N_CLASSES))
    if mix == "walk":
        logits += np.cumsum(rng.normal(scale=WALK, size=logits.shape), axis=0)
    if mix in ("scatter", "jump"):
        scale = SCATTER if mix == "scatter" else SCATTER / 2
        logits += rng.normal(scale=scale, size=logits.shape)
    jump = int(rng.integers(5, N_YEARS - 5))
    if mix == "jump":
        logits[jump:] += rng.permutation(LEAP)
    mixes = softmax(logits, axis=1)
    sizes = np.round(np.exp(rng.uniform(*np.log(n_rows), N_YEARS))).astype(int)
    if mix == "growing":
        sizes.sort()
    years = np.repeat(np.arange(N_YEARS), sizes)
    y = (rng.random((len(years), 1)) > mixes[years].cumsum(axis=1)).sum(axis=1)
    X = APART * np.eye(N_CLASSES)[y] + rng.normal(size=(len(y), N_CLASSES))
    return mixes, years, X, y, (jump if mix == "jump" else None)


def run_set(kind: str, mix: str, seed: int, n_permutations: int) -> Run:
    """Years whose classes are known; for alarms alone, the strength is not chosen."""
    # other years than those of the sets
    mixes, years, X, _, jump = draw(mix, seed + 10_000 * (kind == "alarms"))
    strength = STRENGTH if kind == "alarms" else None
    proba = softmax(APART * X, axis=1)
    model = GaussianClasses().fit(proba)
    begun = time.process_time()
    how = {"strength": strength, "n_permutations": n_permutations}
    found = shoal.trend(model, proba, order=years, **how, random_state=seed)
    seconds = time.process_time() - begun
    scored = score(found, mixes, found.unsmoothed, jump)
    return {"kind": kind, "mix": mix, "seed": seed, **scored, "seconds": tidy(seconds)}


def run_fit(kind: str, mix: str, seed: int, n_permutations: int) -> Run:
    """Years whose classes are found: 40 to 320 rows each."""
    mixes, years, X, y, jump = draw(mix, seed, (40, 320))
    begun = time.process_time()
    model = shoal.DomainMixture(N_CLASSES, random_state=seed).fit(X, years)
    fitting = time.process_time() - begun
    begun = time.process_time()
    found = shoal.trend(
        model, X, years, n_permutations=n_permutations, random_state=seed
    )
    seconds = time.process_time() - begun
    order = match_classes(y, model.labels_)  # class to label
    truth = np.zeros_like(mixes)
    truth[:, list(order)] = mixes[:, list(order.values())]
    return {
        "kind": kind, "mix": mix, "seed": seed,
        **score(found, truth, model.prevalence_, jump),
        "seconds": tidy(seconds), "seconds_of_fit": tidy(fitting),
    }  # fmt: skip


def run_rodents(kind: str, mix: str, seed: int, n_permutations: int) -> Run:
    """Portal by year; the species only score."""
    table = load_portal_rodents(domains="year", max_rows=3000, random_state=seed)
    begun = time.process_time()
    model = shoal.DomainMixture(4, random_state=seed).fit(table.X, table.domains)
    fitting = time.process_time() - begun
    begun = time.process_time()
    found = shoal.trend(
        model, table.X, table.domains, n_permutations=n_permutations, random_state=seed
    )
    seconds = time.process_time() - begun
    names, labels = np.unique(table.labels, return_inverse=True)
    order = match_classes(labels, model.labels_)
    truth = np.zeros_like(found.prevalence)
    for row, year in enumerate(found.times):
        # of all trapped in that year, not of the rows drawn: what a thin year misses
        own = everyone()[0] == year
        share = [np.mean(everyone()[1][own] == name) for name in names]
        truth[row, list(order)] = np.array(share)[list(order.values())]
    accuracy = np.mean([order[one] for one in model.labels_] == labels)
    return {
        "kind": kind, "mix": mix, "seed": seed,
        **score(found, truth, model.prevalence_, None),
        "accuracy": tidy(accuracy), "seconds": tidy(seconds),
        "seconds_of_fit": tidy(fitting),
        "changes": [int(one.first) for one in found.changes],
    }  # fmt: skip


def everyone() -> tuple:
    """Year and species of all rodents of the four species."""
    if not hasattr(everyone, "kept"):
        table = load_portal_rodents(domains="year", max_rows=None)
        everyone.kept = table.domains, table.labels
    return everyone.kept


# ---- scores --------------------------------------------------------------------------


def score(found: shoal.analysis.MixTrend, truth: Array, plain: Array, jump) -> Run:
    """Errors of shares with and without the order, coverage, and changes."""
    thin = found.n_rows < THIN
    errors = {
        "smoothed": np.abs(found.prevalence - truth),
        "plain": np.abs(plain - truth),
    }
    named = [int(np.flatnonzero(found.times == one.first)[0]) for one in found.changes]
    inside = (found.low <= truth) & (truth <= found.high)
    return {
        **{name: tidy(error.mean()) for name, error in errors.items()},
        **{f"{name}_thin": tidy(error[thin].mean()) if thin.any() else None
           for name, error in errors.items()},
        "covered": tidy(inside.mean()),
        "strength": found.strength if np.isfinite(found.strength) else None,
        "n_changes": len(named),
        "alarm": bool(named),
        "p_value": tidy(found.p_value),
        "jump_named": None if jump is None else jump in named,
        "jump_near": None if jump is None else jump - 1 in named
        or jump in named or jump + 1 in named,
    }  # fmt: skip


def tidy(value: float) -> float:
    """Four digits."""
    return round(float(value), 4)


def summarize(runs: list[Run]) -> dict:
    """Means by kind and mix."""
    found = {}
    for kind, mix in dict.fromkeys((run["kind"], run["mix"]) for run in runs):
        own = [run for run in runs if (run["kind"], run["mix"]) == (kind, mix)]
        line = {"runs": len(own)}
        for name in ("smoothed", "plain", "smoothed_thin", "plain_thin", "covered",
                     "seconds", "seconds_of_fit", "accuracy"):  # fmt: skip
            known = [run[name] for run in own if run.get(name) is not None]
            if known:
                line[name] = spread(known)
        line["alarms"] = mean(run["alarm"] for run in own)
        line["changes"] = mean(run["n_changes"] for run in own)
        if mix == "jump":
            line["jump_named"] = mean(run["jump_named"] for run in own)
            line["jump_near"] = mean(run["jump_near"] for run in own)
        found[f"{kind}, {mix}"] = line
    return found


if __name__ == "__main__":
    main()
