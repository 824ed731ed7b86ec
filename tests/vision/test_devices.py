import pytest
import torch

from shoal.vision._devices import autocast_to, pick_device


def test_the_cpu_is_always_there():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device(torch.device("cpu")) == torch.device("cpu")
    assert pick_device(None) == pick_device("auto")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_absent():
    assert pick_device(None).type == "cpu"
    with pytest.raises(ValueError, match="device='cuda' is not here.*use device='cpu'"):
        pick_device("cuda")


def test_every_process_has_a_gpu_of_its_own(monkeypatch):
    """Which process takes which device, without the devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda") == torch.device("cuda")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert pick_device(None) == torch.device("cuda", 1)
    assert pick_device("cuda:0") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="device='cuda:2' is not here"):
        pick_device("cuda")


def test_a_device_that_is_none():
    with pytest.raises(ValueError, match="device='gpu' is not a device"):
        pick_device("gpu")


def test_autocast_is_off_on_the_cpu_unless_asked_for():
    a = torch.ones(2, 2)
    with autocast_to(torch.device("cpu")):
        assert (a @ a).dtype == torch.float32
    with autocast_to(torch.device("cpu"), torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
