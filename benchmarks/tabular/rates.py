"""How the error of DomainMixture falls with rows: a record and a log-log figure.

    OMP_NUM_THREADS=1 python benchmarks/tabular/rates.py

Generated Gaussian problems (5 classes, 8 domains, 10 columns, alpha 3), so that the
truth is known exactly: the same problem of each seed at every number of rows.
Writes results/tabular/rates.json, after every problem and number of rows, and
docs/images/rates.png; ``--draw`` only draws.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from _record import FOLDER, Record, Run, deviation, options

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.exceptions import ShoalWarning
from shoal.metrics import (
    match_classes,
    prevalence_error,
    true_prevalence,
)

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/rates.py"
FIGURE = FOLDER.parents[1] / "docs" / "images" / "rates.png"

N_CLASSES, N_DOMAINS = 5, 8
ROWS_PER_DOMAIN = (300, 1_000, 3_000, 10_000, 30_000)
TEST_ROWS = 40_000
# The quick fit with its fixed penalties, and almost none.
SETTINGS = {
    "search=False": {},
    "almost no penalties": {"ridge": 1e-7, "confidence": 0.0, "dirichlet": 0.0},
}
COUNTING = "counting labels"
TICKS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
COLOURS = {
    "search=False": "#0072B2",
    "almost no penalties": "#D55E00",
    COUNTING: "#555555",
}


def main() -> None:
    """Measure, unless there is only something to draw."""
    parser = options(__doc__, "rates", seeds=6)
    parser.add_argument("--draw", action="store_true", help="only draw the figure")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    args = parser.parse_args()
    settings = {
        "problem": f"gaussian, {N_CLASSES} classes, {N_DOMAINS} domains, alpha 3",
        "rows_per_domain": ROWS_PER_DOMAIN,
        "fits": SETTINGS,
    }
    record = Record(args.record, COMMAND, settings, ("seed", "rows"), summarize)
    if not args.draw:
        keys = [(seed, rows) for seed in range(args.seeds) for rows in ROWS_PER_DOMAIN]
        for seed, rows in record.missing(keys):
            record.add({"seed": seed, "rows": rows, "fits": measure(seed, rows)})
    draw(record, args.figure)


# ---- measuring -------------------------------------------------------------------


def measure(seed: int, rows: int) -> dict[str, dict[str, float]]:
    """All settings on the problem of a seed, with so many rows per domain."""
    problem = make_latent_shift(
        2_000,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        random_state=seed,
        return_bunch=True,
    ).problem
    test = problem.sample(TEST_ROWS, random_state=1)
    posterior = problem.posterior(test[0], test[1])
    X, domains, labels = problem.sample(rows * N_DOMAINS, random_state=2)
    counted = true_prevalence(labels, domains)[0]
    error = prevalence_error(problem.prevalence, counted, matching=range(N_CLASSES))
    found = {COUNTING: {"prevalence_error": error}}
    for setting, penalties in SETTINGS.items():
        model = DomainMixture(N_CLASSES, search=False, random_state=seed, **penalties)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            model.fit(X, domains)
        seconds = time.process_time() - begun
        scores = judge(model, problem.prevalence, test, posterior)
        found[setting] = scores | {"seconds": round(seconds, 2)}
    return found


def judge(model: DomainMixture, prevalence, test, posterior) -> dict[str, float]:
    """Prevalence error, and how much likelier to be wrong than the Bayes classifier.

    The excess is computed from the true posterior, so it is never negative and free of
    the noise of the test labels.
    """
    X, domains, labels = test
    classes = model.predict(X, domains)
    matching = match_classes(labels, classes)
    chosen = np.array([matching[c] for c in range(N_CLASSES)])[classes]
    probability = posterior[np.arange(len(chosen)), chosen]
    return {
        "prevalence_error": prevalence_error(
            prevalence, model.prevalence_, matching=matching
        ),
        "excess_error": float(np.mean(posterior.max(axis=1) - probability)),
        "bayes_error": float(1 - posterior.max(axis=1).mean()),
    }


def summarize(runs: list[Run]) -> list[dict]:
    """Mean and standard deviation over seeds, and the slope in log-log."""
    lines = []
    sizes = sorted({run["rows"] for run in runs})
    for setting in (*SETTINGS, COUNTING):
        for name in ("prevalence_error", "excess_error"):
            values = [
                [r["fits"][setting].get(name) for r in runs if r["rows"] == rows]
                for rows in sizes
            ]
            if values[0][0] is None:
                continue
            mean = [float(np.mean(some)) for some in values]
            several = len(sizes) > 1
            lines.append(
                {
                    "setting": setting,
                    "measure": name,
                    "rows_per_domain": sizes,
                    "mean": mean,
                    "sd": [deviation(v, 6) for v in values],
                    "n_seeds": min(len(some) for some in values),
                    "slope": power(sizes, mean) if several else None,
                }
            )
    return lines


def power(sizes: list[int], values: list[float]) -> float:
    """Exponent of the values as a power of the sizes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


# ---- drawing ---------------------------------------------------------------------


def draw(record: Record, path: Path) -> None:
    """Two log-log panels: error of the prevalences, excess error of the classifier."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    titles = {
        "prevalence_error": "mean absolute error of p_d(y)",
        "excess_error": "error rate above the Bayes classifier's",
    }
    for panel, (measure, title) in zip(panels, titles.items(), strict=True):
        for line in summarize(record.runs):
            if line["measure"] == measure:
                draw_line(panel, line, record.runs)
        panel.set(xscale="log", yscale="log", xlabel="rows per domain")
        panel.set_title(title, fontsize=11, loc="left")
        panel.set_xticks(ROWS_PER_DOMAIN, [f"{n:,}" for n in ROWS_PER_DOMAIN])
        low, high = panel.get_ylim()
        ticks = [tick for tick in TICKS if low < tick < high]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def draw_line(panel, line: dict, runs: list[Run]) -> None:
    """The mean as a line, every problem as a faint dot."""
    setting, measure = line["setting"], line["measure"]
    colour = COLOURS[setting]
    rows = [run["rows"] for run in runs]
    values = [run["fits"][setting][measure] for run in runs]
    panel.plot(rows, values, ".", color=colour, alpha=0.3)
    panel.plot(
        line["rows_per_domain"],
        line["mean"],
        "--" if setting == COUNTING else "-",
        marker="o",
        color=colour,
        label=f"{setting} (slope {line['slope']:.2f})",
    )


if __name__ == "__main__":
    main()
