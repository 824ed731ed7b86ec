"""Fill the marked places of README, docs and CHANGELOG from records and changes.

    python scripts/update_readme.py           # write
    python scripts/update_readme.py --check   # only say whether a page is out of date

No number in a table is typed by hand: between ``<!-- begin: NAME -->`` and
``<!-- end: NAME -->`` stands what the function of that name makes of its record.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).parent))

from bench_blocks import (
    baselines,
    clusters,
    confirmation,
    domains,
    end_to_end,
    headline,
    images,
    naive,
    other_starts,
    pairs,
    random_start,
    scan_start,
    small_shifts,
    table,
    twin,
)
from load_blocks import attacks, load
from route_blocks import numbers_of_classes, routes
from verdict_blocks import verdicts

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "tabular"


def main() -> int:
    """Rewrite the pages; the exit code of --check is 1 when one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = []
    for page, blocks in PAGES.items():
        before = (ROOT / page).read_text(encoding="utf-8")
        after = fill(before, blocks)
        if after != before:
            stale.append(page)
            if not check:
                (ROOT / page).write_text(after, encoding="utf-8")
    for page in stale:
        print(f"{page} {'is out of date' if check else 'updated'}")
    return 1 if check and stale else 0


def fill(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """Text with each block replaced by what its function returns."""
    for name, make in blocks.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"the page must have exactly one place for {name!r}")
        try:
            content = make().strip()
        except FileNotFoundError as error:
            content = f"Not measured yet: there is no {Path(error.filename).name}."
        block = f"{begin}\n\n{content}\n\n{end}"
        text = pattern.sub(lambda _, block=block: block, text)
    return text


# ---- the blocks ------------------------------------------------------------------


def panel() -> str:
    """Tabular panel: ours beside the others, mean and spread over seeds."""
    cells = defaultdict(list)
    for record in read_lines("panel.jsonl"):
        cells[record["problem"], record["method"]].append(record)
    header = ["problem (seeds)", *PANEL_COLUMNS]
    rows = []
    for problem in dict.fromkeys(problem for problem, _ in cells):
        found = [
            best_of([cells.get((problem, method), []) for method in methods])
            for methods in PANEL_COLUMNS.values()
        ]
        unlabelled = [records for records in found[:-1] if records]
        top = max(round(accuracy(records), 3) for records in unlabelled)
        seeds = min(len(records) for records in found if records)
        shown = [show_accuracy(records) for records in found]
        for place, records in enumerate(found[:-1]):
            if records and round(accuracy(records), 3) == top:
                shown[place] = f"**{shown[place]}**"
        rows.append([f"{PANEL_NAMES.get(problem, problem)} ({seeds})", *shown])
    return table(header, rows)


PANEL_COLUMNS = {
    "shoal": ["route"],
    "by shift alone": ["mixture"],
    "DDFA, our defaults": ["ddfa"],
    "DDFA as published": ["ddfa published, logit", "ddfa published, mlp"],
    "k-means": ["k-means"],
    "k-means, standardized": ["k-means, standardized"],
    "Gaussian mixture": ["gmm"],
    "majority": ["majority"],
    "with labels": ["reference"],
}
PANEL_NAMES = {
    "gauss k10 a0.5": "Gaussian, 10 classes, α = .5",
    "gauss k10 a3": "Gaussian, 10 classes, α = 3",
    "gauss k10 a10": "Gaussian, 10 classes, α = 10",
    "gauss k20 a0.5": "Gaussian, 20 classes, α = .5",
    "gauss k20 a3": "Gaussian, 20 classes, α = 3",
    "gauss k20 a10": "Gaussian, 20 classes, α = 10",
    "fashion-mnist": "Fashion-MNIST, 50 components",
    "mnist": "MNIST, 50 components",
    "rodents 4": "rodents, 4 species by plot",
    "rodents 6": "rodents, 6 species by plot",
    "xor": "opposite clouds (no linear boundary)",
    "multimodal": "classes in two pieces",
}


