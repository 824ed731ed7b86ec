"""ImageMixture in the folder of a model: the network's weights among its arrays.

Only a network with a name can be written: it is built anew from that, and its weights
are plain arrays. What led to the solution is left out: ``frozen_`` and ``starts_`` are
the mixture that the model ends in.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shoal.vision._backbone import (
    blank_backbone,
    describe_mismatch,
    is_known,
)
from shoal.vision._nets import Backbone
from shoal.vision.mixture._finetune import FineTuning

if TYPE_CHECKING:
    from shoal.io.model._values import Reader, Writer

# Of this machine, or given back by the network below: not part of the model.
NOT_STORED = {"backbone", "device", "mixture"}
STATE = (
    "domains_",
    "domain_weight_",
    "prevalence_",
    "domain_given_class_",
    "class_weight_",
    "n_classes_",
    "n_features_in_",
    "image_shape_",
    "labels_",
    "seed_",
    "fine_tuned_",
    "gain_",
    "held_out_",
    "history_",
)


def dump_image_mixture(estimator: Any, writer: "Writer") -> dict[str, Any]:
    """The parts of a fitted ImageMixture, as JSON."""
    given = estimator.get_params(deep=False) | dict.fromkeys(NOT_STORED)
    params = given | {"fine_tuning": _settings(estimator.fine_tuning)}
    state = {name: getattr(estimator, name) for name in STATE}
    return {
        "params": {name: writer.encode(value, name) for name, value in params.items()},
        "state": {name: writer.encode(value, name) for name, value in state.items()},
        "network": _dump_network(estimator.backbone_, writer),
        "projection": writer.encode(estimator.projection_, "projection_"),
        "head": writer.model(estimator.head_),
    }


def load_image_mixture(cls: type, content: Any, reader: "Reader") -> Any:
    """The estimator of :func:`dump_image_mixture`."""
    estimator = reader.restore(cls, {**content["params"], **content["state"]})
    tried = [FineTuning(**one) for one in estimator.fine_tuning]
    estimator.fine_tuning = tried if len(tried) > 1 else next(iter(tried), None)
    estimator.backbone_ = _load_network(content["network"], reader)
    estimator.projection_ = reader.decode(content["projection"])
    head = reader.model(content["head"])
    estimator.frozen_ = estimator.head_ = head
    estimator.starts_, estimator._parts = [head], {}
    estimator.novelty_ = head.novelty_
    return estimator


def _settings(fine_tuning: Any) -> list[dict[str, Any]]:
    if fine_tuning is None:
        return []
    one = isinstance(fine_tuning, FineTuning)
    return [asdict(setting) for setting in ([fine_tuning] if one else fine_tuning)]


def _dump_network(net: Any, writer: "Writer") -> dict[str, Any]:
    if not is_known(net):
        raise TypeError(
            f"cannot save a network of the class {type(net).__name__}: only "
            "shoal.vision.resnet, and what shoal.vision.register_backbone was told of, "
            "can be built again without running code; use one as the backbone"
        )
    return {
        "name": net.name,
        "weights": {
            name: writer.encode(weight.cpu().numpy(), name)
            for name, weight in net.state_dict().items()
            if not name.startswith("fc.")  # a head that no feature passes through
        },
    }


def _load_network(content: Any, reader: "Reader") -> Backbone:
    net = blank_backbone(content["name"])  # no numbers that the weights replace
    wanted = net.state_dict()
    found = {
        name: torch.from_numpy(np.array(reader.decode(node)))
        for name, node in content["weights"].items()
    }
    problem = describe_mismatch(wanted, found)
    if problem or found.keys() != wanted.keys():
        raise ValueError(f"the network is not whole: {problem or 'counts'}")
    if any(found[name].dtype != wanted[name].dtype for name in wanted):
        raise ValueError("the network has weights of the wrong type")
    net.load_state_dict(found, assign=True)
    return net.eval()
