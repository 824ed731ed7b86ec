"""ImageDiscriminator: a network of q(d|x), for DDFA and for its features."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn
from torch.nn import functional

from shoal.stages.discriminate._candidates import DomainClassifier
from shoal.validation import check_choice, check_real, check_whole
from shoal.validation._domains import check_sample_weight
from shoal.vision._backbone import USUAL, load_backbone
from shoal.vision._devices import place_module, seeded
from shoal.vision._encode import encode
from shoal.vision._images import (
    ImageInput,
    ImageSet,
    check_image_rows,
    check_images_domains,
)
from shoal.vision._loop import Step, exponential, fit
from shoal.vision._nets import Backbone
from shoal.vision._rows import BestEpoch, SplitRows, hold_out, outputs, settle
from shoal.vision._steps import network_part, random_views, weighted_mean
from shoal.vision.augment import (
    Augmentation,
    Crop,
    Flip,
    Identity,
    RandomResizedCrop,
    Strong,
    compose,
    weak_view,
)

Array = np.ndarray[Any, Any]

#: Views by their names, for images of some size. The published one, "crop", shows any
#: part from a twelfth of the image on, mirrored or not. "window" shifts by up to a
#: sixteenth: to a network that sees the middle seven eighths, any window of the image.
VIEWS: dict[str, Callable[[int], Augmentation]] = {
    "weak": weak_view,
    "crop": lambda size: RandomResizedCrop((0.08, 1.0), flip=0.5),
    "strong": lambda size: Strong(),
    "window": lambda size: compose(Crop(size // 16), Flip()),
    "none": lambda size: Identity(),
}


@dataclass(eq=False, repr=False)
class ImageDiscriminator(ImageInput, DomainClassifier):
    """A convolutional network that tells the domains of images apart.

    A scikit-learn classifier of domains; as ``discriminator`` of :class:`shoal.DDFA` it
    makes the paper's deep variants. Their initialization is the ``backbone``: None is
    random (RI), self-supervised weights are SPI, the backbone of a fitted
    :class:`~shoal_bench.scan.SCAN` (``scan.backbone_``) is SI.

    Parameters
    ----------
    backbone : str, path, Module or None, default=None
        Where to start from: a network, a file of weights, or a name for random ones;
        see :func:`shoal.vision.load_backbone`. Copied, never changed; all layers are
        trained. None: ``"resnet18-cifar"``.
    dropout : float, default=0.0
        Share of activations dropped in every block.
    norms : {"anew", "training"}, default="anew"
        Statistics of the batch norms of a network with dropout: taken anew without it
        after every epoch, or as the training left them (as published), which can make
        its answers worse than guessing.
    epochs : int, default=15
        All are run, and the best by held-out cross-entropy is kept.
    batch_size : int, default=512
    learning_rate : float or sequence of float, default=1e-4
        Of Adam; of several the best by held-out cross-entropy is kept.
    head_factor : float, default=1.0
        The last layer, which is new, learns so many times faster.
    decay : float, default=0.97
        Factor of the learning rate after every epoch.
    weight_decay : float, default=0.0
    view : {"weak", "crop", "strong", "window", "none"} or Augmentation, default="weak"
        What the network is trained on; ``"crop"`` is the paper's random resized crop.
    valid_share : float, default=0.1
        Share of each domain's images that is held out.
    image_shape : tuple of int, default=None
        (h, w) or (h, w, 3) of flattened rows, as DDFA hands them over.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    compile : bool or str, default=False
        Compile views and network; worth it from minutes of training on.
    progress : bool, default=False
        Show the epochs on stderr.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_domains,)
        The domains, sorted.
    held_out_loss_ : float
        Cross-entropy of held-out images at the best epoch, in nats.
    losses_ : dict of float to float
        Held-out cross-entropy by learning rate.
    learning_rate_, best_epoch_ : float and int
    held_out_rows_ : ndarray of int
        Numbers of the images that were held out.
    history_ : list of dict
        Epochs of the best learning rate.
    net_ : Module
        On the CPU.
    n_features_in_, image_shape_

    See Also
    --------
    shoal.vision.ImageMixture : Classes by maximum likelihood.

    Examples
    --------
    >>> from shoal import DDFA
    >>> from shoal.vision._discriminator import ImageDiscriminator
    >>> network = ImageDiscriminator("resnet18-cifar", image_shape=(32, 32, 3))
    >>> model = DDFA(n_classes=10, discriminator=network, cross_fit=0)
    """

    # Rows are images here: DDFA must not set constant pixels aside.
    needs_all_columns = True

    backbone: Any = None
    _: KW_ONLY
    dropout: float = 0.0
    norms: str = "anew"
    epochs: int = 15
    batch_size: int = 512
    learning_rate: float | Sequence[float] = 1e-4
    head_factor: float = 1.0
    decay: float = 0.97
    weight_decay: float = 0.0
    view: str | Augmentation = "weak"
    valid_share: float = 0.1
    image_shape: tuple[int, ...] | None = None
    device: Any = None
    compile: bool | str = False
    progress: bool = False
    random_state: Any = None

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn to tell the domains apart.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3) or (n_samples, h, w), dtype uint8
            Or flattened rows, with ``image_shape``.
        y, domains : array-like of shape (n_samples,)
            Where each image comes from, by either name.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        rates = self._check_settings()
        domains = y if domains is None else domains
        images, codes, self.classes_ = check_images_domains(self, X, domains)
        weight = check_sample_weight(
            sample_weight, len(codes), codes=codes, names=self.classes_
        )
        random = check_random_state(self.random_state)
        split_seed, seed = random.randint(2**31 - 1, size=2).tolist()
        rows = self._split(images, codes, weight, split_seed)
        self.held_out_rows_ = rows.valid.cpu().numpy()
        mass = np.bincount(codes, weights=weight)
        self.domain_weight_ = mass / mass.sum()
        tries = [self._train(rows, rate, seed) for rate in rates]
        self.losses_ = {t.rate: t.loss for t in tries}
        best = min(tries, key=lambda t: t.loss)
        self.net_, self.history_ = best.net, best.records
        self.held_out_loss_ = best.loss
        self.learning_rate_, self.best_epoch_ = best.rate, best.epoch
        return self

    def _check_settings(self) -> list[float]:
        """The learning rates to try; what else is given is in order."""
        check_whole(1, epochs=self.epochs, batch_size=self.batch_size)
        check_real(0, 1, above=True, decay=self.decay)
        check_real(0, head_factor=self.head_factor, weight_decay=self.weight_decay)
        check_real(0, 1, dropout=self.dropout)
        if self.dropout == 1:  # nothing would be left
            raise ValueError(f"dropout must be below 1, got {self.dropout!r}")
        check_choice(("anew", "training"), norms=self.norms)
        given: Any = self.learning_rate
        several = isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
        rates = [*given] if several and not isinstance(given, str) else [given]
        if not rates:
            raise ValueError(f"learning_rate must be one number or more, got {given!r}")
        for rate in rates:
            check_real(0, above=True, learning_rate=rate)
        return [float(rate) for rate in rates]

    def predict_proba(self, X: Any) -> Array:
        """q(d|x), of shape (n_samples, n_domains), columns as in ``classes_``."""
        check_is_fitted(self)
        logits = self._encode(self.net_, check_image_rows(self, X))
        return np.asarray(softmax(logits.astype(float), axis=1))

    def predict_view(self, X: Any, random_state: Any = None) -> Array:
        """q(d|x) of one random view of every image, as in the training."""
        check_is_fitted(self)
        images = ImageSet(check_image_rows(self, X), self.device)
        view = _named_view(self.view, images)
        generator = torch.Generator(images.device)
        generator.manual_seed(check_random_state(random_state).randint(2**31 - 1))
        logits = outputs(self.net_, images, view=lambda clean: view(clean, generator))
        self.net_.cpu()  # so that a fitted estimator travels anywhere
        return np.asarray(softmax(logits.double().cpu().numpy(), axis=1))

    def features(self, X: Any) -> Array:
        """What the last layer sees, of shape (n_samples, n_features).

        For the naive variants of Appendix H give these rows to
        :class:`shoal.DiscreteMixture`, with ``representation="identity"``, ``"pca"`` or
        ``"ica"``: it fits that map once, on its training rows.
        """
        check_is_fitted(self)
        return self._encode(self.net_.backbone, check_image_rows(self, X))

    def _encode(self, net: nn.Module, images: Array) -> Array:
        values = encode(net, images, device=self.device, normalize=False)
        self.net_.cpu()  # so that a fitted estimator travels anywhere
        return values

    # ---- training -----------------------------------------------------------------

    def _split(
        self, images: Array, codes: Array, weight: Array | None, seed: int
    ) -> SplitRows:
        train, valid = hold_out(codes, self.valid_share, np.random.default_rng(seed))
        if not len(valid):
            raise ValueError(
                f"valid_share={self.valid_share} of {len(codes)} images holds out "
                "none; pass more images or a larger share"
            )
        stored = ImageSet(images, self.device)
        return SplitRows.of(stored, codes, weight, train, valid)

    def _train(self, rows: SplitRows, rate: float, seed: int) -> "_Trained":
        """All epochs at one learning rate; the best by held-out cross-entropy."""
        device = rows.images.device
        net = place_module(self._make_net(seed), device)
        groups: list[dict[str, Any]] = [
            {"params": net.backbone.parameters()},
            {"params": net.head.parameters(), "lr": self.head_factor * rate},
        ]
        optimizer = torch.optim.Adam(
            groups,
            lr=rate,
            weight_decay=self.weight_decay,
            fused=device.type == "cuda",
        )
        best = BestEpoch()
        records: list[dict[str, Any]] = []

        def on_epoch(record: dict[str, Any]) -> dict[str, float]:
            records.append(record)
            if self.dropout and self.norms == "anew":
                settle(net, rows, seed)
            logits = outputs(net, rows.images, rows.valid)
            loss = float(_cross_entropy(logits, rows, rows.valid))
            best.offer(net, -loss, record["epoch"])
            return {"held_out_loss": loss}

        try:
            fit(
                _make_step(net, rows, _named_view(self.view, rows.images)),
                {"net": net},
                optimizer,
                exponential(self.decay),
                len(rows.train),
                batch_size=self.batch_size,
                epochs=self.epochs,
                seed=seed,
                device=device,
                compile=self.compile,
                on_epoch=on_epoch,
                progress=self.progress,
            )
        except FloatingPointError as error:
            if best.weights is None:
                raise ValueError(
                    f"learning_rate={rate} is too large: {error}"
                ) from None
        best.restore(net)
        return _Trained(rate, -best.score, best.epoch, net.cpu().eval(), records)

    def _make_net(self, seed: int) -> "_Classifier":
        with seeded(seed):
            given = USUAL if self.backbone is None else self.backbone
            backbone = copy.deepcopy(load_backbone(given))
            if hasattr(backbone, "fc"):
                setattr(backbone, "fc", None)  # noqa: B010  (a head of its own follows)
            for module in backbone.modules():
                if isinstance(module, nn.Dropout):
                    module.p = self.dropout
            return _Classifier(backbone, len(self.classes_))


def _named_view(view: str | Augmentation, images: ImageSet) -> Augmentation:
    """A view by its name, or as it is given."""
    if isinstance(view, Augmentation):
        return view
    if isinstance(view, str) and view in VIEWS:
        return VIEWS[view](max(images.size))
    raise ValueError(
        f"view must be an Augmentation or one of {', '.join(VIEWS)}, got {view!r}"
    )


class _Classifier(nn.Module):
    """A backbone and a linear layer."""

    def __init__(self, backbone: Backbone, n_outputs: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.n_features, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone.features(x))


class _Trained(NamedTuple):
    rate: float
    loss: float
    epoch: int
    net: _Classifier
    records: list[dict[str, Any]]


def _make_step(net: nn.Module, rows: SplitRows, view: Augmentation) -> Step:
    make_views = random_views(view)
    classify = network_part(net)

    def step(indices: Tensor, generator: Generator) -> Tensor:
        numbers = rows.train[indices]
        pixels = rows.images.bytes_batch(numbers)
        return _cross_entropy(classify(make_views(pixels, generator)), rows, numbers)

    return step


def _cross_entropy(logits: Tensor, rows: SplitRows, numbers: Tensor) -> Tensor:
    """Weighted mean over rows, by their numbers."""
    codes, weight = rows.codes[numbers], rows.weight[numbers]
    each = functional.cross_entropy(logits.float(), codes, reduction="none")
    return weighted_mean(each, weight)