def tables() -> str:
    """Tabular panel in short: ours, the best other without labels, with labels."""
    cells = defaultdict(list)
    for record in read_lines("panel.jsonl"):
        cells[record["problem"], record["method"]].append(record)
    rows = []
    for problem in dict.fromkeys(problem for problem, _ in cells):
        found = {
            name: accuracy(best_of([cells.get((problem, one), []) for one in methods]))
            for name, methods in PANEL_COLUMNS.items()
        }
        rows.append([PANEL_NAMES.get(problem, problem), *beside_best(found)])
    return table(["tables", "shoal", "best other", "with labels"], rows)


def real() -> str:
    """Real tables in short, with the verdict that the fits gave of themselves."""
    record = json.loads((RESULTS / "organic.json").read_text(encoding="utf-8"))
    rows = []
    for line in record["summary"]:
        found = {
            name: line["methods"][key]["accuracy"]
            for name, key in ORGANIC_COLUMNS.items()
        }
        said = tally(line["verdicts"])
        rows.append([line["data"], *beside_best(found), said])
    header = ["real data", "shoal", "best other", "with labels", "verdict"]
    return table(header, rows)


#: Columns that are no other method without labels.
NO_PEERS = ("shoal", "by shift alone", "by looks alone", "with labels")


def beside_best(found: dict[str, float]) -> list[str]:
    """Ours, the best of the others that see no labels, and with labels."""
    ours, ceiling = found["shoal"], found["with labels"]
    others = {k: v for k, v in found.items() if k not in NO_PEERS}
    name = max(others, key=others.__getitem__)
    shown = [f"{ours:.3f}", f"{others[name]:.3f}"]
    won = round(ours, 3) >= round(others[name], 3)
    shown[0 if won else 1] = f"**{shown[0 if won else 1]}**"
    return [shown[0], f"{shown[1]} ({name})", f"{ceiling:.3f}"]


def cifar() -> str:
    """CIFAR features: the paper's best and ours, one row per number of domains."""
    lines = (RESULTS / "cifar_features.md").read_text(encoding="utf-8").splitlines()
    cells = [
        [c.strip() for c in line.split("|")[1:-1]] for line in lines if "|" in line
    ]
    header, body = cells[0], cells[2:]
    # three waves of the quick fit; the searched one, of fewer waves, is in the record
    ours, name = header.index("search=False"), "shoal, search=False"
    by_rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in body:
        by_rows[row[0], row[1]] += [row[header.index("best published")], row[ours]]
    alphas = list(dict.fromkeys(row[2] for row in body))
    head = ["data", "domains"]
    for alpha in alphas:
        head += [f"α = {alpha}: paper", name]
    return table(head, [[*key, *values] for key, values in by_rows.items()])


def rates() -> str:
    """Figure and table of the errors by rows per domain, and their slopes."""
    record = json.loads((RESULTS / "rates.json").read_text(encoding="utf-8"))
    sizes = record["summary"][0]["rows_per_domain"]
    header = ["", "setting", *(f"{size:,} rows" for size in sizes), "log-log slope"]
    names = {"prevalence_error": "prevalence error", "excess_error": "excess error"}
    rows = [
        [
            names[line["measure"]],
            line["setting"],
            *(
                f"{value:.4f} ± {sd:.4f}"
                for value, sd in zip(line["mean"], line["sd"], strict=True)
            ),
            f"{line['slope']:.2f}",
        ]
        for line in sorted(record["summary"], key=lambda line: line["measure"])[::-1]
    ]
    n_seeds = record["summary"][0]["n_seeds"]
    # Drawn by the same command that writes the record: both are there, or neither.
    figure = "![Error against rows per domain, log-log](images/rates.png)"
    spread = f"Mean ± standard deviation over {n_seeds} problems."
    return f"{figure}\n\n{table(header, rows)}\n{spread}\n"


