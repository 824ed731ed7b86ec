"""ImageMixture: DomainMixture on a network's features, then end to end."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import LatentShiftEstimator
from shoal.exceptions import ConstantColumnWarning
from shoal.likelihood._problem import Fit
from shoal.mixture import DomainMixture
from shoal.validation import check_whole, resolve_domain_weight
from shoal.vision._backbone import load_backbone
from shoal.vision._devices import seeded
from shoal.vision._encode import encode
from shoal.vision._finetune import FineTuned, Try, Tuner
from shoal.vision._images import (
    ImageInput,
    ImageSet,
    check_image_rows,
    check_images_domains,
    check_rows_of_fit,
    digest_rows,
)
from shoal.vision._mixture_net import project, project_features, tuned_mixture
from shoal.vision._rows import check_share, hold_out
from shoal.vision._settings import FineTuning, as_settings

if TYPE_CHECKING:
    from shoal.analysis._resample import Resampler
    from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold


Array = np.ndarray[Any, Any]

FROZEN, TUNING = 0, 1  # streams of random numbers


@dataclass(eq=False, repr=False)
class ImageMixture(ImageInput, LatentShiftEstimator):
    """Discover classes of images as the hidden step between an image and its domain.

    A self-supervised backbone turns images into features, and
    :class:`~shoal.DomainMixture` finds classes on them: the frozen solution. Then the
    network is fine-tuned end to end FROM that solution by the same likelihood of the
    domains. Settings, epoch and start are chosen by that likelihood on held-out
    images; where nothing beats the frozen solution there, it is returned as it was.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses it on the frozen features.
    backbone : str, path or Module
        A file of weights or a name (:func:`shoal.vision.load_backbone`), or a network
        with ``features(x)`` and ``n_features``. It is copied, never changed.
    mixture : DomainMixture, default=None
        For the frozen features; cloned. It must be linear
        (``expansion="linear"``). None: one climb, ``scale="global"``.
    n_components : int or None, default=128
        Principal components of the features of unit length that the frozen mixture
        sees; None for all features.
    fine_tuning : FineTuning, sequence of FineTuning or None, default=FineTuning()
        Settings to try; the best held-out likelihood wins. None stays frozen.
    n_starts : int, default=1
        Frozen solutions (of different seeds) that are fine-tuned; the best wins.
    valid_share : float, default=0.1
        Share of each domain's images that is held out to judge by.
    doubt : float, default=1.0
        Standard errors by which fine-tuning must beat the frozen solution.
    refit : bool, default=False
        Fine-tune once more on all images, up to the epoch that was best held out; False
        keeps the network that has not seen the held-out images.
    image_shape : tuple of int, default=None
        (h, w) or (h, w, 3) of flattened rows; images need none.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution (A.3).
    check_identifiable : bool, default=True
        Refuse more classes than domains (A.1); False only warns.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    compile : bool or str, default=False
        Compile the steps; worth it from minutes of training on.
    progress : bool, default=False
        Show the epochs on stderr.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
    domains_, labels_, n_classes_, class_names_, n_features_in_
        As in :class:`~shoal.DomainMixture`.
    frozen_ : DomainMixture
        The solution on frozen features, the best held out of ``starts_``.
    head_ : DomainMixture
        The mixture on the features of ``backbone_``: ``frozen_`` itself, or what
        fine-tuning made of it.
    backbone_ : Module
        On the CPU; fine-tuned where ``fine_tuned_``.
    fine_tuned_ : bool
    gain_ : (float, float)
        Held-out gain of the best fine-tuning over the frozen solution in nats, and its
        standard error; (0, 0) where nothing was tuned.
    held_out_ : dict of str to float
        Held-out log-likelihood of every frozen start and every fine-tuning.
    history_ : list of dict
        Epochs of the best fine-tuning.

    See Also
    --------
    shoal.DomainMixture : The same for tables.
    shoal.vision.ImageDiscriminator : A network for :class:`~shoal.DDFA`.
    """

    n_classes: int | None = None
    _: KW_ONLY
    backbone: Any = None
    mixture: DomainMixture | None = None
    n_components: int | None = 128
    fine_tuning: FineTuning | Sequence[FineTuning] | None = FineTuning()
    n_starts: int = 1
    valid_share: float = 0.1
    doubt: float = 1.0
    refit: bool = False
    image_shape: tuple[int, ...] | None = None
    domain_weight: Any = "equal"
    check_identifiable: bool = True
    device: Any = None
    compile: bool | str = False
    progress: bool = False
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3) or (n_samples, h, w), dtype uint8
            Or flattened rows, with ``image_shape``.
        y, domains : array-like of shape (n_samples,)
            Where each image comes from, by either name.

        Returns
        -------
        self
        """
        self._check_settings()
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        with seeded(self.seed_):  # a name stands for random weights
            self.backbone_ = copy.deepcopy(load_backbone(self.backbone))
        domains = y if domains is None else domains
        pixels, codes, names = check_images_domains(self, X, domains)
        self._counts = np.bincount(codes)
        resolve_domain_weight(self.domain_weight, names, self._counts)
        images = ImageSet(pixels, self.device)
        units = self._encode(images)
        features, self.projection_ = project_features(units, self.n_components)
        self._fit_frozen(features, names[codes])
        return self._finish(images, features, codes)

    def tune(self, X: Any, domains: Any, fine_tuning: Any) -> Self:
        """Fine-tune a frozen fit; the same as a fit with these settings, but faster.

        Parameters
        ----------
        X, domains
            Those of fit, which had ``fine_tuning=None``; one domain for each row.
        fine_tuning : FineTuning or sequence of FineTuning

        Returns
        -------
        ImageMixture
            A new estimator; this one stays frozen.
        """
        check_is_fitted(self)
        if self.fine_tuned_:
            raise ValueError("tune begins at a frozen fit; fit with fine_tuning=None")
        other = copy.copy(self).set_params(fine_tuning=fine_tuning)
        other._check_settings()
        pixels, codes = check_rows_of_fit(self, X, domains)
        images = ImageSet(pixels, self.device)
        features = self._project(self._encode(images))
        return other._finish(images, features, codes)

    def _finish(self, images: ImageSet, features: Array, codes: Array) -> Self:
        """End to end where asked for; then what every question needs."""
        rng = np.random.default_rng([self.seed_, TUNING])
        tuned = self._fine_tune(images, features, codes, rng)
        if tuned is not None:
            features = self._adopt(tuned, images, codes, rng)
        head = self.head_
        self._store(head.prevalence_, head.domains_, head.domain_weight_)
        self.novelty_ = head.novelty_
        self.labels_ = self._posterior(features, codes, None).argmax(axis=1)
        return self

    def _check_settings(self) -> None:
        """All that can be judged before the images are looked at."""
        if self.n_classes is not None:
            check_whole(2, n_classes=self.n_classes)
        if self.n_components is not None:
            check_whole(1, n_components=self.n_components)
        check_whole(1, n_starts=self.n_starts)
        self._check_mixture(tuned=bool(as_settings(self.fine_tuning)))
        check_share(self.valid_share)
        doubt = self.doubt
        # infinite is fine: all that fine-tuning brings is kept, or none of it
        if not isinstance(doubt, Real) or np.isnan(float(doubt)):
            raise ValueError(f"doubt must be a number, such as 1.0, got {doubt!r}")

    def _check_mixture(self, *, tuned: bool) -> None:
        given = self.mixture
        if given is None:
            return
        if not isinstance(given, DomainMixture):
            raise TypeError(f"mixture must be a DomainMixture or None, got {given!r}")
        if tuned and given.expansion not in ("auto", "linear"):
            raise ValueError(
                f"mixture has expansion={given.expansion!r}, which cannot be fine-tuned"
                "; pass DomainMixture(expansion='linear') or fine_tuning=None"
            )

    # ---- the frozen solution ------------------------------------------------------

    def _fit_frozen(self, features: Array, domains: Array) -> None:
        """Solutions from several seeds; all with the classes that the first found."""
        rng = np.random.default_rng([self.seed_, FROZEN])
        given = self.mixture
        mixture = DomainMixture(search=False, scale="global", expansion="linear")
        parameters = (mixture if given is None else given).get_params(deep=False)
        if as_settings(self.fine_tuning) and parameters["expansion"] == "auto":
            parameters["expansion"] = "linear"  # what can become a layer
        shared = {
            "n_classes": self.n_classes,
            "domain_weight": self.domain_weight,
            "check_identifiable": self.check_identifiable,
        }
        self.starts_: list[DomainMixture] = []
        # Of each start, without the held-out rows; by what rows they were fitted to.
        self._parts: dict[str, dict[int, Fit]] = {}
        for _ in range(self.n_starts):
            seed = {"random_state": int(rng.integers(2**31 - 1))}
            start = DomainMixture(**{**parameters, **shared, **seed})
            with warnings.catch_warnings():
                # a feature that is never active is the network's affair
                warnings.simplefilter("ignore", ConstantColumnWarning)
                self.starts_.append(start.fit(features, domains))
            shared["n_classes"] = start.n_classes_
        self.frozen_ = self.head_ = self.starts_[0]

    # ---- end to end ---------------------------------------------------------------

    def _fine_tune(
        self,
        images: ImageSet,
        features: Array,
        codes: Array,
        rng: np.random.Generator,
    ) -> FineTuned | None:
        """The best fine-tuning, if it beats the best frozen solution held out."""
        self.fine_tuned_, self.gain_ = False, (0.0, 0.0)
        self.held_out_: dict[str, float] = {}
        self.history_: list[dict[str, Any]] = []
        settings = as_settings(self.fine_tuning)
        train, valid = hold_out(codes, self.valid_share, rng)
        seed = int(rng.integers(2**31 - 1))
        if not settings or not len(valid):
            return None
        tuner = Tuner(
            images,
            features,
            codes,
            train,
            valid,
            self.backbone_,
            self.projection_,
            {"seed": seed, "compile": self.compile, "progress": self.progress},
            # copies share this, and each may come with rows or a share of its own
            self._parts.setdefault(digest_rows(features, codes, train), {}),
        )
        tries = tuner.try_all(self.starts_, settings)
        chosen = self._choose(tries)
        if chosen is None:
            return None
        return tuner.repeat(chosen) if self.refit else chosen.tuned

    def _choose(self, tries: list[Try]) -> Try | None:
        """Best frozen start, then the best fine-tuning if it is better beyond doubt."""
        for one in tries:
            index = as_settings(self.fine_tuning).index(one.setting)
            self.held_out_[f"frozen {one.start}"] = one.tuned.start.mean
            name = f"fine-tuned {one.start}.{index}"
            self.held_out_[name] = one.tuned.best.mean
        first = max(tries, key=lambda one: one.tuned.start.mean)
        best = max(tries, key=lambda one: one.tuned.best.mean)
        self.frozen_ = self.head_ = first.frozen
        self.history_ = best.tuned.records
        before, after = first.tuned.start, best.tuned.best
        self.gain_ = after.mean - before.mean, after.standard_error(before)
        if self.gain_[0] <= self.doubt * self.gain_[1]:
            return None
        self.fine_tuned_, self.head_ = True, best.frozen
        return best

    def _adopt(
        self,
        tuned: FineTuned,
        images: ImageSet,
        codes: Array,
        rng: np.random.Generator,
    ) -> Array:
        """Take over a fine-tuned network; features of the training rows."""
        linear, domain_given_class = tuned.net.solution()
        self.backbone_, self.projection_ = tuned.net.backbone, None
        features = self._encode(images)
        self.head_ = tuned_mixture(
            self.head_, linear, domain_given_class, features, codes, rng
        )
        return features

    # ---- after the fit ------------------------------------------------------------

    def _check_rows(self, X: Any) -> Array:
        """Features of images: what every question after the fit is about."""
        images = check_image_rows(self, X)
        return self._project(self._encode(ImageSet(images, self.device)))

    def _project(self, units: Array) -> Array:
        return project(units, self.projection_)

    def _encode(self, images: ImageSet) -> Array:
        units = encode(self.backbone_, images)
        self.backbone_.cpu()  # so that a fitted estimator travels anywhere
        return units

    def _class_given_x(self, X: Array) -> Array:
        return self.head_._class_given_x(X)

    def _novelty(self, X: Array) -> Array:
        return self.head_._novelty(X)

    # ---- hooks: features are rows of the mixture that the network ends in --------

    _takes_images = True

    def _resampler(self, X: Array, codes: Array, weight: Array | None) -> "Resampler":
        return self.head_._resampler(X, codes, weight)

    def _diagnosed_rows(
        self, X: Array, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> "DiagnosedRows":
        return self.head_._diagnosed_rows(X, codes, max_rows, rng)

    def _out_of_fold(
        self, rows: "DiagnosedRows", folds: Array, rng: np.random.Generator
    ) -> "OutOfFold":
        return self.head_._out_of_fold(rows, folds, rng)

    def _probe_rows(self, n_rows: int) -> Array:
        shape = (n_rows, *self.image_shape_)
        return np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)

    @contextmanager
    def _probing(self) -> Iterator[None]:
        """On the processor that every machine has, in full precision."""
        before, self.device = self.device, "cpu"
        try:
            yield
        finally:
            self.device = before

    def _dump(self, writer: Any) -> dict[str, Any]:
        from shoal.vision._assemble import dump_image_mixture

        return dump_image_mixture(self, writer)

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Any:
        from shoal.vision._assemble import load_image_mixture

        return load_image_mixture(content, reader)
