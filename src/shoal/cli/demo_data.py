"""Data of ``shoal demo``: tables that come with the package or with scikit-learn."""

from dataclasses import dataclass
from typing import Any

__all__ = ["DATASETS", "KNOWN_K", "DemoData"]

N_SITES = 12
ALPHA = 3.0
MAX_CONDITION = 8.0


@dataclass(frozen=True)
class DemoData:
    """A table with a domain, a label that no fit sees, and rows as if from a new place.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    frame : DataFrame
        All rows, with the columns ``domain`` and ``label`` among others.
    domain, label : str
    new : DataFrame
        Rows without a domain.
    title, story : str
        What the data are, in a line.
    images : callable or None
        The picture of a row.
    """

    name: str
    frame: Any
    domain: str
    label: str
    new: Any
    title: str
    story: str
    images: Any = None


def penguins() -> DemoData:
    """Penguins of three islands; the label is the species."""
    import pandas as pd

    from shoal.datasets import load_penguins

    data = load_penguins(as_frame=True)
    frame = pd.concat([data.domains, data.X, data.labels], axis=1)
    frame.insert(0, "bird", [f"bird{number}" for number in range(1, len(frame) + 1)])
    dream = frame[data.domains == "Dream"]
    return DemoData(
        name="penguins",
        frame=frame,
        domain=data.domain_name,
        label=data.label_name,
        new=dream.drop(columns=[data.domain_name, data.label_name]),
        title="Penguins of three islands",
        story=f"{len(frame)} penguins, {data.X.shape[1]} measurements, the island of "
        "each, no species",
    )


def digits() -> DemoData:
    """Handwritten digits, dealt to sites with mixes of their own."""
    import pandas as pd
    from sklearn.datasets import load_digits

    from shoal.benchmark.shift import draw_prevalence, plan_domains, take

    pixels, labels = load_digits(return_X_y=True)
    mixes = draw_prevalence(10, N_SITES, ALPHA, MAX_CONDITION, random_state=0)
    plan = plan_domains(labels, mixes, valid_share=0, random_state=0)
    X, site = take(plan, pixels)
    varying = X.std(axis=0) > 0  # some corners are never written on
    columns = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    frame = pd.DataFrame(X, columns=columns).loc[:, varying]
    frame.insert(0, "scan", [f"scan{number}" for number in range(1, len(X) + 1)])
    frame.insert(1, "site", [f"site{number + 1:02d}" for number in site])
    frame["digit"] = plan.labels(labels)
    return DemoData(
        name="digits",
        frame=frame,
        domain="site",
        label="digit",
        new=frame[site == 0].drop(columns=["site", "digit"]),
        title="Handwritten digits of twelve sites",
        story=f"{len(frame)} scans of handwritten digits, dealt to {N_SITES} sites "
        "with mixes of their own, no digit told",
        images=lambda row: _picture(X[row]),
    )


def _picture(pixels: Any) -> Any:
    """Dark ink on white, as numbers from 0 to 255."""
    import numpy as np

    return (255 - pixels.reshape(8, 8) * (255 / 16)).astype(np.uint8)


DATASETS = {"penguins": penguins, "digits": digits}
#: Numbers of classes that a demo asks for; the others let it be chosen.
KNOWN_K = {"digits": 10}