def consistency() -> str:
    """Errors of DDFA by rows, by the error of q(d|x) and by clusters."""
    record = json.loads((RESULTS / "consistency.json").read_text(encoding="utf-8"))
    titles = {
        "rows": "rows per domain",
        "noise": "error of log q(d\\|x)",
        "clusters": "clusters m",
    }
    tables = []
    for varies, title in titles.items():
        lines = [
            line
            for line in record["summary"]
            if line["varies"] == varies and line["score"] != "anchor_purity"
        ]
        header = [title, "", *(f"{value:,}" for value in lines[0]["values"])]
        rows = [
            [
                line["method"],
                line["score"].replace("_", " "),
                *(
                    f"{value:.4f} ± {sd:.4f}"
                    for value, sd in zip(line["mean"], line["sd"], strict=True)
                ),
            ]
            for line in lines
        ]
        tables.append(table(header, rows))
    n_seeds = record["summary"][0]["n_seeds"]
    spread = f"Mean ± standard deviation over {n_seeds} problems."
    return "\n".join([*tables, spread]) + "\n"


def new_domain() -> str:
    """Error of a new domain's prevalences by its rows."""
    record = json.loads((RESULTS / "new_domain.json").read_text(encoding="utf-8"))
    summary = record["summary"]
    sizes = summary["by_rows"]
    slopes = summary["slope_10_to_1000"], summary["oracle_slope_10_to_1000"]
    rows = [
        [name, *(f"{sizes[size][key]:.4f}" for size in sizes), last]
        for name, key, last in (
            ("error, g fitted", "error", f"{slopes[0]:.2f}"),
            ("error, g known exactly", "oracle_error", f"{slopes[1]:.2f}"),
            ("coverage of 90% intervals", "coverage", ""),
        )
    ]
    header = ["", *(f"{int(size):,} rows" for size in sizes), "slope, 10 to 1,000"]
    each = record["settings"]["domains_per_size"]
    note = (
        f"Means over {summary['problems']} problems, {each} new domains of each size."
    )
    return f"{table(header, rows)}\n{note}\n"


def unknown() -> str:
    """What adapt says of a class that was left out, on problems of confirmation."""
    record = json.loads((RESULTS / "unknown.json").read_text(encoding="utf-8"))
    columns = [
        ("0% new: called present", "0%", "present"),
        ("called negligible", "0%", "negligible"),
        ("5% new: present", "5%", "present"),
        ("20% new: present", "20%", "present"),
        ("best guess", "20%", "guess"),
        ("low", "20%", "low"),
        ("high", "20%", "high"),
        ("covered", "20%", "covered"),
    ]
    rows = [
        [
            name,
            n_rows,
            *(f"{cell[f'{n_rows} rows, {at}'][key]:.2f}" for _, at, key in columns),
        ]
        for name, cell in record["summary"]["confirmation"].items()
        for n_rows in ("100", "1000")
    ]
    header = ["estimator", "rows", *(title for title, _, _ in columns)]
    each = record["settings"]["domains_per_share"]
    note = (
        f"Ten problems in each line, {each} new domains of each share in each problem."
    )
    return f"{table(header, rows)}\n{note}\n"


def updates() -> str:
    """What an update says of new rows of which something is new, or nothing."""
    record = json.loads((RESULTS / "update.json").read_text(encoding="utf-8"))
    columns = ("new_class", "mix_moved", "looks_moved", "right_column", "times_the_fit")
    rows = [
        [name, kind, str(line["updates"]), *(f"{line[key]:.2f}" for key in columns)]
        for name, cell in record["summary"].items()
        for kind, line in cell.items()
    ]
    titles = ["a class is said", "a mix", "looks", "in the right column", "times a fit"]
    return table(["estimator", "what is new", "updates", *titles], rows)


