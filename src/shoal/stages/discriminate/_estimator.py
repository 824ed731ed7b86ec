"""The first stage as one scikit-learn classifier of domains."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from shoal.probability import mean_log_likelihood
from shoal.stages.discriminate._calibrate import (
    CALIBRATIONS,
    Calibration,
    fit_calibration,
)
from shoal.stages.discriminate._candidates import (
    DomainClassifier,
    OracleDiscriminator,
    check_classifier,
    choose_discriminator,
    is_choice,
    is_given,
    list_candidates,
)
from shoal.stages.discriminate._crossfit import (
    domain_proba,
    fit_domain_model,
    usable_folds,
)
from shoal.validation import check_choice, check_X, resolve_domain_weight
from shoal.validation._arguments import is_whole
from shoal.validation._domains import check_sample_weight

Array = np.ndarray[Any, Any]


@dataclass(eq=False, repr=False)
class Discriminator(DomainClassifier):
    """A model of q(d|x), with out-of-fold probabilities of its training rows.

    Parameters
    ----------
    estimator : str, classifier, list or callable, default="auto"
        - any scikit-learn classifier with ``predict_proba``: cloned, never changed;
        - "components", "logistic", "quadratic", "rbf", "mlp", "boost" or
          "lightgbm" (:func:`~shoal.stages.discriminate.named_discriminator`);
        - "auto", or a list of the above from simple to flexible: the simplest whose
          held-out loss is within one standard error of the best (judged on at most
          about 20,000 rows, see
          :func:`~shoal.stages.discriminate.choose_discriminator`);
        - a fitted classifier in a ``FrozenEstimator``, or a callable X -> q(d|x):
          used as it is, without folds and without a correction to
          ``domain_weight``.
    cross_fit : int or None, default=5
        Number of folds of ``domain_given_x_``; None, 0 or 1 for in-sample.
    calibration : {None, "temperature", "vector"}, default=None
        Fitted on the out-of-fold rows (on all rows for a frozen estimator or a
        callable, which have not been fitted on them).
    domain_weight : {"equal", "size"} or mapping, default="equal"
        The q(d) that q(d|x) is about: equal shares, the shares of the rows, or a
        weight per domain.
    random_state : int, RandomState instance or None, default=None
        Deals the folds, and seeds every ``random_state`` of the estimator that is
        None.
    n_jobs : int, default=None
        Folds fitted at the same time; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_domains,)
        The domains, sorted.
    domain_given_x_ : ndarray of shape (n_samples, n_domains)
        q(d|x) of the training rows, out-of-fold if ``cross_fit`` is at least 2.
    held_out_loss_ : float or None
        Cross-entropy of the held-out rows before calibration, in nats, domains
        weighted by ``domain_weight``; None when no row was held out.
    domain_weight_ : ndarray of shape (n_domains,)
        q(d), sums to 1.
    estimator_ : the classifier, refitted on all rows
    chosen_ : str
        Its name.
    losses_ : dict
        Held-out loss of each candidate, by name, on the rows it was judged on.
    fitted_weight_ : ndarray of shape (n_domains,) or None
        The q(d) that ``estimator_`` is about where it cannot be weighted; its output
        is moved to ``domain_weight_``. None where there is nothing to correct.
    calibration_ : Calibration or None
    n_folds_ : int
        0 when nothing was held out.

    References
    ----------
    Roberts, Mani, Garg, Lipton: Unsupervised Learning under Latent Label Shift.
    NeurIPS 2022. Algorithm 1, and Appendix C for the minimizer of the cross-entropy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> X, blob = make_blobs(600, centers=3, random_state=0)
    >>> domains = np.array(["east", "north", "west"])[blob]
    >>> model = Discriminator("logistic", random_state=0).fit(X, domains)
    >>> model.classes_
    array(['east', 'north', 'west'], dtype='<U5')
    >>> model.domain_given_x_.shape
    (600, 3)
    >>> bool(model.held_out_loss_ < np.log(3))
    True
    """

    estimator: Any = "auto"
    _: KW_ONLY
    cross_fit: int | None = 5
    calibration: str | None = None
    domain_weight: Any = "equal"
    random_state: Any = None
    n_jobs: int | None = None

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn to tell the domains apart.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Sparse matrices if the estimator takes them.
        y : array-like of shape (n_samples,), default=None
            The domains, for callers that know only ``y``.
        domains : array-like of shape (n_samples,), default=None
            Where each row comes from.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row within its domain.

        Returns
        -------
        self
        """
        n_folds = self._check_parameters()
        domains = domains if domains is not None else y
        X, codes = self._set_domains(X, domains, get_tags(self).input_tags.sparse)
        weight = check_sample_weight(
            sample_weight, len(codes), codes=codes, names=self.classes_
        )
        mass = np.bincount(codes, weights=weight)
        self.domain_weight_ = resolve_domain_weight(
            self.domain_weight, self.classes_, mass
        )
        if is_given(self.estimator):
            self._accept(X, codes)
        else:
            self._learn(X, codes, weight, n_folds)
        self._judge(codes, weight)
        return self

    def predict_proba(self, X: Any) -> Array:
        """q(d|x) under the shares ``domain_weight_``, calibrated if asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_domains)
            Columns in the order of ``classes_``; rows sum to 1.
        """
        check_is_fitted(self)
        X = check_X(self, X, accept_sparse=get_tags(self).input_tags.sparse)
        proba = self._uncalibrated(X)
        return proba if self.calibration_ is None else self.calibration_.apply(proba)

    # ---- the steps of fit ------------------------------------------------------------

    def _check_parameters(self) -> int:
        """Check what does not depend on the data; the number of folds asked for."""
        if self.calibration is not None:
            check_choice(CALIBRATIONS, calibration=self.calibration)
        if self.cross_fit is not None and not (
            is_whole(self.cross_fit) and self.cross_fit >= 0
        ):
            raise ValueError(
                "cross_fit must be a number of folds, or None for in-sample, got "
                f"{self.cross_fit!r}"
            )
        if self.cross_fit is not None and self.cross_fit >= 2:
            return int(self.cross_fit)
        needy = self.calibration is not None or is_choice(self.estimator)
        if needy and not is_given(self.estimator):
            raise ValueError(
                "calibration and a choice of estimator need held-out rows, and "
                f"cross_fit={self.cross_fit!r} holds out none; pass cross_fit=5, or "
                "one estimator and calibration=None"
            )
        return 0

    def _accept(self, X: Any, codes: Array) -> None:
        """Use a model that is already fitted."""
        self.n_folds_ = 0
        self.losses_: dict[str, float] = {}
        self.fitted_weight_: Array | None = None
        if isinstance(self.estimator, FrozenEstimator):
            check_classifier(self.estimator)
            self.estimator_ = self.estimator
            self.chosen_ = type(self.estimator.estimator).__name__
            self.domain_given_x_ = self._uncalibrated(X)
        else:
            known = isinstance(self.estimator, OracleDiscriminator)
            function = self.estimator.function if known else self.estimator
            self.estimator_ = OracleDiscriminator(function)
            self.estimator_.fit(X, self.classes_[codes])
            self.chosen_ = "oracle"
            self.domain_given_x_ = self.estimator_.domain_given_x_

    def _learn(self, X: Any, codes: Array, weight: Array | None, n_folds: int) -> None:
        """Cross-fit, choose where there is a choice, and refit on all rows."""
        n_domains = len(self.classes_)
        random_state = check_random_state(self.random_state)
        fold_seed, model_seed = random_state.randint(2**31 - 1, size=2).tolist()
        candidates = list_candidates(
            self.estimator,
            X.shape,
            np.bincount(codes),
            weighted=weight is not None,
            seed=model_seed,
        )
        self.n_folds_ = 0
        self.losses_ = {}
        self.chosen_ = next(iter(candidates))
        if n_folds:
            self.n_folds_ = usable_folds(codes, n_domains, n_folds, self.classes_)
            choice = choose_discriminator(
                list(candidates.values()),
                X,
                codes,
                self.domain_weight_,
                n_folds=self.n_folds_,
                sample_weight=weight,
                random_state=fold_seed,
                n_jobs=self.n_jobs,
            )
            self.domain_given_x_ = choice.domain_given_x
            self.losses_ = dict(zip(candidates, choice.losses.tolist(), strict=True))
            self.chosen_ = list(candidates)[choice.index]
        self.estimator_, self.fitted_weight_ = fit_domain_model(
            candidates[self.chosen_],
            X,
            codes,
            n_domains,
            domain_weight=self.domain_weight_,
            sample_weight=weight,
        )
        if not n_folds:
            self.domain_given_x_ = self._uncalibrated(X)

    def _judge(self, codes: Array, weight: Array | None) -> None:
        """Measure the loss of rows that no model was fitted on, and calibrate."""
        self.calibration_: Calibration | None = None
        self.held_out_loss_: float | None = None
        if not (self.n_folds_ or is_given(self.estimator)):
            return
        self.held_out_loss_ = -mean_log_likelihood(
            self.domain_given_x_, codes, self.domain_weight_, weight
        )
        if self.calibration is not None:
            self.calibration_ = fit_calibration(
                self.domain_given_x_,
                codes,
                method=self.calibration,
                domain_weight=self.domain_weight_,
                sample_weight=weight,
            )
            self.domain_given_x_ = self.calibration_.apply(self.domain_given_x_)

    def _uncalibrated(self, X: Any) -> Array:
        # Models fitted here know the domains by code, others by name.
        given = is_given(self.estimator_)
        return domain_proba(
            self.estimator_,
            X,
            self.classes_ if given else np.arange(len(self.classes_)),
            fitted_weight=self.fitted_weight_,
            domain_weight=self.domain_weight_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        fits = hasattr(self.estimator, "fit") and not isinstance(self.estimator, type)
        tags.input_tags.sparse = fits and get_tags(self.estimator).input_tags.sparse
        return tags
