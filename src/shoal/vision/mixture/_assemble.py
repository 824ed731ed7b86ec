"""A model of images from parts: a network, and a mixture fitted to its features.

For callers that hold features of unit length already and ask several questions of them,
such as the command line; ImageMixture itself goes from the images.
"""

from typing import Any

import numpy as np

from shoal.mixture import DomainMixture
from shoal.vision._nets import Backbone
from shoal.vision.mixture._estimator import ImageMixture

Array = np.ndarray[Any, Any]


def project_features(units: Array, n_components: int = 128) -> tuple[Array, Any]:
    """Principal components of features of unit length, and the fitted PCA (or None).

    As :class:`~shoal.vision.ImageMixture` does it.
    """
    model = ImageMixture(n_components=n_components)
    return model._fit_projection(units), model.projection_


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
    >>> from shoal.vision._encode import encode
    >>> from shoal.vision._nets import resnet
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
    model.starts_, model._parts = [mixture], {}
    model.frozen_ = model.head_ = mixture
    model.fine_tuned_, model.gain_ = False, (0.0, 0.0)
    model.held_out_, model.history_ = {}, []
    model._store(mixture.prevalence_, mixture.domains_, mixture.domain_weight_)
    model.class_names_ = list(mixture.class_names_)
    model.novelty_, model.labels_ = mixture.novelty_, mixture.labels_
    return model
