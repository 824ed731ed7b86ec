"""Tables of docs/benchmarks.md, from the stores of the benchmark."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from textwrap import fill
from typing import Any

from shoal_bench.published import paper_results

RESULTS = Path(__file__).parents[1] / "results"

Metrics = dict[str, Any]
#: Data set, r, alpha -> method, settings as JSON -> metrics of its waves.
Cells = Mapping[tuple[str, str, str], dict[tuple[str, str], list[Metrics]]]
Columns = Mapping[str, tuple[str, str]]
#: Method, first weights, stages -> metrics of its starts.
Starts = Mapping[tuple[str, str, str], list[Metrics]]

STAGES = ("published", "anchored", "best")
BEST = json.dumps({"stages": "best"})
SMALLER_VIEWS = json.dumps({"features": "simclr24_pca128"})
SMALLER_VIEWS_NETWORK = json.dumps({"backbone": "simclr24_resnet18"})
#: Statistics of the norms, and what clusters are made of: the paper's first.
RANDOM_COLUMNS = {
    "twenty starts": ("training", "published"),
    "clean clusters": ("training", "clean"),
    "norms anew": ("anew", "published"),
}
CIFAR_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "shoal, frozen": ("ours_frozen", "{}"),
    "shoal, end to end": ("ours_end_to_end", "{}"),
    "taught with labels": ("oracle", "{}"),
    "shoal, frozen, smaller views": ("ours_frozen", SMALLER_VIEWS),
    "shoal, end to end, smaller views": ("ours_end_to_end", SMALLER_VIEWS_NETWORK),
    "taught with labels, smaller views": ("oracle", SMALLER_VIEWS_NETWORK),
}
BASELINE_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "k-means": ("kmeans", "{}"),
    "SCAN": ("scan", "{}"),
    "SCAN + domain prior": ("scan_prior", "{}"),
    "DDFA (SI), our run": ("ddfa_si", "{}"),
    "DDFA (SI), our stages": ("ddfa_si", BEST),
}
PAIR_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "SCAN": ("scan", "{}"),
    "k-means": ("kmeans", "{}"),
    "DDFA (SPI)": ("ddfa_spi", "{}"),
    "DDFA (SPI), our stages": ("ddfa_spi", BEST),
    "shoal, frozen": ("ours_frozen", "{}"),
    "shoal, end to end": ("ours_end_to_end", "{}"),
}
NAIVE_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "k-means": ("kmeans", "{}"),
    "SCAN": ("scan", "{}"),
    "DDFA (RI)": ("ddfa_ri", "{}"),
    "DDFA (SI)": ("ddfa_si", "{}"),
    "naive": ("naive", "{}"),
    "naive (ICA)": ("naive_ica", "{}"),
    "naive (PCA)": ("naive_pca", "{}"),
    "shoal, frozen": ("ours_frozen", "{}"),
}
TWIN_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "k-means": ("kmeans", "{}"),
    "Gaussian mixture": ("gmm", "{}"),
    "naive": ("naive", "{}"),
    "DDFA as published": ("ddfa_mlp", "{}"),
    "DDFA, our stages": ("ddfa_best", "{}"),
    "shoal": ("ours_frozen", "{}"),
    "with labels": ("reference", "{}"),
}
DOMAIN_COLUMNS: Columns = {
    "majority": ("majority", "{}"),
    "k-means": ("kmeans", "{}"),
    "Gaussian mixture": ("gmm", "{}"),
    "maximum margin, our search": ("max_margin", "{}"),
    "shoal": ("ours_frozen", "{}"),
    "U^m, told the mixes": ("um_ssc", "{}"),
    "shoal, told the mixes": ("known_mixes", "{}"),
}
CLUSTER_ROWS: Columns = {
    **{
        f"DDFA (SI), m = {m}": (
            "ddfa_si",
            json.dumps({} if m == 20 else {"n_clusters": m}),
        )
        for m in (10, 20, 35, 50, 100, 150)
    },
    "majority": ("majority", "{}"),
    "SCAN": ("scan", "{}"),
    "shoal, frozen": ("ours_frozen", "{}"),
    "shoal, end to end": ("ours_end_to_end", "{}"),
}


def headline() -> str:
    """A few sentences: the 21 CIFAR cells end to end, beside paper and labels."""
    found, published = read_store("cifar"), read_published()
    gains, factors, shares = [], [], []
    for cell, best in published.items():
        ours = found[cell]["ours_end_to_end", SMALLER_VIEWS_NETWORK]
        accuracy, error = map(float, best.split(" / "))
        reached = mean(one["accuracy"] for one in ours)
        gains.append(reached - accuracy)
        factors.append(error / mean(one["prevalence_error"] for one in ours))
        runs = found[cell]["oracle", SMALLER_VIEWS_NETWORK]
        taught = {one["wave"]: one for one in runs}
        shares += [
            one["accuracy"] / taught[one["wave"]]["accuracy"]
            for one in ours
            if one["wave"] in taught
        ]
    n, won = len(gains), sum(gain > 0 for gain in gains)
    closer = sum(factor > 1 for factor in factors)
    sentences = (
        "Fine-tuned end to end on one GPU, from networks pretrained there without "
        "labels for about seven minutes, shoal is above the paper's best in "
        f"{won} of {n} cells in accuracy (by {100 * mean(gains):.0f} points on "
        f"average, by {100 * min(gains):.1f} at least)",
        f"and below its best error of the prevalences in {closer} of {n} (by a factor "
        f"of {min(factors):.1f} at least): means of three waves, one pretraining.",
        f"On the first wave it reaches {min(shares):.0%} to {max(shares):.0%} of the "
        "accuracy of the same network taught with the true labels, "
        f"{mean(shares):.0%} on average.",
        "All cells, the baselines in our hands and what they cost are in "
        "the tables below.",
    )
    return fill(" ".join(sentences), width=90, break_on_hyphens=False)


def images() -> str:
    """CIFAR by shift: means over the numbers of domains; paper, ours, with labels."""
    found = read_store("cifar")
    groups: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for cell, best in read_published().items():
        methods = first_waves(found[cell])
        ours = methods["ours_end_to_end", SMALLER_VIEWS_NETWORK]
        taught = methods["oracle", SMALLER_VIEWS_NETWORK]
        shown = (ours, methods["majority", "{}"], only_wave_0(ours), taught)
        means = (mean(one["accuracy"] for one in runs) for runs in shown)
        groups[cell[0], cell[2]].append((float(best.split(" / ")[0]), *means))
    rows = []
    for (data, alpha), cells in groups.items():
        paper, ours, *others = map(mean, zip(*cells, strict=True))
        row = [f"{data}, α = {alpha} ({len(cells)} cells)", f"**{ours:.3f}**"]
        rows.append([*row, *(f"{value:.3f}" for value in (paper, *others))])
    header = ["images", "shoal", "best of the paper", "majority"]
    return table([*header, "shoal, first wave", "with labels, first wave"], rows)


def end_to_end() -> str:
    """CIFAR cells: the paper's best, ours and the ceiling, over three waves."""
    found = read_store("cifar")
    rows = [
        [*cell, best, *show_cell(first_waves(found[cell]), CIFAR_COLUMNS)]
        for cell, best in read_published().items()
    ]
    return table(["data", "domains", "α", "paper's best", *CIFAR_COLUMNS], rows)


