"""A data engineer: fit once, predict in a pipeline, stop where it must not go on.

The command line speaks JSON, its exit codes say what happened, and a saved model gives
the same numbers in every process: no pickle, a folder of JSON and tensors.

    python 06_data_engineer.py
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("agg")

import numpy as np

import shoal
from shoal.datasets import load_penguins


def run(*arguments):
    """A command and what it said, as a document."""
    command = [sys.executable, "-m", "shoal", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


data = load_penguins(as_frame=True)
with TemporaryDirectory() as place:
    folder = Path(place)
    data.X.assign(site=data.domains).to_csv(folder / "t.csv", index=False)
    code, said = run("fit", folder / "t.csv", "--domain=site", "--k=3",
                     "--bootstrap=20", f"--out={folder / 'run'}")  # fmt: skip
    print("fit:", code, said["status"], said["data"]["verdict"])

    code, said = run("fit", folder / "t.csv", "--domain=sight", f"--out={folder / 'x'}")
    print("typo:", code, said["messages"][0]["code"], said["messages"][0]["hint"])

    model = shoal.load(folder / "run")
    shoal.save(model, folder / "copy")
    rows = data.X.to_numpy()
    both = [one.predict_proba(rows) for one in (model, shoal.load(folder / "copy"))]
    print("saved, loaded, identical:", np.array_equal(*both))

model.plot_map(rows, data.domains).figure.savefig("06_data_engineer.png", dpi=110)
