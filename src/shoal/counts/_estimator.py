"""CountMixture: classes of texts and cells, whose rows count words or genes."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from shoal._threads import one_thread
from shoal.analysis._choose import Evidence
from shoal.analysis._refits import Order, Trials, rank_of_clusters
from shoal.analysis.diagnose._rows import sample_numbers
from shoal.counts._bags import Bags, logarithms, polish
from shoal.counts._components import WEIGHTINGS, Components
from shoal.counts._fitted import FittedCounts
from shoal.counts._settings import SETTINGS
from shoal.exceptions import ShoalWarning
from shoal.mixture import DomainMixture
from shoal.probability import TINY, HeldOut, canonical_order
from shoal.validation import (
    check_choice,
    check_whole,
    check_X_domains,
    is_sparse,
    resolve_domain_weight,
    row_weights,
)
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


class CountMixture(FittedCounts):
    """Discover classes of documents or cells, one class each.

    Counts become a few components (TF-IDF and singular vectors for texts; counts of
    one size, their logarithms, the most variable columns and principal directions of
    what varies inside of domains for cells), on which a mixture finds the classes.
    Classes of counts are then polished as bags: words drawn from the shares of one
    class, with a mix for each domain, by EM from several starts. The start is taken,
    and the polish kept, by how well domains of held-out rows are told.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses it (see :func:`shoal.choose_n_classes`).
    weighting : {"auto", "tfidf", "log", "none"}, default="auto"
        ``"tfidf"`` is for texts, ``"log"`` for cells and other counts, ``"none"`` for
        numbers that are normalized already. "auto" takes "log" where all numbers are
        whole and none is negative, else "none".
    n_components : int, default=None
        Number of components; None: 20, as far as rows and columns allow.
    mixture : LatentShiftEstimator, default=None
        What finds classes among the components: it is cloned, and gets the number of
        classes and the seed from here. None: a DomainMixture by shift, all components
        on one scale.
    polish : bool, default=True
        Whether classes of counts are polished as bags. Never where the mixture tells
        them apart by looks.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.
    check_identifiable : bool, default=True
        Refuse more classes than domains; False only warns.
    n_jobs : int, default=None
        Optimizations that run side by side; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row.
    components_ : Components
    head_ : LatentShiftEstimator
        The mixture, fitted to the components.
    bags_ : Bags or None
        What words say of classes; None where the mixture has the last word.
    held_out_ : dict of str to float
        Log-likelihood of the domains of held-out rows through the classes, by the
        number of components of the start and, for "mixture", without the polish.
    n_classes_, n_features_in_, class_names_

    See Also
    --------
    shoal.DiscreteMixture : Bags that mix classes; single words; anchors.
    shoal.DomainMixture : Numbers of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import CountMixture
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 0, 1], [80, 20, 40, 60])
    >>> shares = np.array([[4, 4, 1, 1, 1], [1, 1, 4, 4, 1]]) / 11
    >>> X = np.array([rng.multinomial(40, shares[y]) for y in labels])
    >>> model = CountMixture(2, random_state=0).fit(X, np.repeat(["a", "b"], 100))
    >>> bool(abs(model.prevalence_ - [[0.8, 0.2], [0.4, 0.6]]).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        weighting: str = "auto",
        n_components: int | None = None,
        mixture: Any = None,
        polish: bool = True,
        domain_weight: Any = "equal",
        check_identifiable: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.weighting = weighting
        self.n_components = n_components
        self.mixture = mixture
        self.polish = polish
        self.domain_weight = domain_weight
        self.check_identifiable = check_identifiable
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            One row for each document or cell, one column for each word or gene.
        y : array-like of shape (n_samples,)
            Alias of ``domains``, for scikit-learn's tools.
        domains : array-like of shape (n_samples,)
            Where each row comes from.

        Returns
        -------
        self
        """
        domains = y if domains is None else domains
        X, codes, names = check_X_domains(self, X, domains, accept_sparse=True)
        rng = check_random_state(self.random_state)
        with one_thread():
            whole = self._components(X, codes, rng)
            self.components_ = whole.leading(self._n_components)
            points = self.components_.transform(X)
            k = self._resolve_n_classes(X, names[codes], rng)
            self.head_ = self._head(rng, n_classes=k)
            self.head_.fit(points, domains=names[codes])
            self.bags_: Bags | None = None
            self.held_out_: dict[str, float] = {}
            if self._polishes():
                self._polish(X, codes, whole, rng)
            self._keep()
        self.labels_ = self._most_probable(X, codes)
        return self

    # ---- components and the mixture on them ---------------------------------------

    @property
    def _n_components(self) -> int:
        return self.n_components or SETTINGS.components

    def _components(self, X: Any, codes: Array, rng: Any) -> Components:
        """Directions for every start."""
        check_choice(("auto", *WEIGHTINGS), weighting=self.weighting)
        if self.n_components is not None:
            check_whole(1, n_components=self.n_components)
        if self.n_classes is not None and X.shape[1] < self.n_classes:
            raise ValueError(
                f"X has {X.shape[1]} words, too few for n_classes={self.n_classes}; "
                "use fewer classes"
            )
        weighting = self.weighting
        if weighting == "auto":
            weighting = "log" if is_counts(X) else "none"
        if weighting != "none" and smallest(X) < 0:
            raise ValueError(
                f"weighting={weighting!r} is for counts, and X has negative numbers; "
                'use weighting="none"'
            )
        most = int(self._n_components * max(1.0, *SETTINGS.further))
        return Components(weighting, most, draw_seed(rng)).fit(X, codes)

    def _head(self, rng: Any, **changes: Any) -> Any:
        """The mixture of components, not fitted; with the settings that it knows."""
        given = self.mixture
        head = (
            DomainMixture(by="shift", scale="global") if given is None else clone(given)
        )
        known = head.get_params(deep=False)
        shared = {
            "n_classes": self.n_classes,
            "domain_weight": self.domain_weight,
            "check_identifiable": self.check_identifiable,
            "n_jobs": self.n_jobs,
            "random_state": draw_seed(rng),
            **changes,
        }
        return head.set_params(**{key: shared[key] for key in shared if key in known})

    # ---- bags ---------------------------------------------------------------------

    def _polishes(self) -> bool:
        """Whether bags may have a say: of counts, told apart by what shifts."""
        counts = self.components_.weighting != "none"
        return bool(self.polish and counts and not self.head_._sees_looks)

    def _polish(self, X: Any, codes: Array, whole: Components, rng: Any) -> None:
        """The best bags of several starts, unless the mixture tells domains better."""
        weights, generator = self._bag_weights(X), np.random.default_rng(draw_seed(rng))
        folds = fold_of_rows(codes, SETTINGS.folds, generator)
        share = self.head_.domain_weight_
        points = self.components_.transform(X)
        best = before = self._held_out_head(points, codes, folds, generator)
        self.held_out_["mixture"] = before.mean
        for components, head in self._starts(X, codes, whole, rng):
            start = head._posterior(components.transform(X), codes, None)
            bags, after = polish(weights, codes, start, folds, share)
            self.held_out_[f"{len(components.directions_)} components"] = after.mean
            doubt = SETTINGS.doubt * after.standard_error(before)
            if self.bags_ is None:
                better = after.mean >= before.mean - doubt
            else:
                better = after.mean > best.mean
            if better:
                self.bags_, best = bags, after
                self.components_, self.head_ = components, head

    def _starts(
        self, X: Any, codes: Array, whole: Components, rng: Any
    ) -> Iterator[tuple[Components, Any]]:
        """The mixture, then quick ones on other numbers of components."""
        yield self.components_, self.head_
        if self.mixture is None:
            sizes = [int(times * self._n_components) for times in SETTINGS.further]
            names, k = self.head_.domains_[codes], self.head_.n_classes_
            yield from self._quick_starts(X, names, whole, sizes, k, rng)

    def _quick_starts(
        self,
        X: Any,
        domains: Array,
        whole: Components,
        sizes: Sequence[int],
        n_classes: int,
        rng: Any,
    ) -> Iterator[tuple[Components, Any]]:
        """Mixtures without a search, on several numbers of components."""
        how = {"n_classes": n_classes, "search": False, "expansion": "linear"}
        for size in sizes:
            components, quick = whole.leading(max(size, 2)), self._head(rng, **how)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)  # it is but a start
                warnings.simplefilter("ignore", ConvergenceWarning)
                quick.fit(components.transform(X), domains=domains)
            yield components, quick

    def _held_out_head(
        self, points: Array, codes: Array, folds: Array, rng: np.random.Generator
    ) -> HeldOut:
        """How well the mixture of components tells the domains of held-out rows."""
        head, n_rows = self.head_, len(codes)
        numbers, _ = sample_numbers(head, points, codes, n_rows, rng)
        rows = head._diagnosed_rows(points[numbers], codes[numbers], n_rows, rng)
        guess = head._out_of_fold(rows, folds[numbers], rng)
        own = np.empty(n_rows)
        own[numbers] = guess.through_classes(head, codes[numbers], folds[numbers])
        weight = row_weights(codes, head.domain_weight_)
        return HeldOut(np.log(np.maximum(own, TINY)), weight)

    def _keep(self) -> None:
        """Store the solution with its classes in canonical order."""
        head, bags = self.head_, self.bags_
        if bags is not None:
            order = canonical_order(bags.prevalence)
            head._reorder_classes(order)
            self.bags_ = bags = bags.take(order)
        prevalence = head.prevalence_ if bags is None else bags.prevalence
        self._store(prevalence, head.domains_, head.domain_weight_)

    def _evidence(self, X: Any, domains: Any, trials: Trials) -> Evidence:
        """Of texts, held-out bags for every number of classes; else the mixture's."""
        X, codes, names = check_X_domains(self, X, domains, accept_sparse=True)
        rng = np.random.RandomState(int(trials.rng.integers(2**31 - 1)))
        whole = self._components(X, codes, rng)
        points = whole.leading(self._n_components).transform(X)
        if self.mixture is None and self.polish and whole.weighting == "tfidf":
            return self._bag_evidence(X, points, codes, names, whole, trials)
        return self._head(rng)._evidence(points, names[codes], trials)  # type: ignore[no-any-return]

    def _bag_evidence(
        self,
        X: Any,
        points: Array,
        codes: Array,
        names: Array,
        whole: Components,
        trials: Trials,
    ) -> Evidence:
        share = resolve_domain_weight(self.domain_weight, names, np.bincount(codes))
        folds = fold_of_rows(codes, SETTINGS.folds, trials.rng)
        rank = rank_of_clusters(points, codes, names, trials.rng)
        weights, seed = logarithms(X), int(trials.rng.integers(2**31 - 1))
        times = (1.0, *SETTINGS.further)
        sizes = [int(one * self._n_components) for one in times]

        def best_of_starts(k: int) -> HeldOut:
            rng = np.random.RandomState(seed)
            starts = self._quick_starts(X, names[codes], whole, sizes, k, rng)
            found = []
            for components, head in starts:
                posterior = head._posterior(components.transform(X), codes, None)
                found.append(polish(weights, codes, posterior, folds, share)[1])
            return max(found, key=lambda one: one.mean)

        scores: dict[int, HeldOut] = {}
        given = trials.candidates(rank.n_classes, len(names))
        for some in trials.order.groups(given, rank.n_classes):
            scores |= {k: best_of_starts(k) for k in some}
        # while the last number is the best, one more may be better still
        while trials.n_classes is None and not trials.order.late():
            most = max(scores)
            if most >= len(names) or scores[most].mean < max(
                scores[k].mean for k in scores
            ):
                break
            scores[most + 1] = best_of_starts(most + 1)
        return Evidence(
            {k: scores[k] for k in sorted(scores)},
            dict.fromkeys(sorted(scores), float("nan")),
            rank,
            HeldOut(np.log(share)[codes], row_weights(codes, share)),
            len(names),
        )

    def _resolve_n_classes(self, X: Any, domains: Array, rng: Any) -> int | None:
        """Of texts, the fewest classes within a standard error of the best.

        None where the mixture is to choose.
        """
        text = self.weighting == "tfidf" and self.mixture is None and self.polish
        if self.n_classes is not None or not text:
            return self.n_classes
        generator = np.random.default_rng(draw_seed(rng))
        trials = Trials(None, None, 0, self.n_jobs, generator, Order(None))
        scores = self._evidence(X, domains, trials).scores
        best = max(scores.values(), key=lambda one: one.mean)
        return min(
            k
            for k, one in scores.items()
            if best.mean - one.mean <= best.standard_error(one)
        )


def is_counts(X: Any) -> bool:
    """Whether all numbers are whole and none is negative."""
    values = X.data if is_sparse(X) else X
    return bool((values >= 0).all() and (values % 1 == 0).all())


def smallest(X: Any) -> float:
    """The smallest number of a matrix."""
    return float(X.min()) if X.shape[0] and X.shape[1] else 0.0


def draw_seed(rng: Any) -> int:
    """Seed for one step, so that no generator lives on in a fitted part."""
    return int(rng.randint(np.iinfo(np.int32).max))
