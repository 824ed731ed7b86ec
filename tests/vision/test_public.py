import subprocess
import sys

import pytest

import shoal.vision


@pytest.mark.parametrize("name", shoal.vision.__all__)
def test_every_public_name_is_there(name):
    assert getattr(shoal.vision, name).__name__ == name
    assert name in dir(shoal.vision)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        shoal.vision.Nothing  # noqa: B018


BARE = """
import sys
for name in ("pandas", "typer", "rich", "skops", "PIL", "jinja2", "matplotlib"):
    sys.modules[name] = None
import shoal.vision, shoal_bench.datasets.cifar
for name in shoal.vision.__all__:
    getattr(shoal.vision, name)
import shoal.vision._simclr, shoal_bench.moco
"""


def test_a_bare_machine_suffices():
    ended = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
