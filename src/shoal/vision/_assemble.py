"""Fitted models from parts: a network and a mixture in memory, or what a file holds.

In memory: for callers that hold features of unit length already and ask several
questions of them, such as the command line; ImageMixture itself goes from the images.

In a file: only a network with a name can be written. It is built anew from that, and
its weights are plain arrays. What led to the solution is left out: ``frozen_`` and
``starts_`` are the mixture that the model ends in.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shoal.mixture import DomainMixture
from shoal.vision._backbone import blank_backbone, describe_mismatch, name_of
from shoal.vision._mixture import ImageMixture
from shoal.vision._nets import Backbone
from shoal.vision._settings import FineTuning, as_settings

if TYPE_CHECKING:
    from shoal.io.model._values import Reader, Writer


def assemble(
    backbone: Backbone,
    projection: Any,
    mixture: DomainMixture,
    *,
    image_shape: tuple[int, int, int],
    device: Any = None,
    seed: int = 0,
) -> ImageMixture:
    """A fitted ImageMixture, frozen: the network, then the mixture.

    Parameters
    ----------
    backbone : Backbone
    projection : fitted PCA or None
        From features of unit length to those that the mixture was fitted to.
    mixture : fitted DomainMixture
    image_shape : tuple of int
        (height, width, 3) of the images.
    device : str, torch.device or None, default=None
        Where the network computes.
    seed : int, default=0
        Of all that is asked later.

    Examples
    --------
    >>> from shoal.vision import encode, resnet
    >>> from shoal.vision._mixture_net import project_features
    >>> images = np.random.default_rng(0).integers(
    ...     256, size=(60, 8, 8, 3), dtype=np.uint8)
    >>> images[::4] //= 4  # dark ones, in the first place alone
    >>> net, sites = resnet(18), np.arange(60) % 2
    >>> features, projection = project_features(encode(net, images, device="cpu"), 4)
    >>> mixture = DomainMixture(2, search=False, scale="global", expansion="linear",
    ...                         random_state=0).fit(features, sites)
    >>> model = assemble(net, projection, mixture, image_shape=(8, 8, 3), device="cpu")
    >>> bool(np.allclose(model.predict_proba(images, sites),
    ...                  mixture.predict_proba(features, sites), atol=1e-6))
    True
    """
    model = ImageMixture(
        mixture.n_classes_,
        backbone=backbone,
        fine_tuning=None,
        domain_weight=mixture.domain_weight,
        device=device,
        random_state=seed,
    )
    model.image_shape_ = image_shape
    model.n_features_in_ = int(np.prod(image_shape))
    model.seed_ = seed
    model.backbone_, model.projection_ = backbone.eval(), projection
    model.fine_tuned_, model.gain_ = False, (0.0, 0.0)
    model.held_out_, model.history_ = {}, []
    model._store(mixture.prevalence_, mixture.domains_, mixture.domain_weight_)
    model.class_names_ = list(mixture.class_names_)
    model.labels_ = mixture.labels_
    return _with_head(model, mixture)


def _with_head(model: ImageMixture, head: DomainMixture) -> ImageMixture:
    """The same with the mixture that it ends in, and no other to begin anew from."""
    model.frozen_ = model.head_ = head
    model.starts_, model._parts = [head], {}
    model.novelty_ = head.novelty_
    return model


# ---- as a file -----------------------------------------------------------------------

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
    tried = [asdict(setting) for setting in as_settings(estimator.fine_tuning)]
    params = given | {"fine_tuning": tried}
    state = {name: getattr(estimator, name) for name in STATE}
    return {
        "params": {name: writer.encode(value, name) for name, value in params.items()},
        "state": {name: writer.encode(value, name) for name, value in state.items()},
        "network": _dump_network(estimator.backbone_, writer),
        "projection": writer.encode(estimator.projection_, "projection_"),
        "head": writer.model(estimator.head_),
    }


def load_image_mixture(content: Any, reader: "Reader") -> ImageMixture:
    """The estimator of :func:`dump_image_mixture`."""
    stored = {**content["params"], **content["state"]}
    estimator: Any = reader.restore(ImageMixture, stored)
    tried = [FineTuning(**one) for one in estimator.fine_tuning]
    estimator.fine_tuning = tried if len(tried) > 1 else next(iter(tried), None)
    estimator.backbone_ = _load_network(content["network"], reader)
    estimator.projection_ = reader.decode(content["projection"])
    return _with_head(estimator, reader.model(content["head"]))


def _dump_network(net: Any, writer: "Writer") -> dict[str, Any]:
    known = name_of(net)
    if known is None:
        raise TypeError(
            f"cannot save a network of the class {type(net).__name__}: only "
            "shoal.vision.resnet, and what shoal.vision.register_backbone was told of, "
            "can be built again without running code; use one as the backbone"
        )
    return {
        "name": known,
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
