"""SCAN: classes of images without labels and without domains, as a baseline.

Neighbours in the space of a self-supervised network are mostly of one class. SCAN
trains a classifier whose answers agree between neighbours and use all classes.
"""

import copy
import warnings
from typing import Any, Self

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from shoal.exceptions import CollapseWarning
from shoal.validation import check_real, check_whole
from shoal.vision import ImageSet, encode, fit, load_backbone
from shoal.vision.augment import Strong, weak_view
from shoal.vision.extend import (
    ImageInput,
    Step,
    check_image_rows,
    cosine,
    draw_column,
    nearest,
    network_part,
    outputs,
    place_module,
    random_views,
)
from shoal_bench.domain_prior import DomainPrior
from shoal_bench.scan_net import ScanNet, scan_loss, self_label_step

Array = np.ndarray[Any, Any]

# A class with less than this part of its even share of the rows is as good as gone.
COLLAPSED = 0.1
# Neighbours per row that heads are compared on.
JUDGING_NEIGHBOURS = 5


class SCAN(ImageInput, ClusterMixin, BaseEstimator):
    """Semantic clustering by adopting nearest neighbours.

    Three steps, none of which sees a domain or a label: heads on frozen features,
    which is quick and does not collapse; the whole network on strong views; and, where
    asked for, self-labels. Of several heads the one with the smallest loss is kept.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    backbone : path or Module
        Self-supervised weights, or a network with ``features(x)`` and ``n_features``;
        copied, never changed.
    n_neighbours : int, default=20
        Nearest rows that count as neighbours.
    n_heads : int, default=5
        Linear heads trained side by side.
    entropy_weight : float, default=5.0
        Weight of the entropy of the mean answer.
    head_epochs, epochs : int, default=50 and 25
        Passes with frozen features, and with all layers; 0 leaves a step out.
    self_label_epochs : int, default=0
        Passes on confident rows.
    threshold : float, default=0.99
        Probability from which on a row gives a self-label.
    batch_size : int, default=512
    head_rate, learning_rate : float, default=1e-3 and 1e-4
        Of Adam, for frozen features and for all layers.
    weight_decay : float, default=1e-4
    image_shape, device, compile, progress
        As in :class:`~shoal.vision.ImageDiscriminator`.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    backbone_ : Module
        Trained; start :class:`~shoal.vision.ImageDiscriminator` from it
        for DDFA (SI).
    labels_ : ndarray of shape (n_samples,)
    loss_ : float
        SCAN's loss on clean images, of the head that was kept.
    head_losses_ : ndarray of shape (n_heads,)
    class_counts_ : ndarray of shape (n_classes,)
        Training rows of each class.
    history_ : list of dict
        Epochs of all steps, each with its ``step``.
    net_ : Module
        Backbone and head, on the CPU.
    n_features_in_, image_shape_

    Notes
    -----
    Warns with :class:`~shoal.exceptions.CollapseWarning`, and the number of rows of
    each class, when a class is left with less than a tenth of its even share.

    References
    ----------
    W. Van Gansbeke, S. Vandenhende, S. Georgoulis, M. Proesmans, L. Van Gool (2020).
    SCAN: Learning to Classify Images without Labels. ECCV.
    """

    def __init__(
        self,
        n_classes: int = 10,
        *,
        backbone: Any = None,
        n_neighbours: int = 20,
        n_heads: int = 5,
        entropy_weight: float = 5.0,
        head_epochs: int = 50,
        epochs: int = 25,
        self_label_epochs: int = 0,
        threshold: float = 0.99,
        batch_size: int = 512,
        head_rate: float = 1e-3,
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-4,
        image_shape: tuple[int, ...] | None = None,
        device: Any = None,
        compile: bool | str = False,
        progress: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.backbone = backbone
        self.n_neighbours = n_neighbours
        self.n_heads = n_heads
        self.entropy_weight = entropy_weight
        self.head_epochs = head_epochs
        self.epochs = epochs
        self.self_label_epochs = self_label_epochs
        self.threshold = threshold
        self.batch_size = batch_size
        self.head_rate = head_rate
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.image_shape = image_shape
        self.device = device
        self.compile = compile
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find classes; ``y`` is ignored.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3) or (n_samples, h, w), dtype uint8
            Or flattened rows, with ``image_shape``.
        y : ignored

        Returns
        -------
        self
        """
        self._check_settings()
        images = ImageSet(check_image_rows(self, X, reset=True), self.device)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        net = self._make_net(seed)
        self.history_: list[dict[str, Any]] = []
        features = encode(net.backbone, images, normalize=False)
        count = min(self.n_neighbours, len(images) - 1)
        near = torch.as_tensor(
            nearest(features, count, device=images.device)[0], device=images.device
        )
        self._train_heads(net, torch.as_tensor(features, device=images.device), near,
                          seed)  # fmt: skip
        if self.epochs:
            self._train_network(net, images, near, seed)
        self._keep_best_head(net, images, near)
        if self.self_label_epochs:
            self._train_on_self_labels(net, images, seed)
        self.net_ = net.cpu().eval()
        self.backbone_ = net.backbone
        self.labels_ = self._logits(images).argmax(axis=1)
        self._warn_of_collapse()
        return self

    def predict_proba(self, X: Any) -> Array:
        """q(y|x), of shape (n_samples, n_classes); the domain is not asked for."""
        check_is_fitted(self)
        images = ImageSet(check_image_rows(self, X), self.device)
        return np.asarray(softmax(self._logits(images).astype(float), axis=1))

    def predict(self, X: Any) -> Array:
        """Most probable class of each image."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def with_domain_prior(self, X: Any, domains: Any) -> DomainPrior:
        """SCAN that is told the domain: its q(y|x), each domain's class mix by EM.

        The fair baseline beside methods that see domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3)
            Images to learn the class mixes from.
        domains : array-like of shape (n_samples,)

        Returns
        -------
        DomainPrior
            Fitted, with ``prevalence_`` and ``predict_proba(X, domains)``.
        """
        check_is_fitted(self)
        return DomainPrior(self).fit(X, domains)

    # ---- the steps ----------------------------------------------------------------

    def _make_net(self, seed: int) -> ScanNet:
        backbone = copy.deepcopy(load_backbone(self.backbone))
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return ScanNet(backbone, self.n_heads, self.n_classes)

    def _train_heads(
        self, net: ScanNet, features: Tensor, near: Tensor, seed: int
    ) -> None:
        """Heads alone, on features that were computed once."""
        if not self.head_epochs:
            return
        heads = net.heads.to(features.device)

        def step(indices: Tensor, generator: Generator) -> Tensor:
            other = draw_column(near[indices], generator)
            return self._loss(heads(features[indices]), heads(features[other]))

        self._run("heads", step, heads, self.head_rate, self.head_epochs,
                  len(features), seed, features.device)  # fmt: skip

    def _train_network(
        self, net: ScanNet, images: ImageSet, near: Tensor, seed: int
    ) -> None:
        """All layers and heads, on strong views of a row and of a neighbour."""
        place_module(net, images.device)
        make_views = random_views(Strong())
        classify = network_part(net)

        def step(indices: Tensor, generator: Generator) -> Tensor:
            other = draw_column(near[indices], generator)
            pixels = images.bytes_batch(torch.cat([indices, other]))
            logits = classify(make_views(pixels, generator, 2)).float()
            first, second = logits.chunk(2)
            return self._loss(first, second)

        self._run("network", step, net, self.learning_rate, self.epochs, len(images),
                  seed + 1, images.device)  # fmt: skip

    def _train_on_self_labels(self, net: ScanNet, images: ImageSet, seed: int) -> None:
        """Strong views learn what weak views are sure of, classes weighted evenly."""
        place_module(net, images.device)
        size = max(images.size)
        step = self_label_step(net, images, weak_view(size), Strong(), self.threshold)
        self._run("self-labels", step, net, self.learning_rate, self.self_label_epochs,
                  len(images), seed + 2, images.device)  # fmt: skip

    def _run(
        self,
        name: str,
        step: Step,
        module: nn.Module,
        rate: float,
        epochs: int,
        n_rows: int,
        seed: int,
        device: torch.device,
    ) -> None:
        optimizer = torch.optim.Adam(
            module.parameters(),
            lr=rate,
            weight_decay=self.weight_decay,
            fused=device.type == "cuda",
        )
        history = fit(
            step,
            {name: module},
            optimizer,
            cosine(epochs),
            n_rows,
            batch_size=self.batch_size,
            epochs=epochs,
            seed=seed,
            device=device,
            compile=False if name == "heads" else self.compile,
            progress=self.progress,
        )
        self.history_ += [{"step": name, **record} for record in history.records]

    def _loss(self, first: Tensor, second: Tensor) -> Tensor:
        """SCAN's loss, summed over heads; logits are (n, n_heads, n_classes)."""
        losses = [
            scan_loss(first[:, head], second[:, head], self.entropy_weight)
            for head in range(first.shape[1])
        ]
        return torch.stack(losses).sum()

    # ---- after the steps ----------------------------------------------------------

    @torch.no_grad()
    def _keep_best_head(self, net: ScanNet, images: ImageSet, near: Tensor) -> None:
        """The head with the smallest loss on clean images and their near neighbours."""
        logits = outputs(net, images)
        count = min(JUDGING_NEIGHBOURS, near.shape[1])
        first = logits.repeat_interleave(count, dim=0)
        second = logits[near[:, :count].reshape(-1)]
        losses = [
            scan_loss(first[:, head], second[:, head], self.entropy_weight).item()
            for head in range(logits.shape[1])
        ]
        self.head_losses_ = np.array(losses)
        best = int(np.argmin(losses))
        self.loss_ = losses[best]
        net.heads.keep(best)

    def _logits(self, images: ImageSet) -> Array:
        """Logits of the one head left; the network comes back to the CPU."""
        logits = outputs(self.net_, images)[:, 0].cpu().numpy()
        self.net_.cpu()
        return logits

    def _warn_of_collapse(self) -> None:
        self.class_counts_ = np.bincount(self.labels_, minlength=self.n_classes)
        even = len(self.labels_) / self.n_classes
        few = int((self.class_counts_ < COLLAPSED * even).sum())
        if few:
            warnings.warn(
                f"{few} of {self.n_classes} classes hold almost no rows (rows per "
                f"class: {self.class_counts_.tolist()}); raise entropy_weight, "
                "head_epochs or batch_size",
                CollapseWarning,
                stacklevel=3,
            )

    def _check_settings(self) -> None:
        check_whole(2, n_classes=self.n_classes)
        check_whole(
            1,
            n_neighbours=self.n_neighbours,
            n_heads=self.n_heads,
            batch_size=self.batch_size,
        )
        check_whole(
            0,
            head_epochs=self.head_epochs,
            epochs=self.epochs,
            self_label_epochs=self.self_label_epochs,
        )
        check_real(
            0,
            entropy_weight=self.entropy_weight,
            head_rate=self.head_rate,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )
        check_real(0, 1, threshold=self.threshold)
