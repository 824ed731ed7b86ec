"""Tables with labels for scoring: drawn problems and natural domains.

The files lie in the folder ``real`` of ``SHOAL_DATA_DIR``, those of FRESH in ``fresh``.
Drawn problems deal the rows of a labelled table to domains: the mix of each ~
Dirichlet(alpha), sizes ~ Dirichlet(4) times the rows, without replacement.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

from shoal.datasets import load_hawks, load_penguins, load_portal_rodents

Array = np.ndarray


class Table(NamedTuple):
    """Rows, where they come from, and labels that only scores may see."""

    X: Array
    domains: Array
    labels: Array


class Deal(NamedTuple):
    """How a labelled table is dealt to domains."""

    label: str
    n_domains: int
    alpha: float
    n_rows: int
    leave_out: tuple[str, ...] = ()


DEALS = {
    "olive": Deal("label", 6, 1.5, 300, ("area",)),
    "wine": Deal("label", 6, 2.0, 2000),
    "pendigits": Deal("label", 14, 2.0, 3000),
    "beans": Deal("label", 10, 1.5, 3000),
    "phoneme": Deal("label", 8, 1.5, 2500),
}
#: Dealt likewise, and not opened before the rules were set.
FRESH = {
    "satellite": Deal("label", 10, 1.5, 2500),
    "digits": Deal("label", 14, 2.0, 1500),
    "vehicle": Deal("label", 6, 1.5, 700),
    "tumours": Deal("label", 6, 1.5, 450),
    "cells": Deal("label", 8, 1.5, 1600),
    "crabs": Deal("label", 6, 2.0, 160),
}
BUILT_IN = {"digits": load_digits, "tumours": load_breast_cancer}
SIZE_ALPHA = 4.0
LEAST_ROWS = 5


def read(name: str) -> pd.DataFrame:
    """One of the files, or a table that scikit-learn brings along."""
    if name in BUILT_IN:
        data = BUILT_IN[name](as_frame=True)
        return data.data.assign(label=data.target)
    folder = Path(os.environ["SHOAL_DATA_DIR"]) / ("fresh" if name in FRESH else "real")
    return pd.read_csv(folder / f"{name}.csv.xz")


def deal(name: str, seed: int) -> Table:
    """Rows of a labelled table, dealt to domains."""
    plan, frame = (DEALS | FRESH)[name], read(name)
    labels = np.unique(frame[plan.label], return_inverse=True)[1]
    which, domains = deal_rows(labels, plan.n_domains, plan.alpha, plan.n_rows, seed)
    columns = frame.drop(columns=[plan.label, *plan.leave_out])
    return Table(columns.to_numpy(float)[which], domains, labels[which])


def deal_rows(
    labels: Array, n_domains: int, alpha: float, n_rows: int, seed: int
) -> tuple[Array, Array]:
    """Numbers of rows, and the domain that each is dealt to."""
    rng = np.random.default_rng(seed)
    n_labels = int(labels.max()) + 1
    mixes = rng.dirichlet(np.full(n_labels, alpha), size=n_domains)
    sizes = rng.dirichlet(np.full(n_domains, SIZE_ALPHA)) * n_rows
    left = [list(rng.permutation(np.flatnonzero(labels == y))) for y in range(n_labels)]
    rows: list[int] = []
    domains: list[int] = []
    for domain, size in enumerate(np.maximum(sizes.astype(int), LEAST_ROWS)):
        for y, wanted in enumerate(rng.multinomial(size, mixes[domain])):
            taken = [left[y].pop() for _ in range(min(wanted, len(left[y])))]
            rows += taken
            domains += [domain] * len(taken)
    order = rng.permutation(len(rows))
    return np.array(rows)[order], np.array(domains)[order]


def sdss(seed: int) -> Table:
    """Stars, galaxies and quasars by plate: four colours and a magnitude."""
    frame = read("sdss")
    frame["bin"] = pd.qcut(frame["plate"], 12, labels=False)
    frame = frame.sample(2500, random_state=seed)
    pairs = ("ug", "gr", "ri", "iz")
    X = np.column_stack([*(frame[a] - frame[b] for a, b in pairs), frame["r"]])
    return Table(X, frame["bin"].to_numpy(), frame["class"].to_numpy())


def gvhd(seed: int) -> Table:
    """Cells by sample of blood, the four largest populations."""
    frame = read("gvhd").query("label <= 4").sample(4000, random_state=seed)
    return _split(frame, "sample", "label")


def storms(seed: int) -> Table:
    """Tropical storms by ocean box: wind and pressure."""
    frame = read("storms").sample(2500, random_state=seed)
    return _split(frame, "ocean_box", "label", ["wind", "pressure"])


def finches(seed: int) -> Table:
    """Finches by island, log lengths with their gaps; the hidden classes are genera."""
    del seed
    frame = read("finches").dropna(subset=["GenusL69"])
    table = _split(frame.drop(columns="SpeciesID"), "IslandID", "GenusL69")
    return table._replace(X=np.log(table.X))


def heart(seed: int) -> Table:
    """Patients by hospital, with many gaps."""
    del seed
    return _split(read("heart"), "hospital", "label")


def cell_lines(seed: int) -> Table:
    """Cells of two lines in three batches."""
    del seed
    return _split(read("cell_lines"), "dataset", "label")


def _split(
    frame: pd.DataFrame, domain: str, label: str, columns: list[str] | None = None
) -> Table:
    names = frame.columns.drop([domain, label]) if columns is None else columns
    return Table(
        frame[names].to_numpy(float), frame[domain].to_numpy(), frame[label].to_numpy()
    )


def _loaded(load: Callable, **options: str) -> Callable[[int], Table]:
    def load_table(seed: int) -> Table:
        sampled = {"max_rows": 3000, "random_state": seed} if options else {}
        data = load(**options, **sampled)
        return Table(data.X, data.domains, data.labels)

    return load_table


def _dealt(name: str) -> Callable[[int], Table]:
    return lambda seed: deal(name, seed)


TABLES: dict[str, Callable[[int], Table]] = {
    **{name: _dealt(name) for name in DEALS},
    "penguins": _loaded(load_penguins),
    "hawks": _loaded(load_hawks),
    "rodents by year": _loaded(load_portal_rodents, domains="year"),
    "rodents by plot": _loaded(load_portal_rodents, domains="plot"),
    "SDSS": sdss,
    "cell lines": cell_lines,
    "GvHD": gvhd,
    "storms": storms,
    "finches": finches,
    "heart": heart,
}
FRESH_TABLES = {name: _dealt(name) for name in FRESH}
