"""What a fitted DiscreteMixture says: Bayes' rule on words, and its hooks."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin_min

from shoal.analysis._choose import Evidence
from shoal.analysis._rank import RankResult, soften
from shoal.analysis._refits import Trials, evidence_of_refits, indexable, with_classes
from shoal.analysis._resample import Resampler, table_resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, rows_of_words
from shoal.base import LatentShiftEstimator
from shoal.base._shown import UsualRow
from shoal.exceptions import UnseenWordWarning
from shoal.probability import TINY, match_rows, mean_log_likelihood
from shoal.stages._words import (
    check_counts,
    list_words,
    look_up_words,
    single_word_bags,
    sum_by_domain,
    thin_words,
)
from shoal.validation import check_domains, check_X

Array = np.ndarray[Any, Any]

# Words to fit and to hold out in a choice of the number; of more, a sample is drawn.
MAX_WORDS = 50_000


class FittedWords(LatentShiftEstimator):
    """q(word|y) and a mix for every domain, fitted."""

    input: str

    def _class_given_x(self, X: Any) -> Array:
        return self._bayes(self._read_bags(X), self.class_weight_)

    def _posterior(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Array:
        prior = self.prevalence_.mean(axis=0) if prevalence is None else prevalence
        if codes is not None:
            prior = self.prevalence_[codes]
        return self._bayes(self._read_bags(X), prior)

    def _bayes(self, bags: Any, prior: Array) -> Array:
        """Algorithm 4 for bags; ``prior`` is one class mix, or one per bag.

        In logarithms: a product over a long document underflows, and a class that its
        domain rules out must not take the others down with it.
        """
        evidence = bags @ self._log_word_given_class()[: bags.shape[1]]
        with np.errstate(divide="ignore"):
            return np.asarray(softmax(evidence + np.log(prior), axis=1))

    def _score_rows(self, X: Any, codes: Array, sample_weight: Any) -> float:
        """Every word counts once, also inside bags; one never seen as log q(d).

        The fit is mixed with one more word whose domain is drawn from q(d): a zero
        among maximum-likelihood estimates only means "rarer than could be seen", and
        one held-out word must not cost minus infinity.
        """
        bags = self._read_bags(X)
        counts = sum_by_domain(bags, codes, len(self.domains_), sample_weight)
        n_columns, n_fitted = bags.shape[1], self.word_count_.sum()
        domain_given_word = self._class_given_word(n_columns) @ self.domain_given_class_
        softened = soften(domain_given_word, self.domain_weight_, n_fitted)
        domain, word = counts.nonzero()
        return mean_log_likelihood(
            softened[word], domain, sample_weight=counts[domain, word]
        )

    def _class_given_word(self, n_columns: int) -> Array:
        """q(y|word) of each column of bags."""
        each_word = single_word_bags(np.arange(n_columns), n_columns)
        return self._bayes(each_word, self.class_weight_)

    def _log_word_given_class(self) -> Array:
        """Log q(word|y), one row per word; 0, no evidence, for words never seen.

        The last row is for words outside the vocabulary.
        """
        table = np.log(np.maximum(self.word_given_class_.T, TINY))
        table[self.word_count_ == 0] = 0
        return np.vstack([table, np.zeros(self.n_classes_)])

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        bags = self._read_bags(X, warn=False)
        return np.asarray(bags @ self._log_word_given_class()[: bags.shape[1]])

    def _usual_row(self) -> UsualRow | None:
        """A bag without words; a row that is one word cannot be taken apart."""
        if not self._counts_words:
            return None
        known = self.word_count_ > 0
        return UsualRow(np.zeros(len(known)), known)

    def _read_bags(self, X: Any, *, warn: bool = True) -> Any:
        """Bags of any rows; words outside the vocabulary get one more column."""
        if self.input == "counts":
            bags = X
        elif self._clusters_rows():
            bags = single_word_bags(self.discretizer_.predict(X), len(self.vocabulary_))
        else:
            column_names = getattr(self, "feature_names_in_", None)
            words = look_up_words(X, self.vocabulary_, column_names)
            bags = single_word_bags(words, len(self.vocabulary_) + 1)
        if warn:
            self._warn_unseen(np.ravel(bags.sum(axis=0)))
        return bags

    def _warn_unseen(self, occurrences: Array) -> None:
        known = np.append(self.word_count_ > 0, False)[: len(occurrences)]
        n_unseen, n_words = int(occurrences[~known].sum()), int(occurrences.sum())
        if n_unseen:
            warnings.warn(
                f"{n_unseen} of {n_words} words did not occur in fit; they say nothing "
                "about the class, which is left to the prevalence",
                UnseenWordWarning,
                stacklevel=4,
            )

    def _novelty(self, X: Any) -> Array:
        """Distance to the nearest cluster, or minus log q(word), averaged over a bag.

        A word never seen counts as half of one training word.
        """
        if self._clusters_rows():
            points = self.discretizer_[:-1].transform(X)
            centers = self.discretizer_[-1].cluster_centers_
            return np.asarray(pairwise_distances_argmin_min(points, centers)[1])
        bags = self._read_bags(X, warn=False)  # being new is the question here
        share = np.append(self.class_weight_ @ self.word_given_class_, 0)
        surprise = -np.log(np.maximum(share, 0.5 / self.word_count_.sum()))
        size = np.ravel(bags.sum(axis=1))
        return np.asarray(bags @ surprise[: bags.shape[1]] / np.maximum(size, 1))

    # ---- hooks --------------------------------------------------------------------

    @property
    def _counts_words(self) -> bool:
        return self.input == "counts"

    def _novelty_quantiles(self) -> Array:
        return self.novelty_quantiles_

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        return table_resampler(self, self._read_bags(X), codes, weight)

    def _diagnosed_rows(
        self, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> DiagnosedRows:
        """Every occurrence of a word is a row."""
        bags = self._read_bags(X, warn=False)
        table = sum_by_domain(bags, codes, len(self.domains_))
        table = table[:, : len(self.vocabulary_)].astype(np.int64)
        shape = self.n_classes_, self.domain_weight_, max_rows
        rows = rows_of_words(table, *shape, rng)
        words = single_word_bags(rows.X, len(self.vocabulary_))
        posterior = self._bayes(words, self.prevalence_[rows.rows.codes])
        return replace(rows, posterior=posterior)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        """Tables factorized without each fold, classes matched by their words."""
        words, codes, n_words = rows.X, rows.rows.codes, len(self.vocabulary_)
        n_folds, shape = int(folds.max()) + 1, self.domain_given_class_.shape
        class_given_x = np.empty((len(words), shape[0]))
        corners, weight = np.empty((n_folds, *shape)), np.empty((n_folds, shape[0]))
        for fold in range(n_folds):
            test, table = folds == fold, np.zeros((shape[1], n_words), dtype=np.int64)
            np.add.at(table, (codes[~test], words[~test]), 1)
            other = with_classes(self, shape[0])
            seed = np.random.RandomState(int(rng.integers(2**31 - 1)))
            other._factorize(table, self.domains_, seed)
            order = match_rows(self.word_given_class_, other.word_given_class_)
            given = other._class_given_word(n_words)
            class_given_x[test] = given[words[test]][:, order]
            corners[fold] = other.domain_given_class_[order]
            weight[fold] = other.class_weight_[order]
        return OutOfFold(class_given_x, corners, weight)

    def _evidence(self, X: Any, domains: Any, trials: Trials) -> Evidence:
        """As of any rows; the rank is that of the table itself.

        A bag of words is not one draw from one class, each of its words is: bags are
        taken apart, and rows of one word are fitted and held out.
        """
        if not self._counts_words:
            X = indexable(X)
            codes, names = check_domains(domains, n_samples=X.shape[0])
            return evidence_of_refits(self, X, codes, names, trials, _rank_of_words)
        X = check_counts(check_X(self, X, reset=True, accept_sparse=True))
        domains = np.arange(X.shape[0]) if domains is None else domains
        codes, names = check_domains(domains, n_samples=X.shape[0])
        table = sum_by_domain(X, codes, len(names)).astype(np.int64)
        codes, words = list_words(thin_words(table, MAX_WORDS, trials.rng))
        model = clone(self).set_params(input="rows")
        return evidence_of_refits(
            model, words[:, None], codes, names, trials, _rank_of_words
        )

    def _probe_rows(self, n_rows: int) -> Array:
        """Words of the vocabulary, or bags of one word each; anything for clusters."""
        n_features = self.n_features_in_
        if self._clusters_rows():
            return np.random.default_rng(0).normal(size=(n_rows, n_features))
        if self._counts_words:
            return np.eye(n_features)[np.arange(n_rows) % n_features]
        return np.asarray(self.vocabulary_[np.arange(n_rows) % len(self.vocabulary_)])

    def _word_counts(self) -> Array:
        joint = self.class_weight_[:, None] * self.word_given_class_
        share = joint / np.maximum(joint.sum(axis=0), TINY)
        return np.asarray(share * self.word_count_)


def _rank_of_words(
    model: Any, X: Any, codes: Array, names: Array, rng: np.random.Generator
) -> RankResult:
    """Rank of the model's own table of words by domains."""
    chosen = clone(model).set_params(n_classes=None)
    return chosen.fit(X, domains=names[codes]).rank_
