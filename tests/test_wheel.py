"""The wheel, installed where nothing of this folder is in sight."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[1]
# Nothing that leads back to this folder, and one thread.
ELSEWHERE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "COV", "PYTEST", "VIRTUAL_ENV"))
} | {"OMP_NUM_THREADS": "1"}
LEFT_BEHIND = shutil.ignore_patterns("*.egg-info", "__pycache__")

pytestmark = pytest.mark.slow


def run(*command: Any, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=ELSEWHERE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a fresh environment with the wheel of this folder."""
    place = tmp_path_factory.mktemp("wheel")
    # of a copy: what a build leaves behind would be in the next one
    source = place / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=LEFT_BEHIND)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", source, cwd=place)
    (wheel,) = place.glob("shoal-*.whl")
    assert wheel.stat().st_size < 2e6
    run(sys.executable, "-m", "venv", "fresh", cwd=place)
    programs = place / "fresh" / "bin"
    versions = ROOT / "constraints.txt"
    run(programs / "python", "-m", "pip", "install", "-q", "-c", versions,
        f"{wheel}[app]", cwd=place)  # fmt: skip
    return programs


def test_it_is_the_wheel_that_runs(installed: Path, tmp_path: Path):
    code = "import shoal, sys; print(shoal.__file__, 'torch' in sys.modules)"
    home, torch = run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert Path(home).is_relative_to(installed.parent)
    assert torch == "False"


def test_the_demo_runs_from_another_folder(installed: Path, tmp_path: Path):
    said = json.loads(run(installed / "shoal", "demo", "--json", cwd=tmp_path))
    assert said["data"]["n_classes"] == 3
    assert said["data"]["score"]["accuracy"] > 0.98
    page = (tmp_path / "shoal-demo" / "report.html").read_text(encoding="utf-8")
    assert "use with caution" in page.lower()
    assert run(installed / "shoal", "explain", "W139", cwd=tmp_path)


def asked(address: str, **how: Any) -> bytes:
    with urlopen(Request(address, **how), timeout=60) as answer:
        return bytes(answer.read())


def test_the_app_runs_from_another_folder(installed: Path, tmp_path: Path):
    """A table goes in, a report comes out; only the standard library asks."""
    birds = "from shoal.datasets import load_penguins as load; d = load(as_frame=True)"
    birds += "; d.X.assign(island=d.domains).to_csv('birds.csv', index=False)"
    run(installed / "python", "-c", birds, cwd=tmp_path)
    served = subprocess.Popen(
        [installed / "shoal", "app"],
        cwd=tmp_path,
        env=ELSEWHERE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", served.stdout.readline())
        address = found[0]
        for name in ("", "page/app.js", "page/app.css"):
            assert asked(address + name)
        table = (tmp_path / "birds.csv").read_bytes()
        made = json.loads(asked(f"{address}tables/birds.csv", data=table, method="PUT"))
        job = f"{address}jobs/{made['id']}"
        wanted = json.dumps({"domain": "island", "k": "3"}).encode()
        asked(f"{job}/fit", data=wanted, method="POST")
        while (now := json.loads(asked(job)))["status"] == "running":
            time.sleep(0.5)
        assert now["status"] == "done", now
        assert b"<h1" in asked(f"{job}/report.html")
    finally:
        served.send_signal(signal.SIGINT)
        served.communicate(timeout=60)
