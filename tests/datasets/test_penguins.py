"""The penguins that ship with the package."""

import subprocess
import sys
from collections import Counter

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from shoal.datasets import load_penguins


def test_contract() -> None:
    penguins = load_penguins()
    assert penguins.X.shape == (342, 4)
    assert penguins.X.dtype == np.float64
    assert np.isfinite(penguins.X).all()
    assert penguins.feature_names == [
        "bill_length_mm",
        "bill_depth_mm",
        "flipper_length_mm",
        "body_mass_g",
    ]
    assert (penguins.domain_name, penguins.label_name) == ("island", "species")
    assert penguins.licence.startswith("CC0")


def test_species_of_each_island() -> None:
    """Counts of the published data, less the two birds without measurements."""
    penguins = load_penguins()
    pairs = zip(penguins.domains.tolist(), penguins.labels.tolist(), strict=True)
    assert Counter(pairs) == {
        ("Biscoe", "Adelie"): 44,
        ("Biscoe", "Gentoo"): 123,
        ("Dream", "Adelie"): 56,
        ("Dream", "Chinstrap"): 68,
        ("Torgersen", "Adelie"): 51,
    }


def test_first_rows_are_the_published_ones() -> None:
    """The fourth bird of the table was not measured: the fifth follows the third."""
    penguins = load_penguins()
    assert_allclose(penguins.X[0], [39.1, 18.7, 181, 3750])
    assert_allclose(penguins.X[3], [36.7, 19.3, 193, 3450])


def test_description_says_what_was_left_out() -> None:
    description = load_penguins().description
    assert (
        "two of the 344 birds without measurements are left out"
        in description.replace("\n", " ")
    )


def test_frame_holds_the_same_values() -> None:
    arrays, frames = load_penguins(), load_penguins(as_frame=True)
    assert_array_equal(frames.X.to_numpy(), arrays.X)
    assert frames.X.columns.tolist() == arrays.feature_names
    assert_array_equal(frames.domains, arrays.domains)
    assert_array_equal(frames.labels, arrays.labels)
    assert (frames.domains.name, frames.labels.name) == ("island", "species")


def test_every_call_gives_its_own_copy() -> None:
    first = load_penguins()
    first.X[:] = 0
    assert load_penguins().X.min() > 0


def test_pandas_is_not_needed() -> None:
    """On a machine without pandas the arrays are still there."""
    code = (
        "import sys; sys.modules['pandas'] = None; "
        "from shoal.datasets import load_penguins; print(load_penguins().X.shape)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "(342, 4)"
