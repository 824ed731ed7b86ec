import resource

import pytest
import torch

from shoal.vision._checkpoint import CheckpointFile

STATE = {
    "weights": {"a": torch.arange(6.0).view(2, 3)},
    "steps": 3,
    "records": [{"loss": 0.5, "note": "x", "none": None}],
}


def test_what_is_written_comes_back(tmp_path):
    path = tmp_path / "new" / "run.pt"
    CheckpointFile(path).write(STATE)
    back = CheckpointFile(path).read()
    assert torch.equal(back["weights"]["a"], STATE["weights"]["a"])
    assert back["records"] == STATE["records"]
    assert [p.name for p in path.parent.iterdir()] == ["run.pt"]


def test_a_full_disk_keeps_the_previous_checkpoint(tmp_path, no_large_files):
    path = tmp_path / "run.pt"
    CheckpointFile(path).write(STATE)
    before = path.read_bytes()
    with pytest.raises(OSError, match="checkpoint of 0.4 MB not written") as caught:
        CheckpointFile(path).write({"weights": torch.zeros(100_000)})
    assert "the previous checkpoint is unharmed" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


@pytest.fixture
def no_large_files():
    """No file may grow beyond 50 kB: a write fails half way, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_damaged_checkpoints_are_named(tmp_path):
    path = tmp_path / "run.pt"
    CheckpointFile(path).write(STATE)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint.*delete it"):
        CheckpointFile(path).read()
    torch.save([1], path)
    with pytest.raises(ValueError, match="not a checkpoint of shoal"):
        CheckpointFile(path).read()