def confirmation() -> str:
    """Frozen fits on the two waves that no decision had seen, beside the earlier."""
    found = read_store("cifar")
    rows = []
    for cell, best in read_published().items():
        ours, majority = (found[cell][m, "{}"] for m in ("ours_frozen", "majority"))
        waves = [[o for o in ours if o["wave"] in some] for some in ((0, 1, 2), (3, 4))]
        floor = [one for one in majority if one["wave"] in (3, 4)]
        rows.append([*cell, best, *map(show_runs, waves), show_runs(floor)])
    header = ["data", "domains", "α", "paper's best", "waves 0 to 2"]
    return table([*header, "waves 3 and 4", "majority, waves 3 and 4"], rows)


def baselines() -> str:
    """CIFAR cells: the paper's DDFA (SI), and the baselines in our hands."""
    found = read_store("cifar")
    rows = [
        [
            *cell,
            read_paper(cell, "DDFA (SI)"),
            *show_cell(first_waves(found[cell]), BASELINE_COLUMNS),
        ]
        for cell in read_published()
    ]
    header = ["data", "domains", "α", "DDFA (SI), paper"]
    return table([*header, *BASELINE_COLUMNS], rows)


def scan_start() -> str:
    """DDFA (SI): what the stages do on one network, from the paper's to ours."""
    found, chance = read_store("cifar"), read_chance()
    rows = [
        [
            *cell,
            show_runs(only_wave_0(found[cell]["majority", "{}"])),
            read_paper(cell, "DDFA (SI)"),
            show_runs(only_wave_0(found[cell]["ddfa_si", "{}"])),
            chance[cell],
            *show_stages(starts, "ddfa_si", "simclr_resnet18", *STAGES),
        ]
        for cell, starts in read_starts().items()
    ]
    header = ["data", "domains", "α", "majority", "paper", "our run, wave 0"]
    header += ["one NMF, all else perfect", "twenty starts", "clusters as classes"]
    return table([*header, "our stages"], rows)


