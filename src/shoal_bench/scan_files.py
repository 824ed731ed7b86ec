"""A trained SCAN as a file: backbone and head as safetensors, nothing that runs."""

import copy
import json
import os
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.io.extend import write_whole
from shoal.vision import load_backbone
from shoal.vision.extend import read_weights
from shoal_bench.scan import SCAN
from shoal_bench.scan_net import ScanNet


def write_scan(scan: SCAN, path: str | os.PathLike[str]) -> Path:
    """Write a fitted SCAN; the file appears whole or not at all."""
    from safetensors.torch import save

    check_is_fitted(scan)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "loss": scan.loss_,
        "head_losses": scan.head_losses_.tolist(),
        "class_counts": scan.class_counts_.tolist(),
        "image_shape": list(scan.image_shape_),
        "n_features_in": scan.n_features_in_,
    }
    weights = {n: w.contiguous() for n, w in scan.net_.state_dict().items()}
    write_whole(path, save(weights, {"scan": json.dumps(facts)}))
    return path


def read_scan(scan: SCAN, path: str | os.PathLike[str]) -> SCAN:
    """Fill an unfitted SCAN of the same settings with what a file holds.

    The classes of its training rows (``labels_``) and its history are not in the file.
    """
    from safetensors import safe_open

    with safe_open(os.fspath(path), framework="pt") as file:
        facts = json.loads((file.metadata() or {})["scan"])
    backbone = copy.deepcopy(load_backbone(scan.backbone))
    net = ScanNet(backbone, 1, scan.n_classes)
    net.load_state_dict(read_weights(path))
    scan.net_, scan.backbone_ = net.eval(), net.backbone
    scan.loss_ = facts["loss"]
    scan.head_losses_ = np.array(facts["head_losses"])
    scan.class_counts_ = np.array(facts["class_counts"])
    scan.image_shape_ = tuple(facts["image_shape"])
    scan.n_features_in_ = facts["n_features_in"]
    return scan
