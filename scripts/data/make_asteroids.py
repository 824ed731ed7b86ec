"""Make asteroids.csv.xz for ``shoal.datasets.load_asteroids``.

Source: orbital elements of NASA/JPL's Small-Body Database, as packaged in Debian's
kstars-data (5:3.6.2-2, bookworm). Needs ``apt-get`` and ``dpkg-deb``; nothing is
installed.

    python scripts/data/make_asteroids.py --out "$SHOAL_DATA_DIR"
"""

import json
import re

from _fetch import check_sha256, debian_file, output_folder, write_table

MEMBER = "./usr/share/kstars/asteroids.dat"
SHA256 = "e1aea5ca3e947ca03d57c58f3203fd7166ac26f72c8fbdc1405406f3a07e7bbd"

POPULATION = {
    **dict.fromkeys(("IMB", "MBA", "OMB"), "main belt"),
    "TJN": "Jupiter trojan",
    "CEN": "centaur",
    "TNO": "trans-Neptunian",
}
# The provisional designation holds the year of discovery: (1998 SM165), and before
# 1925 with an A for the first digit: (A801 AA). Survey designations, (2040 P-L), do
# not fit.
DESIGNATION = re.compile(r"\((A|1|2)(\d{3}) [A-Z]{2}\d*\)")


def year_of_discovery(full_name: str) -> int | None:
    """Year in the provisional designation, None where there is none."""
    found = DESIGNATION.search(full_name)
    if found is None:
        return None
    return int(found[1].replace("A", "1") + found[2])


def main() -> None:
    """Write the table."""
    folder = output_folder(__doc__.splitlines()[0])
    content = debian_file("kstars-data", MEMBER)
    check_sha256(content, SHA256, "asteroids.dat of kstars-data")
    table = json.loads(content)
    records = (dict(zip(table["fields"], row, strict=True)) for row in table["data"])
    rows = [
        (year, POPULATION[record["class"]], *(record[name] for name in "aei"))
        for record in records
        if record["class"] in POPULATION
        and (year := year_of_discovery(record["full_name"])) is not None
    ]
    write_table(
        folder / "asteroids.csv.xz", ("year", "population", "a", "e", "i"), rows
    )


if __name__ == "__main__":
    main()
