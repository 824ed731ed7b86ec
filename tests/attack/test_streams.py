"""Results and words for places that take none, or not all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack.bad_files import good_csv
from tests.attack.forked import forked, shoal, warm
from tests.attack.record_files import fitted

CHECK = f"{sys.executable} -m shoal check a.csv --domain site"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    warm()
    return fitted(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize(
    ("closed", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        (">&- 2>&- <&-", 0),
        ("2>/dev/full", 3),
        (">/dev/full 2>/dev/full", 3),
        ("--domain absent >&-", 3),
    ],
)
def test_streams_that_are_closed_or_full(
    tmp_path: Path, closed: str, code: int
) -> None:
    """The exit code tells; no file that is opened is taken for a closed stream."""
    (tmp_path / "a.csv").write_bytes(good_csv())
    ended = subprocess.run(
        f"{CHECK} {closed}", shell=True, cwd=tmp_path, capture_output=True, check=False
    )
    assert ended.returncode == code, ended.stderr
    assert b"Traceback" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_results_for_a_full_disk(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "a.csv").write_bytes(good_csv())
    words = ["check", "a.csv", "--domain", "site", *more]
    found = shoal(words, tmp_path, stdout=Path("/dev/full"))
    assert found.code == 3
    assert found.error == "E140"
    assert found.faults() == []
    assert b"cannot write: No space left on device" in found.said


def full_after(n_bytes: int, words: list[str]) -> None:
    """Run a command on a disk that takes so many bytes of each file."""
    import resource
    import signal

    from shoal.cli import main

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    main(words)


@pytest.mark.parametrize("n_bytes", [0, 1, 100, 4_096])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "page.html"])
def test_a_disk_that_is_full_after_some_bytes(
    run: Path, tmp_path: Path, n_bytes: int, name: str
) -> None:
    """A coded line, and no file: neither half of it nor a temporary one."""
    (tmp_path / "a.csv").write_bytes(good_csv())
    words = ["predict", str(run), "a.csv", "--out", name]
    if name == "page.html":
        words = ["report", str(run), "--out", name]
    reading, writing = os.pipe()  # which has no size to exceed
    place = Path(f"/proc/self/fd/{writing}")
    found = forked(lambda: full_after(n_bytes, words), tmp_path, said_to=place)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read()
    assert found.code == 3, text.decode()
    assert b"error[E140]" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]
