"""The site builds without a warning, and the code of its pages runs."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from shoal.exceptions import ShoalWarning

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {
    page.name: "\n".join(BLOCK.findall(page.read_text()))
    for page in sorted(DOCS.glob("*.md"))
}


@pytest.mark.parametrize("page", [name for name, code in PAGES.items() if code])
def test_code_of_a_page_runs(page: str, capsys):
    with warnings.catch_warnings():
        # pages show what a user would see, and some show a failure
        warnings.simplefilter("ignore", ShoalWarning)
        exec(PAGES[page], {})
    assert capsys.readouterr().out


def test_site_builds_without_warnings(tmp_path: Path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going"]
    places = ["-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run([*command, *places], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "generated" / "shoal.DomainMixture.html").exists()
