"""What a fitted CountMixture says, and the search that comes before."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from shoal.analysis._choose import Evidence
from shoal.analysis._rank import soften
from shoal.analysis._refits import Order, Trials, rank_of_clusters
from shoal.analysis._resample import Resampler
from shoal.analysis._unknown import Strangers
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, sample_numbers
from shoal.base import LatentShiftEstimator
from shoal.base._shown import UsualRow
from shoal.counts._bags import (
    Bags,
    Polished,
    bags_resampler,
    expected,
    out_of_fold,
    polish,
    weigh_words,
)
from shoal.counts._components import COUNTED, Components
from shoal.counts._settings import SETTINGS
from shoal.exceptions import ShoalWarning
from shoal.mixture._route import Route
from shoal.probability import HeldOut
from shoal.validation import check_X_domains, resolve_domain_weight, row_weights
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]

# ---- what a fitted CountMixture says, and its hooks ----------------------------------


class FittedCounts(LatentShiftEstimator):
    """Components, the mixture on them, and maybe bags, all fitted."""

    components_: Components
    head_: Any
    bags_: Bags | None
    route_: Route | None

    _accept_sparse = True

    def _class_given_x(self, X: Any) -> Array:
        bags = self.bags_
        if bags is None:
            return np.asarray(self.head_._class_given_x(self.components_.transform(X)))
        return bags.class_given_x(weigh_words(X, bags.words), self.class_weight_)

    def _posterior(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Array:
        if self.bags_ is not None:
            return super()._posterior(X, codes, prevalence)
        points = self.components_.transform(X)
        return np.asarray(self.head_._posterior(points, codes, prevalence))

    def _most_probable(self, X: Any, codes: Array | None) -> Array:
        return self._posterior(X, codes, None).argmax(axis=1)

    # ---- hooks: questions about points are for the mixture of components ----------

    @property
    def _sees_looks(self) -> bool:  # type: ignore[override]
        return bool(self.head_._sees_looks)

    def _told_apart(self) -> str:
        route = self.route_
        judged = route is not None and route.reason != "alone"
        return str(route if judged else self.head_._told_apart())

    def _novelty_quantiles(self) -> Array | None:
        return self.head_._novelty_quantiles()  # type: ignore[no-any-return]

    def _strangers(self) -> Strangers | None:
        # bags of words have classes of their own
        return self.head_._strangers() if self.bags_ is None else None

    def _novelty(self, X: Any) -> Array:
        return np.asarray(self.head_._novelty(self.components_.transform(X)))

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        if self.bags_ is not None:
            return self.bags_.evidence(weigh_words(X, self.bags_.words))
        points = self.components_.transform(X)
        return np.asarray(self.head_._origin._log_evidence(points, codes))

    def _usual_row(self) -> UsualRow:
        """A row without words: what it has says more than what it lacks."""
        n_words = self.n_features_in_
        return UsualRow(np.zeros(n_words), np.ones(n_words, dtype=bool))

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        if self.bags_ is not None:
            weights = weigh_words(X, self.bags_.words)
            return bags_resampler(self.bags_, weights, codes, weight)
        points = self.components_.transform(X)
        return self.head_._resampler(points, codes, weight)  # type: ignore[no-any-return]

    def _diagnosed_rows(
        self, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> DiagnosedRows:
        """Points of the rows; of bags, these go along for the fits out of fold."""
        points = self.components_.transform(X)
        if self.bags_ is None:
            return self.head_._diagnosed_rows(points, codes, max_rows, rng)  # type: ignore[no-any-return]
        numbers, _ = sample_numbers(self.head_, points, codes, max_rows, rng)
        points, codes = points[numbers], codes[numbers]
        rows = self.head_._diagnosed_rows(points, codes, max_rows, rng)
        weights = weigh_words(X[numbers], self.bags_.words)
        posterior = expected(self.bags_, weights, codes)
        return replace(rows, X=weights, posterior=posterior)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        if self.bags_ is None:
            return self.head_._out_of_fold(rows, folds, rng)  # type: ignore[no-any-return]
        given = rows.X, rows.rows.codes, rows.posterior, folds, self.domain_weight_
        return out_of_fold(self.bags_, *given)

    def _probe_rows(self, n_rows: int) -> Array:
        """Small counts, which every weighting takes."""
        shape = n_rows, self.n_features_in_
        return np.random.default_rng(0).poisson(1.0, size=shape).astype(float)

    def _fitted_arrays(self) -> list[Array]:
        words = [] if self.bags_ is None else [self.bags_.log_word_given_class]
        return [self.prevalence_, *words, *self.head_._fitted_arrays()]

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        extended = super()._with_domain(domains, prevalence)
        extended.head_ = self.head_._with_domain(domains, prevalence)
        return extended

    def _lean(self) -> Self:
        copied = super()._lean()
        copied.head_ = self.head_._lean()
        copied.route_ = self.route_ and self.route_.lean()
        return copied

    def _dump(self, writer: Any) -> dict[str, Any]:
        plain = copy.copy(self)
        plain.mixture = None  # it has been cloned, and the clone is the head
        del plain.head_
        return {**writer.plain(plain), "head": writer.model(self.head_)}

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Self:
        parts = {key: content[key] for key in ("params", "state")}
        model = reader.plain(cls, parts)
        model.head_ = reader.model(content["head"])
        return model  # type: ignore[no-any-return]


# ---- bags from several starts, and how many classes of texts there are ---------------


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