def other_starts() -> str:
    """DDFA as published and with our stages, from other weights."""
    found = read_store("cifar")
    rows = [
        [
            *cell,
            *show_stages(starts, "ddfa_si", "simclr24_resnet18", *STAGES),
            *(
                show_runs(only_wave_0(found[cell]["ddfa_spi", settings]))
                for settings in ("{}", BEST)
            ),
        ]
        for cell, starts in read_starts().items()
    ]
    header = ["data", "domains", "α", "SI, smaller views: twenty starts"]
    header += ["clusters as classes", "our stages"]
    return table([*header, "SPI", "SPI, our stages"], rows)


def random_start() -> str:
    """DDFA (RI) as published: one run, and twenty starts on its network."""
    majority = read_store("cifar")
    rows = [
        [
            *cell,
            show_runs(only_wave_0(majority[cell]["majority", "{}"])),
            read_paper(cell, "DDFA (RI)"),
            show_runs(random_runs(methods, "training", "published", starts=False)),
            *(show_runs(random_runs(methods, *one)) for one in RANDOM_COLUMNS.values()),
        ]
        for cell, methods in sorted(read_store("random").items(), key=paper_order)
    ]
    header = ["data", "domains", "α", "majority", "paper", "one run"]
    return table([*header, *RANDOM_COLUMNS], rows)


def random_runs(
    methods: Mapping[tuple[str, str], list[Metrics]],
    norms: str,
    clustered: str,
    starts: bool = True,
) -> list[Metrics]:
    """Several starts on one network, or the run that made the network."""
    wanted = (norms, clustered, starts)
    found: list[Metrics] = []
    for (_, text), metrics in methods.items():
        settings = {"norms": "anew", "clustered": "clean"} | json.loads(text)
        started = "stage_seed" in settings
        if (settings["norms"], settings["clustered"], started) == wanted:
            found += metrics
    return found


def paper_order(item: tuple[tuple[str, str, str], Any]) -> tuple[int, float]:
    """The paper's order of cells: CIFAR-20 first, then by alpha."""
    (dataset, _, alpha), _ = item
    return -int(dataset.removeprefix("CIFAR-")), float(alpha)


def small_shifts() -> str:
    """Our DDFA (RI), with five starts on the same networks."""
    found = read_store("cifar")
    rows = [
        [
            *cell,
            read_paper(cell, "DDFA (RI)"),
            show_runs(only_wave_0(found[cell]["ddfa_ri", "{}"])),
            *show_stages(starts, "ddfa_ri", "random", "published", "best"),
        ]
        for cell, starts in read_starts().items()
    ]
    header = ["data", "domains", "α", "paper", "one run", "five starts"]
    return table([*header, "five starts, our stages"], rows)


def pairs() -> str:
    """Classes of two unlike members each: every method on the same wave."""
    found = read_store("pairs")
    cells = {
        (int(dataset.removeprefix("pairs")), int(r), float(alpha)): methods
        for (dataset, r, alpha), methods in found.items()
    }
    rows = [
        [str(k), str(r), f"{alpha:g}", *show_cell(first_wave(methods), PAIR_COLUMNS)]
        for (k, r, alpha), methods in sorted(cells.items())
    ]
    return table(["classes", "domains", "α", *PAIR_COLUMNS], rows)


def naive() -> str:
    """Appendix H: every method on the first wave of CIFAR-20."""
    found = read_store("cifar")
    rows = [
        [*cell[1:], *show_cell(first_wave(found[cell]), NAIVE_COLUMNS)]
        for cell in read_published()
        if cell[0] == "CIFAR-20"
    ]
    return table(["domains", "α", *NAIVE_COLUMNS], rows)


def twin() -> str:
    """The tabular twin: every method in every cell."""
    found = read_store("twin")
    names = {"fashion10": "Fashion-MNIST", "gauss10": "Gaussian, 10"}
    names["gauss20"] = "Gaussian, 20"
    rows = [
        [names[dataset], alpha, *show_cell(methods, TWIN_COLUMNS)]
        for (dataset, _, alpha), methods in sorted(
            found.items(), key=lambda item: (item[0][0], float(item[0][2]))
        )
    ]
    return table(["data, classes", "α", *TWIN_COLUMNS], rows)


def domains() -> str:
    """What domains are worth: told none, told them, told their mixes as well."""
    rows = [
        [*cell, *show_cell(methods, DOMAIN_COLUMNS)]
        for cell, methods in sorted(read_store("domains").items(), key=paper_order)
    ]
    return table(["data", "domains", "α", *DOMAIN_COLUMNS], rows)


def clusters() -> str:
    """Appendix G: the number of clusters m, a column per alpha."""
    found, majority = read_store("clusters"), read_store("cifar")
    alphas = sorted((cell[2] for cell in found), key=float)
    for cell, methods in found.items():  # of the same waves
        methods["majority", "{}"] = first_waves(majority[cell])["majority", "{}"]
    rows = [
        [
            name,
            *(show_runs(found["CIFAR-20", "20", a].get(key, [])) for a in alphas),
        ]
        for name, key in CLUSTER_ROWS.items()
    ]
    return table(["", *(f"α = {alpha}" for alpha in alphas)], rows)