def coverage() -> str:
    """How often 90% intervals hold the truth, by rows per domain and concentration."""
    record = json.loads((RESULTS / "coverage.json").read_text(encoding="utf-8"))
    summary = record["summary"]
    rows = [
        ["all prevalences", f"{summary['coverage_of_cells']:.3f}"],
        ["mean over problems", f"{summary['mean_coverage']:.3f}"],
    ]
    for name, value in summary["by_rows_per_domain"].items():
        rows.append([f"{name} rows per domain", f"{value:.3f}"])
    for name, value in summary["by_alpha"].items():
        rows.append([f"α = {name.split()[0]}", f"{value:.3f}"])
    return table([f"{summary['problems']} problems", "covered"], rows)


def comparison() -> str:
    """Rates of `shoal.compare` and of a moderated t test, by kind of set."""
    record = json.loads((RESULTS / "compare.json").read_text(encoding="utf-8"))
    kinds = {
        "groups": "two groups",
        "age": "groups and age",
        "pairs": "pairs",
        "unsure": "classes unsure",
        "all": "all",
    }
    rows = []
    for kind, name in kinds.items():
        found = record["summary"][kind]
        rows.append([f"{name} ({found['sets']})", f"{found['coverage']:.3f}"])
        for method in ("p", "p_model", "p_logit"):
            own = found[method]
            rows[-1].append(
                f"{own['null_below_0.05']:.3f}, {own['null_below_0.1']:.3f}"
            )
            rows[-1].append(f"{own['null_uniform_p']:.3f}")
            rows[-1].append(f"{own['power_at_0.05']:.3f}")
    header = ["sets", "90% intervals cover"]
    for method in ("shuffled", "`p_model`", "t test"):
        header += [f"{method}: null below .05, .1", "uniform (KS p)", "power at .05"]
    return table(header, rows)


def cells() -> str:
    """What `shoal.compare` says of severe disease, and whether its authors agree."""
    record = json.loads((RESULTS / "compare.json").read_text(encoding="utf-8"))
    (run,) = (one for one in record["runs"] if one["kind"] == "cells")
    found = record["summary"]["cells"]
    rows = [
        [name, f"{value:+.2f}", f"{run['q_value'][name]:.3f}"]
        for name, value in run["log_odds"].items()
    ]
    header = ["severe disease in progress against controls", "log odds", "q"]
    sure = ", ".join(found["and_q_below_0.1"])
    return (
        f"{table(header, rows)}\n\nOf the directions that the authors report, "
        f"{found['directions_as_published']} agree; with q below .1: {sure}."
    )


def trend() -> str:
    """Errors with and without the order, coverage, and changes, by kind of series."""
    record = json.loads((RESULTS / "trend.json").read_text(encoding="utf-8"))
    kinds = {
        "sets, still": "one mix",
        "sets, scatter": "years scatter",
        "sets, growing": "one mix, thin years first",
        "sets, walk": "a walk",
        "sets, jump": "one change",
        "fits, walk": "a walk, classes found",
        "fits, jump": "one change, classes found",
        "rodents, real": "rodents",
    }
    rows = []
    for kind, name in kinds.items():
        found = record["summary"][kind]
        pairs = [("plain", "smoothed"), ("plain_thin", "smoothed_thin")]
        errors = [
            " → ".join(f"{100 * found[one][0]:.1f}" for one in pair)
            if pair[0] in found
            else ""
            for pair in pairs
        ]
        near = f"{found['jump_near']:.2f}" if "jump_near" in found else ""
        fit = found.get("seconds_of_fit")
        cost = f"{found['seconds'][0]:.1f}" + (f" ({fit[0]:.1f})" if fit else "")
        row = [f"{name} ({found['runs']})", *errors, f"{found['covered'][0]:.2f}"]
        # where mixes stay, of more series that were drawn for this alone
        more = record["summary"].get(kind.replace("sets", "alarms"), found)
        alarms = f"{more['alarms']:.3f} of {more['runs']}"
        rows.append([*row, alarms, near, cost])
    header = ["years", "error alone → smoothed", "in years below 30 rows",
              "90% intervals cover", "series with a change", "within a year of it",
              "seconds (of the fit)"]  # fmt: skip
    return table(header, rows)


