"""Make the frozen models of a format, once: they are what old users still have.

    python tests/io/models/make.py

A folder that exists is never touched. When the format of models changes, raise FORMAT
in ``shoal.io.model`` and run this again: the new folder joins the old ones, which the
tests keep loading for ever.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import shoal
from shoal.datasets import make_latent_shift
from shoal.io import read
from shoal.io.model import _probe as history
from shoal.io.model._models import FORMAT

HERE = Path(__file__).parent


def rows() -> tuple[Any, Any]:
    X, domains, _ = make_latent_shift(
        160,
        n_classes=3,
        n_domains=4,
        n_features=2,
        separation=4.0,
        alpha=0.5,
        random_state=0,
    )
    return X.round(2), np.array(["north", "south", "east", "west"])[domains]


def words() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    table = np.array([["red", "round"], ["blue", "flat"], ["red", "flat"]])
    places = rng.integers(3, size=90)
    share = np.array([[0.7, 0.1, 0.2], [0.1, 0.7, 0.2], [0.4, 0.4, 0.2]])
    draws = [rng.choice(3, p=share[place]) for place in places]
    return table[draws], places + 2020


def counts() -> tuple[Any, Any]:
    sales = np.array([[81, 6, 13], [18, 48, 34], [45, 30, 25]])
    return sales, np.array(["north", "south", "west"])


def models() -> dict[str, tuple[Any, Any, Any, dict[str, Any]]]:
    """Name, fitted model, rows, domains, and what else is saved with it."""
    X, domains = rows()
    frame = pd.DataFrame(X, columns=["size", "mass"]).assign(
        site=domains, colour=np.where(X[:, 0] > 0, "red", "blue")
    )
    table = read(frame, domain="site", impute="median")
    mixture = shoal.DomainMixture(3, search=False, random_state=0)
    mixture.fit(table.X, domains)
    rbf = shoal.DomainMixture(3, search=False, expansion="rbf", random_state=0)
    ddfa = shoal.DDFA(3, discriminator="logistic", random_state=0)
    discrete = shoal.DiscreteMixture(2, random_state=0)
    bags = shoal.DiscreteMixture(2, input="counts", random_state=0)
    named = history.rename(mixture, {"c0": "first", "c2": "third"})
    merged = history.merge(named, ["first", "third"], name="both")
    summary = {"verdict": "clear", "source": {"rows": 160, "fingerprint": "0" * 64}}
    return {
        "mixture": (mixture, table.X, domains,
                    {"schema": table.schema, "summary": summary}),
        "mixture_rbf": (rbf.fit(X, domains), X, domains, {}),
        "ddfa": (ddfa.fit(X, domains), X, domains, {}),
        "discrete_words": (discrete.fit(*words()), *words(), {}),
        "discrete_counts": (bags.fit(*counts()), *counts(), {}),
        "merged": (merged, table.X, domains, {}),
    }  # fmt: skip


def main() -> None:
    """Write what is not there yet."""
    for name, (model, X, domains, more) in models().items():
        folder = HERE / f"format{FORMAT}" / name
        if folder.exists():
            print(f"{folder} exists; left alone")
            continue
        shoal.save(model, folder / "model", **more)
        few = slice(0, 12)
        np.savez_compressed(
            folder / "expected.npz",
            X=X[few],
            domains=domains[few],
            pooled=model.predict_proba(X[few]),
            by_domain=model.predict_proba(X[few], domains[few]),
            prevalence=model.prevalence_,
            labels=model.labels_,
            allow_pickle=False,
        )


if __name__ == "__main__":
    main()