# ---- small helpers ---------------------------------------------------------------


def read_published() -> dict[tuple[str, str, str], str]:
    """The best of all the paper's methods by cell: accuracy / error."""
    page = RESULTS / "tabular" / "cifar_features.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {
        (cell[0], cell[1], cell[2]): cell[3]
        for cell in cells
        if len(cell) > 3 and cell[0].startswith("CIFAR")
    }


def read_paper(cell: tuple[str, str, str], method: str) -> str:
    """What the paper states of a method in a cell, in the manner of ``show_runs``."""
    (result,) = (
        one
        for one in paper_results()
        if one.method == method
        and one.table.startswith("appendix_E")
        and cell_of(vars(one)) == cell
    )
    accuracy = f"{result.accuracy:.3f} ± {result.accuracy_std:.3f}"
    return f"{accuracy} / {result.prevalence_error:.3f} ({result.n_seeds})"


def read_store(name: str) -> Cells:
    """Metrics of all waves, by cell and method."""
    found: dict[Any, dict[Any, list[Metrics]]] = defaultdict(lambda: defaultdict(list))
    path = RESULTS / "bench" / name / "records.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        spec = record["spec"]
        settings = json.dumps(spec.get("settings", {}))
        metrics = record["metrics"] | {"wave": spec["wave"]}
        found[cell_of(spec)][spec["method"], settings].append(metrics)
    return found


def cell_of(spec: Mapping[str, Any]) -> tuple[str, str, str]:
    """Data set, number of domains and alpha, as the tables write them."""
    dataset = spec["dataset"].replace("cifar", "CIFAR-")
    return dataset, str(spec["n_domains"]), f"{spec['alpha']:g}"


def read_starts() -> Mapping[tuple[str, str, str], Starts]:
    """Runs of the store of starts by cell; method, first weights and stages."""
    found: dict[Any, dict[Any, list[Metrics]]] = {}
    for cell, methods in read_store("starts").items():
        found[cell] = defaultdict(list)
        for (method, text), metrics in methods.items():
            settings = json.loads(text)
            usual = "random" if method == "ddfa_ri" else "simclr_resnet18"
            weights = settings.get("backbone", usual)
            stages = settings.get("stages", "published")
            found[cell][method, weights, stages] += metrics
    return found


def show_stages(starts: Starts, method: str, weights: str, *stages: str) -> list[str]:
    """Starts of a method with each of some stages."""
    return [show_runs(starts.get((method, weights, one), [])) for one in stages]


def read_chance() -> dict[tuple[str, str, str], str]:
    """By cell: one random NMF of the first matrix, in the manner of ``show_runs``."""
    text = (RESULTS / "bench" / "chance.json").read_text(encoding="utf-8")
    record = json.loads(text)
    return {
        cell_of(one): f"{one['accuracy']:.3f} ± {one['accuracy_std']:.3f} / "
        f"{one['prevalence_error']:.4f} ({record['seeds']})"
        for one in record["cells"]
        if one["wave"] == 0
    }


def first_waves(
    methods: Mapping[tuple[str, str], list[Metrics]],
) -> dict[tuple[str, str], list[Metrics]]:
    """The three waves that all of ours were run on; a few have a fourth."""
    return {
        name: [one for one in metrics if one["wave"] < 3]
        for name, metrics in methods.items()
    }


def first_wave(
    methods: Mapping[tuple[str, str], list[Metrics]],
) -> dict[tuple[str, str], list[Metrics]]:
    """The one wave that every method was run on."""
    return {name: only_wave_0(metrics) for name, metrics in methods.items()}


def only_wave_0(metrics: list[Metrics]) -> list[Metrics]:
    """The runs on the first of a cell's matrices."""
    return [one for one in metrics if one["wave"] == 0]


def show_cell(
    found: Mapping[tuple[str, str], list[Metrics]], columns: Columns
) -> list[str]:
    """A row of a cell: its methods in the order of the columns."""
    return [show_runs(found.get(key, [])) for key in columns.values()]


def show_runs(metrics: list[Metrics]) -> str:
    """Mean accuracy ± spread / mean error of the prevalences (number of runs)."""
    if not metrics:
        return "not run"
    accuracy = [one["accuracy"] for one in metrics]
    shown = f"{mean(accuracy):.3f}"
    if len(metrics) > 1:
        shown += f" ± {stdev(accuracy):.3f}"
    errors = [one["prevalence_error"] for one in metrics]
    if all(errors):  # methods with labels are told the mixes
        shown += f" / {mean(errors):.4f}"
    return f"{shown} ({len(metrics)})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