def tree() -> str:
    """Cuts of trees against planted pairs and regions of olive oils."""
    record = json.loads((RESULTS / "tree.json").read_text(encoding="utf-8"))
    kinds = {
        "near": "halves together",
        "crossed": "halves apart",
        "shift": "halves apart, fits by shift",
        "olive": "olive oils",
    }
    rows = []
    for kind, name in kinds.items():
        found = record["summary"][kind]
        scores = [
            f"{found[one][0]:.3f} ± {found[one][1]:.3f}" if one in found else ""
            for one in ("accuracy", "cut", "ward", "free", "best", "agreement")
        ]
        cost = f"{found['seconds'][0]:.1f} ({found['seconds_of_fit'][0]:.1f})"
        rows.append([f"{name} ({found['runs']})", *scores, cost])
    header = ["data", "all classes", "cut at three", "Ward", "free fit with three",
              "best", "agreement", "seconds (of the fit)"]  # fmt: skip
    return table(header, rows)


def gaps() -> str:
    """Accuracy where cells are empty, by what is done about them."""
    record = json.loads((RESULTS / "gaps.json").read_text(encoding="utf-8"))
    methods = {
        "DomainMixture": "default",
        "DensityMixture": "looks",
        "by shift, expected": "expected",
        "by shift, masked": "masked",
        "median first": "median",
    }
    rows = []
    for line in record["summary"]:
        scores = [
            f"{line[one][0]:.3f} ± {line[one][1]:.3f}" for one in methods.values()
        ]
        share = f"{100 * line['share']:.0f}% {line['gaps']}" if line["share"] else "own"
        chosen = f"{line['expected_chosen']} of {line['n_seeds']}"
        times = f"{line['times_the_plain_fit']:.1f}"
        name = f"{line['data']} ({line['n_seeds']})"
        rows.append([name, share, *scores, chosen, times])
    header = ["data (seeds)", "empty cells", *methods, "expected chosen",
              "times the plain fit"]  # fmt: skip
    return table(header, rows)


def organic() -> str:
    """Real tables: every method, what was chosen, and the verdict."""
    record = json.loads((RESULTS / "organic.json").read_text(encoding="utf-8"))
    header = ["data", "rows, domains, labels (seeds)", *ORGANIC_COLUMNS]
    header += ["classes chosen", "verdict"]
    rows = []
    for line in record["summary"]:
        size = f"{line['n_rows']:,}, {line['n_domains']}, {line['n_labels']}"
        cells = [show_line(line["methods"][name]) for name in ORGANIC_COLUMNS.values()]
        rows.append(
            [
                line["data"],
                f"{size} ({line['n_seeds']})",
                *cells,
                tally([value or "no clear" for value in line["chosen_n_classes"]]),
                tally(line["verdicts"]),
            ]
        )
    return table(header, rows)


def failures() -> str:
    """Problems with one assumption broken: what was reached, and what was said."""
    record = json.loads((RESULTS / "diagnose.json").read_text(encoding="utf-8"))
    header = ["problem (number)", "accuracy", "verdicts", "findings", "flagged"]
    rows = []
    for name, case in record["summary"]["quick"]["cases"].items():
        if case["role"] == "real":
            continue
        findings = sorted(case["raised"], key=lambda code: -case["raised"][code])
        flagged = f"{case['flagged']:.0%}" if "flagged" in case else "nothing planted"
        rows.append(
            [
                f"{name} ({case['n']})",
                f"{case['accuracy']:.3f}",
                ", ".join(f"{word} {n}×" for word, n in case["verdicts"].items()),
                ", ".join(findings) or "none",
                flagged,
            ]
        )
    return table(header, rows)


