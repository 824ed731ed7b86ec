"""Portal rodents, on a small file in the same layout and on the real one."""

import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal.datasets import load_portal_rodents
from shoal.datasets._files import DATA_DIR
from shoal.datasets._tables import FILE

FOUR = ("DM", "PP", "PB", "OT")
SIX = (*FOUR, "RM", "DS")

needs_data = pytest.mark.skipif(
    not Path(os.environ.get(DATA_DIR, ""), FILE).is_file()
    or DATA_DIR not in os.environ,
    reason=f"{DATA_DIR} does not name a folder with {FILE}",
)


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """Rows to keep and one of each kind to leave out."""
    rows = [
        ("1", "1977", "1", "DM", "35", "40"),
        ("2", "1980", "2", "PP", "21", "17"),
        ("3", "1980", "24", "NA", "32", "160"),  # Neotoma albigula, not missing
        ("4", "1990", "", "DM", "36", "41"),  # no plot
        ("5", "1990", "3", "DM", "", "42"),  # no hind foot
        ("6", "1990", "3", "PP", "22", ""),  # no weight
        ("7", "1990", "3", "", "22", "18"),  # no species
        ("8", "2016", "3", "PP", "22", "18"),
    ]
    header = ("Record_ID", "yr", "plot", "species", "hfl", "wgt")
    text = "\n".join(",".join(row) for row in (header, *rows))
    (tmp_path / FILE).write_bytes(lzma.compress(text.encode()))
    return tmp_path / FILE


def test_rows_kept_and_left_out(small_file: Path) -> None:
    rodents = load_portal_rodents(small_file, ("DM", "PP"))
    assert_array_equal(rodents.domains, [1, 2, 3])
    assert_array_equal(rodents.labels, ["DM", "PP", "PP"])
    assert_allclose(np.exp(rodents.X), [[35, 40], [21, 17], [22, 18]])
    assert rodents.feature_names == ["log_hind_foot_length", "log_weight"]
    assert rodents.licence.startswith("CC0")
    assert "All 3 rows." in rodents.description


def test_woodrats_are_not_missing_values(small_file: Path) -> None:
    rodents = load_portal_rodents(small_file.parent, ["NA"])
    assert_array_equal(rodents.domains, [24])


def test_years_as_domains_leave_partial_years_out(small_file: Path) -> None:
    rodents = load_portal_rodents(small_file, ("DM", "PP"), domains="year")
    assert_array_equal(rodents.domains, [1980])
    assert rodents.domain_name == "year"
    assert "incomplete years 1977 and 2016" in rodents.description.replace("\n", " ")


def test_subsample_is_seeded_and_in_order(small_file: Path) -> None:
    every = load_portal_rodents(small_file, ("DM", "PP"))
    drawn = [
        load_portal_rodents(small_file, ("DM", "PP"), max_rows=2, random_state=state)
        for state in (0, 0, 1, 2, 3)
    ]
    assert_array_equal(drawn[0].X, drawn[1].X)
    assert len({tuple(some.domains) for some in drawn}) > 1
    for some in drawn:
        places = [every.domains.tolist().index(plot) for plot in some.domains]
        assert places == sorted(places)
        assert "A random 2 of 3 rows." in some.description


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"species": ("DM", "XX")}, ValueError, r"got \['XX'\]"),
        ({"species": ()}, ValueError, "species must hold codes"),
        ({"species": "DM"}, TypeError, r"a sequence of codes, e\.g\. \('DM',\)"),
        ({"domains": "month"}, ValueError, "'plot' or 'year', got 'month'"),
        ({"max_rows": 0}, ValueError, "max_rows must be a positive int or None, got 0"),
        ({"max_rows": 2.5}, ValueError, r"got 2\.5"),
        ({"max_rows": True}, ValueError, "got True"),
    ],
)
def test_bad_options(
    small_file: Path, options: dict[str, object], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        load_portal_rodents(small_file, **options)


def test_absent_file_says_what_to_place_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_DIR, raising=False)
    with pytest.raises(FileNotFoundError, match=f"{FILE}.*{DATA_DIR}.*Portal Project"):
        load_portal_rodents()


@needs_data
@pytest.mark.parametrize(
    ("species", "domains", "n_all", "n_domains"),
    [
        (FOUR, "plot", 39_128, 24),
        (FOUR, "year", 38_917, 38),
        (SIX, "plot", 44_371, 24),
        (SIX, "year", 44_119, 38),
    ],
)
def test_real_table(
    species: tuple[str, ...], domains: str, n_all: int, n_domains: int
) -> None:
    every = load_portal_rodents(species=species, domains=domains, max_rows=None)
    rodents = load_portal_rodents(species=species, domains=domains)
    assert every.X.shape == (n_all, 2)
    assert rodents.X.shape == (12_000, 2)
    assert np.isfinite(every.X).all()
    for some in (every, rodents):
        assert len(np.unique(some.domains)) == n_domains
        assert set(some.labels) == set(species)
    shares = [np.mean(some.labels == "DM") for some in (every, rodents)]
    assert_allclose(*shares, atol=0.02)


@needs_data
def test_real_plots_are_numbered() -> None:
    assert_array_equal(np.unique(load_portal_rodents().domains), np.arange(1, 25))
