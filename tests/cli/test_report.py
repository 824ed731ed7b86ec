"""Where `shoal report` writes, and how large."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.gz"])
def test_a_page_is_called_html(cli, fitted: Path, tmp_path: Path, name):
    ended = cli("report", "run", "--out", name)
    assert ended.code == 3
    assert f'E102] the report is a page in HTML, got --out "{name}"' in ended.stderr
    assert not (tmp_path / name).exists()


def test_endings_of_html_in_any_case(cli, fitted: Path, tmp_path: Path):
    for name in ("a.htm", "A.HTML"):
        assert cli("report", "run", "--out", name).code == 0
        assert (tmp_path / name).is_file()


def test_a_page_above_its_limit_says_so(cli, fitted: Path):
    ended = cli("report", "run", "--max-mb", "0.1")
    assert ended.code == 0
    size = (fitted / "report.html").stat().st_size / 1e6
    assert size > 0.1
    assert f"({size:.2f} MB)" in ended.stdout
    assert "warning[W162] the page needs 0.1" in ended.stderr
    assert "MB, more than --max-mb 0.1\n" in ended.stderr
    assert cli("report", "run", "--max-mb", "0.1", "--strict").code == 7
    assert "W162" not in cli("report", "run").stderr