def wide() -> str:
    """Few rows for many columns: what the fit chooses, and the columns as they are."""
    record = json.loads((RESULTS / "wide.json").read_text(encoding="utf-8"))
    found = {
        (one["n_rows"], one["n_columns"], one["expansion"]): one
        for one in record["summary"]
    }
    rows = []
    for n_rows, n_columns in dict.fromkeys(key[:2] for key in found):
        row = [f"{n_rows:,}", f"{n_columns:,}"]
        for expansion in ("auto", "linear"):
            one = found[n_rows, n_columns, expansion]
            row.append(f"{one['accuracy']:.3f} ± {one['accuracy_std']:.3f}")
            row.append(f"{one['as_domains']:.3f}")
        rows.append([*row, str(one["seeds"])])
    header = ["rows", "columns", "accuracy", "as the domains"]
    header += ["with all columns", "as the domains", "seeds"]
    return table(header, rows)


def ready() -> str:
    """Pictures through a ready encoder, beside k-means."""
    record = json.loads((ROOT / "results" / "vision" / "ready.json").read_text())
    return spreads(record["summary"])


def types_of_cells() -> str:
    """Generated and real cells, beside k-means and Leiden."""
    record = json.loads((RESULTS / "cells.json").read_text())
    return spreads({one["data"]: one["accuracy"] for one in record["summary"]})


def texts(name: str = "text") -> str:
    """Newsgroups in 8 and 12 domains, beside topic models."""
    record = json.loads((RESULTS / f"{name}.json").read_text())
    return spreads(
        {f"{one['n_domains']} sources": one["accuracy"] for one in record["summary"]}
    )


def bags() -> str:
    """Bags of one topic each: both estimators of counts, and intervals."""
    record = json.loads((RESULTS / "bags.json").read_text())
    kinds = {"inf": "words independent", "100.0": "words come together"}
    header = ["bags of one topic", "problems", "CountMixture", "at least .95"]
    header += ["DiscreteMixture", "intervals cover", "verdicts"]
    rows = []
    for one in record["summary"]:
        told = ", ".join(f"{n} {word}" for word, n in one["verdicts"].items() if n)
        right = f"{one['accuracy']['CountMixture']:.3f}"
        words = f"{one['accuracy']['DiscreteMixture']:.3f}"
        n, many = str(one["problems"]), str(one["at_least_.95"])
        cover = f"{one['coverage']:.3f}"
        rows.append([kinds[one["together"]], n, right, many, words, cover, told])
    return table(header, rows)


def spreads(lines: dict[str, dict[str, list[float]]]) -> str:
    """Mean and standard deviation of every method, one line for each set of data."""
    methods = list(next(iter(lines.values())))
    rows = [
        [name, *(f"{found[one][0]:.3f} ± {found[one][1]:.3f}" for one in methods)]
        for name, found in lines.items()
    ]
    return table(["accuracy", *methods], rows)


def losses() -> str:
    """Problems of the panel where another method without labels does better."""
    cells = defaultdict(list)
    for record in read_lines("panel.jsonl"):
        cells[record["problem"], record["method"]].append(record)
    lines = []
    for problem in dict.fromkeys(problem for problem, _ in cells):
        ours = accuracy(cells[problem, "route"])
        for name, methods in PANEL_COLUMNS.items():
            if name in NO_PEERS:
                continue
            other = best_of([cells.get((problem, method), []) for method in methods])
            if other and accuracy(other) > ours:
                title = PANEL_NAMES.get(problem, problem)
                lines.append(
                    f"- {title}: {name} {accuracy(other):.3f}, shoal {ours:.3f}"
                )
    return "\n".join(lines) or "On no problem of the panel."


def unreleased() -> str:
    """The files of changes/ by kind, as Keep a Changelog orders them."""
    parts = []
    for kind in ("added", "changed", "deprecated", "removed", "fixed", "security"):
        files = sorted((ROOT / "changes").glob(f"*.{kind}.md"))
        items = [path.read_text(encoding="utf-8").strip() for path in files]
        if items:
            parts.append("\n".join([f"### {kind.capitalize()}", "", *items]))
    return "\n\n".join(parts)


