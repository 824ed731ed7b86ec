import pytest
import torch

from shoal.vision.devices import autocast_to, pick_device


def test_the_cpu_is_always_there():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device(torch.device("cpu")) == torch.device("cpu")
    assert pick_device(None) == pick_device("auto")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_absent():
    assert pick_device(None).type == "cpu"
    with pytest.raises(ValueError, match="device='cuda' is not here.*use device='cpu'"):
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
