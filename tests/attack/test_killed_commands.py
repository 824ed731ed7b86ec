"""Commands that are killed at a step of what they write leave all of it, or nothing."""

import contextlib
import io
import shutil
from pathlib import Path

import pytest
from tests.attack import full_disk
from tests.attack.kills import all_kills, without_exchange

from shoal.cli import _fit
from shoal.cli._runs import digests, settled
from shoal.io._swap import is_unfinished

#: Those of the full disk that write over what is there, or beside it.
CASES = ("fit", "fit anew", "name", "predict", "adapt", "report", "sign")
NO_FORCE = ("name", "sign")
#: In the quick part: a few steps, of folders and of files.
QUICK = {"fit": 40, "predict": 8}


def seen(root: Path) -> dict[str, str]:
    """Digests of what has a name for others: what the dead left begins with a dot."""
    found = digests(root).items()
    return {name: one for name, one in found if not full_disk.is_hidden(Path(name))}


def run(case: str, root: Path, more: str = "") -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(root))
        said = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(said))
        code = full_disk.run(full_disk.CASES[case] + more)
    assert code == 0, said.getvalue()


def kill_each(case: str, folder: Path, every: int = 1, *, journal: bool = False) -> int:
    """Kill a command at its steps, each time anew; how many kills there were."""
    start, root = folder / "start", folder / "root"
    full_disk.remember_fits()
    start.mkdir()
    full_disk.make_rows(start)
    before = seen(start)
    again = "" if case in NO_FORCE else " --force"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(start, root)

    def body() -> None:
        if journal:
            without_exchange()
        run(case, root)

    def check(number: int) -> None:
        for one in filter(is_unfinished, root.iterdir()):
            settled(one)  # as the next command that reads it does
        state = seen(root)
        whole = state == before or full_disk.is_whole(state, done, root)
        assert whole, (case, number, sorted(set(state) ^ set(before)))
        run(case, root, again)  # over what the dead left, of which nothing stays
        assert full_disk.is_whole(seen(root), done, root)
        assert [str(path) for path in root.rglob(".*")] == []

    prepare()
    run(case, root)  # and all that is needed is imported
    done = seen(root)
    return all_kills(body, root, prepare, check, every)


@pytest.fixture(autouse=True)
def _fits_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others fit anew afterwards."""
    monkeypatch.setattr(_fit, "find_classes", _fit.find_classes)


@pytest.mark.parametrize("case", QUICK)
def test_some_kills(case: str, tmp_path: Path) -> None:
    assert kill_each(case, tmp_path, QUICK[case]) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "journal"),
    [
        *((case, False) for case in CASES),
        *((case, True) for case in ("fit", "name", "adapt")),
    ],
)
def test_kills_at_every_step(case: str, journal: bool, tmp_path: Path) -> None:
    assert kill_each(case, tmp_path, journal=journal) > 5