ORGANIC_COLUMNS = {
    "shoal": "route",
    "by shift alone": "shift",
    "by looks alone": "looks",
    "DDFA, our defaults": "ddfa",
    "DDFA as published": "ddfa published, mlp",
    "k-means": "k-means",
    "k-means, standardized": "k-means, standardized",
    "Gaussian mixture": "gmm",
    "majority": "majority",
    "with labels": "reference",
}

PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"images": images, "tables": tables, "real": real},
    "docs/theory.md": {
        "new_domain": new_domain,
        "rates": rates,
        "consistency": consistency,
        "coverage": coverage,
    },
    "docs/comparing.md": {"cells": cells, "comparison": comparison},
    "docs/attacks.md": {"attacks": attacks},
    "docs/scale_measured.md": {"load": load},
    "docs/gaps.md": {"gaps": gaps},
    "docs/shift_or_looks.md": {
        "route development": partial(routes, "development"),
        "route confirmation": partial(routes, "confirmation"),
        "route fresh": partial(routes, "fresh"),
        "given k": numbers_of_classes,
    },
    "docs/resolution.md": {"tree": tree},
    "docs/time.md": {"trend": trend},
    "docs/new_domains.md": {"unknown": unknown},
    "docs/updating.md": {"updates": updates},
    "docs/real_data.md": {"organic": organic},
    "docs/images.md": {"ready": ready},
    "docs/anndata.md": {"cells": types_of_cells},
    "docs/texts.md": {
        "texts": texts,
        "fresh texts": partial(texts, "text_fresh"),
        "bags": bags,
    },
    "docs/when_it_fails.md": {"failures": failures, "verdicts": verdicts, "wide": wide},
    "docs/benchmarks.md": {
        "confirmation": confirmation,
        "panel": panel,
        "cifar": cifar,
        "headline": headline,
        "losses": losses,
        "end_to_end": end_to_end,
        "baselines": baselines,
        "scan_start": scan_start,
        "other_starts": other_starts,
        "random_start": random_start,
        "small_shifts": small_shifts,
        "clusters": clusters,
        "naive": naive,
        "pairs": pairs,
        "twin": twin,
        "domains": domains,
    },
    "CHANGELOG.md": {"unreleased": unreleased},
}


# ---- small helpers ---------------------------------------------------------------


def read_lines(name: str) -> list[dict]:
    """Records of a file with one JSON document per line."""
    text = (RESULTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def accuracy(records: Sequence[dict]) -> float:
    """Mean accuracy over seeds."""
    return mean(record["accuracy"] for record in records)


def best_of(groups: Sequence[Sequence[dict]]) -> Sequence[dict]:
    """The group of records with the highest mean accuracy."""
    return max(groups, key=lambda group: accuracy(group) if group else 0.0)


def show_accuracy(records: Sequence[dict]) -> str:
    """Mean and spread, and the prevalence error where there is one."""
    if not records:
        return "not run"
    values = [record["accuracy"] for record in records]
    errors = [record["prevalence_error"] for record in records]
    known = [error for error in errors if error is not None]
    text = f"{mean(values):.3f} ± {stdev(values):.3f}"
    return text + (f" ({mean(known):.4f})" if known else "")


def show_line(line: dict) -> str:
    """The same from an entry of a summary."""
    text = f"{line['accuracy']:.3f} ± {line['accuracy_sd']:.3f}"
    error = line["prevalence_error"]
    return text + ("" if error is None else f" ({error:.3f})")


def tally(values: Sequence) -> str:
    """Values with how often they occurred, the most frequent first."""
    counts = {value: values.count(value) for value in values}
    ordered = sorted(counts, key=lambda value: -counts[value])
    if len(ordered) == 1:
        return str(ordered[0])
    return ", ".join(f"{value} ({counts[value]}×)" for value in ordered)


if __name__ == "__main__":
    sys.exit(main())
