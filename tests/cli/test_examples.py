"""Every example in the help, run in order in one folder, as a reader would."""

import json
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shoal.cli import main
from shoal.cli._app import EXAMPLES
from shoal.datasets import load_penguins

KEYS = {"schema", "command", "status", "data", "messages", "files", "seconds"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples run: photos of two places, a key, islands, birds by year."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    for place, tint in (("beach", 170), ("forest", 80)):
        (folder / "photos" / place).mkdir(parents=True)
        for number in range(12):
            pixels = rng.normal(tint, 40, (8, 8, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / place / f"{number}.png")
    (folder / "key.txt").write_text("a secret that nobody else knows")
    birds = load_penguins(as_frame=True)
    years = birds.X.assign(island=birds.domains, year=2007 + rng.integers(0, 3, 342))
    years.to_csv(folder / "birds.csv", index=False)
    (folder / "islands.csv").write_text("island,ice\nBiscoe,3\nDream,1\nTorgersen,2\n")
    return folder


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda one: one.__name__)
def test_examples_run_and_speak_json(
    command, folder: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = shlex.split(EXAMPLES[command])[1:]
    if command.__name__ == "app":  # a server has the event loop of a process to itself
        whole = [sys.executable, "-m", "shoal", *arguments, "--json"]
        ended = subprocess.run(whole, cwd=folder, capture_output=True, check=True)
        printed = ended.stdout.decode()
    else:
        with chdir(folder), pytest.raises(SystemExit) as end:
            main([*arguments, "--json"])
        captured = capsys.readouterr()
        assert end.value.code == 0, captured.err
        printed = captured.out
    document = json.loads(printed)
    assert set(document) == KEYS
    assert document["schema"] == "shoal/1"
    assert document["command"] == command.__name__
    assert document["status"] in ("ok", "warning")
    for message in document["messages"]:
        assert set(message) == {"code", "level", "text", "hint"}
        assert message["level"] == "warning"
    for name in document["files"]:
        assert (folder / name).exists()
    assert not list(folder.glob(".*"))
