"""Two processes that share every batch are one process, but for rounding.

Rows, views and neighbours are drawn for the whole batch and shared out, batch norms and
negatives go over all rows, so that only the order of float32 sums differs: relative
errors of 1e-7 a step. ``TOLERANCE`` leaves room for a hundredfold growth over the steps
of a run; a norm, a view or a negative that were not shared change the second digit.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support import workers

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
TOLERANCE = 1e-5


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((), id="eager"),
        pytest.param(("aot_eager",), id="compiled", marks=pytest.mark.slow),
    ],
)
def together(request, tmp_path_factory):
    """What two processes under torchrun came to, by method."""
    out = tmp_path_factory.mktemp("together") / "outcome.json"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2",
         "--master-addr=127.0.0.1", f"--master-port={port}", Path(workers.__file__),
         "parallel", out, *request.param],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(out.read_text())


@pytest.mark.parametrize("method", [*workers.METHODS])
def test_two_processes_are_one(together, method):
    alone = workers.train_together([method])[method]
    np.testing.assert_allclose(
        together[method]["loss"], alone["loss"], rtol=TOLERANCE, atol=TOLERANCE
    )
    assert together[method]["weights"].keys() == alone["weights"].keys()
    for name, weight in alone["weights"].items():
        np.testing.assert_allclose(
            together[method]["weights"][name], weight, atol=TOLERANCE, err_msg=name
        )
