"""How the error of DomainMixture falls with rows: a record and a log-log figure.

    OMP_NUM_THREADS=1 python benchmarks/tabular/rates.py

Generated Gaussian problems (5 classes, 8 domains, 10 columns, alpha 3), so that the
truth is known exactly: the same problem of each seed at every number of rows.
Writes results/tabular/rates.json and docs/images/rates.png; ``--draw`` only draws.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from shoal import DomainMixture
from shoal.cli.version import collect_versions
from shoal.datasets import make_latent_shift
from shoal.exceptions import ShoalWarning
from shoal.metrics import (
    match_classes,
    prevalence_error,
    true_prevalence,
)

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "results" / "tabular" / "rates.json"
FIGURE = ROOT / "docs" / "images" / "rates.png"

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--draw", action="store_true", help="only draw the figure")
    args = parser.parse_args()
    if not args.draw:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps(measure(range(args.seeds)), indent=1) + "\n")
    draw(json.loads(RECORD.read_text()))


# ---- measuring -------------------------------------------------------------------


def measure(seeds: range) -> dict:
    runs = [record for seed in seeds for record in measure_problem(seed)]
    return {
        "problem": f"gaussian, {N_CLASSES} classes, {N_DOMAINS} domains, alpha 3",
        "versions": collect_versions(),
        "summary": summarize(runs),
        "runs": runs,
    }


def measure_problem(seed: int) -> list[dict]:
    """All settings at every number of rows, on one problem."""
    problem = make_latent_shift(
        2_000,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        random_state=seed,
        return_bunch=True,
    ).problem
    test = problem.sample(TEST_ROWS, random_state=1)
    posterior = problem.posterior(test[0], test[1])
    records = []
    for rows in ROWS_PER_DOMAIN:
        X, domains, labels = problem.sample(rows * N_DOMAINS, random_state=2)
        counted = true_prevalence(labels, domains)[0]
        error = prevalence_error(problem.prevalence, counted, matching=range(N_CLASSES))
        known = {"seed": seed, "rows": rows}
        records.append(known | {"setting": COUNTING, "prevalence_error": error})
        for setting, options in SETTINGS.items():
            model = DomainMixture(N_CLASSES, search=False, random_state=seed, **options)
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)
                model.fit(X, domains)
            seconds = time.perf_counter() - begun
            scores = judge(model, problem.prevalence, test, posterior)
            records.append(known | {"setting": setting} | scores | {"seconds": seconds})
            print(records[-1], flush=True)
    return records


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


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, and the slope in log-log."""
    lines = []
    for setting in (*SETTINGS, COUNTING):
        mine = [run for run in runs if run["setting"] == setting]
        for measure in ("prevalence_error", "excess_error"):
            if measure not in mine[0]:
                continue
            values = np.array(
                [[r[measure] for r in mine if r["rows"] == n] for n in ROWS_PER_DOMAIN]
            )
            mean = values.mean(axis=1)
            slope = np.polyfit(np.log(ROWS_PER_DOMAIN), np.log(mean), 1)[0]
            lines.append(
                {
                    "setting": setting,
                    "measure": measure,
                    "rows_per_domain": list(ROWS_PER_DOMAIN),
                    "mean": mean.tolist(),
                    "sd": values.std(axis=1, ddof=1).tolist(),
                    "n_seeds": values.shape[1],
                    "slope": float(slope),
                }
            )
    return lines


# ---- drawing ---------------------------------------------------------------------


def draw(record: dict) -> None:
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
        for line in record["summary"]:
            if line["measure"] == measure:
                draw_line(panel, line, record["runs"])
        panel.set(xscale="log", yscale="log", xlabel="rows per domain")
        panel.set_title(title, fontsize=11, loc="left")
        panel.set_xticks(ROWS_PER_DOMAIN, [f"{n:,}" for n in ROWS_PER_DOMAIN])
        low, high = panel.get_ylim()
        ticks = [tick for tick in TICKS if low < tick < high]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=9)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})


def draw_line(panel, line: dict, runs: list[dict]) -> None:
    """The mean as a line, every problem as a faint dot."""
    setting, measure = line["setting"], line["measure"]
    colour = COLOURS[setting]
    mine = [run for run in runs if run["setting"] == setting]
    rows = [run["rows"] for run in mine]
    panel.plot(rows, [run[measure] for run in mine], ".", color=colour, alpha=0.3)
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
