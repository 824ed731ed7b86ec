"""Bags from several starts, and how many classes of texts there are."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from shoal._rank import soften
from shoal.analysis._choose import Evidence
from shoal.analysis._refits import Order, Trials, rank_of_clusters
from shoal.analysis.diagnose._rows import sample_numbers
from shoal.counts._bags import Polished, polish, weigh_words
from shoal.counts._components import COUNTED, Components
from shoal.counts._fitted import FittedCounts
from shoal.counts._settings import SETTINGS
from shoal.exceptions import ShoalWarning
from shoal.probability import HeldOut
from shoal.validation import check_X_domains, resolve_domain_weight, row_weights
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


class BagStart(NamedTuple):
    """Classes of the rows that an EM of bags begins at, and what found them."""

    name: str
    components: Components
    head: Any
    posterior: Array


def choose_polished(
    found: list[tuple[BagStart, Polished]],
) -> tuple[BagStart, Polished]:
    """The bags that tell domains best; where several may, those with likelier words.

    Classes whose mixes run alike over the domains are told apart by words alone.
    Logarithms and counts have likelihoods that cannot be compared.
    """
    best = max(found, key=lambda one: one[1].of_domains.mean)[1]
    near = [
        (start, one)
        for start, one in found
        if one.bags.words == best.bags.words
        and best.of_domains.mean - one.of_domains.mean
        <= SETTINGS.doubt * best.of_domains.standard_error(one.of_domains)
    ]
    return max(near, key=lambda one: one[1].of_words)


class SearchesBags(FittedCounts):
    """The search of a CountMixture, which says how components and heads are made."""

    n_classes: int | None
    mixture: Any
    polish: bool
    domain_weight: Any
    n_jobs: int | None
    weighting: str

    def _components(self, X: Any, codes: Array, rng: Any) -> Components:
        raise NotImplementedError

    def _head(self, rng: Any, **changes: Any) -> Any:
        raise NotImplementedError

    @property
    def _n_components(self) -> int:
        raise NotImplementedError

    # ---- the fit ------------------------------------------------------------------

    def _polishes(self) -> bool:
        """Whether bags may have a say: of counts, where mixes tell and nothing drifts.

        Bags are alike in all domains, and chosen by how well they tell domains.
        """
        counts = self.components_.weighting in COUNTED
        looks = self.head_._sees_looks
        by_mixes = not looks or self.route_ is not None and self.route_.chosen
        drift = getattr(self.head_, "drift_", None) is not None
        return bool(self.polish and counts and by_mixes and not drift)

    def _polish(self, X: Any, codes: Array, whole: Components, rng: Any) -> None:
        """The best bags of several starts, unless the mixture tells domains better."""
        generator = np.random.default_rng(draw_seed(rng))
        folds = fold_of_rows(codes, SETTINGS.folds, generator)
        share = self.head_.domain_weight_
        points = self.components_.transform(X)
        before = self._held_out_head(points, codes, folds, generator)
        self.held_out_["mixture"] = before.mean
        found = []
        weighed = self._weighed(X, self.components_)
        for start in self._starts(X, codes, points, whole, rng):
            for words, weights in weighed.items():
                given = weights, codes, start.posterior, folds, share
                found.append((start, polish(*given, words=words)))
                name, after = f"{start.name}, {words}", found[-1][1].of_domains
                self.held_out_[name] = after.mean
        start, best = choose_polished(found)
        doubt = SETTINGS.doubt * best.of_domains.standard_error(before)
        if best.of_domains.mean >= before.mean - doubt:
            self.bags_ = best.bags
            self.components_, self.head_ = start.components, start.head

    def _weighed(self, X: Any, components: Components) -> dict[str, Any]:
        """What a word may weigh in a bag, by name, and the weights of all rows."""
        kinds = SETTINGS.words[components.weighting]
        return {words: weigh_words(X, words) for words in kinds}

    def _starts(
        self, X: Any, codes: Array, points: Array, whole: Components, rng: Any
    ) -> Iterator[BagStart]:
        """What was fitted, its twin, then quick ones on other numbers of components."""
        own, head, route = self.components_, self.head_, self.route_
        name = f"{len(own.directions_)} components"
        yield BagStart(name, own, head, head._posterior(points, codes, None))
        if route is not None and len(route.other_labels):
            twin = np.eye(head.n_classes_)[route.other_labels]
            yield BagStart(f"{name}, twin", own, head, twin)
        if self.mixture is None:
            sizes = [int(times * self._n_components) for times in SETTINGS.further]
            given = X, codes, head.domains_, whole, sizes, head.n_classes_, rng
            yield from self._quick_starts(*given)

    def _quick_starts(
        self,
        X: Any,
        codes: Array,
        names: Array,
        whole: Components,
        sizes: Sequence[int],
        n_classes: int,
        rng: Any,
    ) -> Iterator[BagStart]:
        """Mixtures without a search, on several numbers of components."""
        how = {"n_classes": n_classes, "search": False, "expansion": "linear"}
        for size in sizes:
            components = whole.leading(max(size, 2))
            points, quick = components.transform(X), self._head(rng, **how)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)  # it is but a start
                warnings.simplefilter("ignore", ConvergenceWarning)
                quick.fit(points, domains=names[codes])
            posterior = quick._posterior(points, codes, None)
            yield BagStart(f"{size} components", components, quick, posterior)

    def _held_out_head(
        self, points: Array, codes: Array, folds: Array, rng: np.random.Generator
    ) -> HeldOut:
        """How well the mixture of components tells the domains of held-out rows."""
        head, n_rows = self.head_, len(codes)
        numbers, _ = sample_numbers(head, points, codes, n_rows, rng)
        rows = head._diagnosed_rows(points[numbers], codes[numbers], n_rows, rng)
        guess = head._out_of_fold(rows, folds[numbers], rng)
        own, share = np.empty(n_rows), head.domain_weight_
        own[numbers] = guess.through_classes(head, codes[numbers], folds[numbers])
        own = soften(np.maximum(own, 0), share[codes], n_rows, imaginary=len(share))
        return HeldOut(np.log(own), row_weights(codes, share))

    # ---- the number of classes ----------------------------------------------------

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
        weighed, seed = self._weighed(X, whole), int(trials.rng.integers(2**31 - 1))
        times = (1.0, *SETTINGS.further)
        sizes = [int(one * self._n_components) for one in times]

        def best_of_starts(k: int) -> HeldOut:
            rng = np.random.RandomState(seed)
            found = [
                polish(weights, codes, start.posterior, folds, share, words=words)
                for start in self._quick_starts(X, codes, names, whole, sizes, k, rng)
                for words, weights in weighed.items()
            ]
            judged = [one.of_domains for one in found]
            return max(judged, key=lambda one: one.mean)

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


def draw_seed(rng: Any) -> int:
    """Seed for one step, so that no generator lives on in a fitted part."""
    return int(rng.randint(np.iinfo(np.int32).max))
