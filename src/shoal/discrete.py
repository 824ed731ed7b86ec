"""DiscreteMixture: finitely many inputs, or topic models (Algorithms 3 and 4)."""

import sys
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils import check_random_state

from shoal._novelty import novelty_quantiles
from shoal._rank import NO_SIGNAL, RankResult, domains_differ, soften, supported_rank
from shoal._threads import one_thread
from shoal._words import (
    check_counts,
    find_words,
    list_words,
    look_up_words,
    single_word_bags,
    sum_by_domain,
    thin_words,
    words_by_clustering,
)
from shoal.analysis._decide import Evidence
from shoal.analysis._refits import Trials, evidence_of_refits, indexable, with_classes
from shoal.analysis._resample import Resampler, table_resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, rows_of_words
from shoal.base import LatentShiftEstimator
from shoal.exceptions import IdentifiabilityWarning, UnseenWordWarning
from shoal.probability import TINY, match_rows, mean_log_likelihood, normalize_rows
from shoal.stages.factorize import Factorizer
from shoal.stages.factorize._estimator import METHODS
from shoal.validation import (
    check_domains,
    check_n_classes,
    check_X,
    check_X_domains,
    is_whole,
    resolve_domain_weight,
)

Array = np.ndarray[Any, Any]

INPUTS = ("rows", "counts")
WORDS_PER_CLASS = 3
NOVELTY_ROWS = 5_000
# Words to fit and to hold out in a choice of the number; of more, a sample is drawn.
MAX_WORDS = 50_000


class DiscreteMixture(LatentShiftEstimator):
    """Discover classes among finitely many inputs: words in documents.

    Each distinct input is a *word* and each domain a document. The table of word shares
    is then a product, q(word|d) = sum over y of p_d(y) q(word|y): a topic model, whose
    factors are unique up to the order of the classes when every class has an *anchor*,
    a word that no other class uses (Theorem 1 of [1]_, after [2]_). With the default
    factorizer this is probabilistic latent semantic analysis [3]_ started from anchors.

    A ``representation`` in front turns numeric rows into words by k-means: the naive
    variants of Appendix H, a baseline for :class:`shoal.DDFA`.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses the largest number, up to the number of
        domains, that the table supports against permuted domains
        (:func:`shoal._rank.supported_rank`). :func:`shoal.choose_n_classes` draws the
        held-out curve beside it.
    input : {"rows", "counts"}, default="rows"
        What a row of X is. ``"rows"``: one word, the tuple of its columns, of any
        kind (strings, numbers, mixed). ``"counts"``: a bag of words of its domain,
        one column per word; rows of a domain are summed, and without domains each row
        is a domain of its own.
    representation : {None, "identity", "pca", "ica"} or transformer, default=None
        None takes distinct rows as words, unless ``n_words`` is given. Otherwise
        rows are transformed (PCA and ICA to as many dimensions as there are domains;
        any transformer is cloned and fitted once, on the training rows) and clustered
        by k-means. Columns are not rescaled.
    n_words : int, default=None
        Number of words that k-means makes of the rows, at least the number of classes;
        None for three per class.
    factorizer : {"em", "spa", "snpa", "volume", "nmf"} or Factorizer, default="em"
        How the table is split, see :func:`shoal.stages.factorize.factorize`. Of an
        object, its method and options count; it is cloned.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution; ``"size"`` counts words.
    check_identifiable : bool, default=True
        Refuse more classes than domains; False only warns.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    word_given_class_ : ndarray of shape (n_classes, n_words)
        q(word|y); 0 for words that the training rows do not have.
    vocabulary_ : ndarray of shape (n_words, n_features) or (n_words,)
        The distinct rows; for counts the names (or indices) of the columns; for
        clusters their indices.
    word_count_ : ndarray of shape (n_words,)
        How often each word occurred in fit.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row, given its domain.
    n_classes_ : int
    factorization_ : Factorization
        Both factors, with residual, condition number and anchors.
    discretizer_ : Pipeline
        Representation and :class:`~shoal.stages.discretize.KMeansDiscretizer`, fitted;
        only for clustered rows.
    rank_ : RankResult
        Only when ``n_classes`` was chosen.
    novelty_quantiles_ : ndarray
        Of how rare the words of training rows are, for the fit score of ``adapt``.
    n_features_in_ : int

    See Also
    --------
    shoal.DDFA : Continuous inputs, through a domain discriminator.
    shoal.DomainMixture : Continuous inputs, by maximum likelihood.

    Notes
    -----
    A bag is predicted as the words of ONE class: p_d(y) times the product of q(word|y).
    The mix of topics of a document is its row of ``prevalence_``. Words that fit has
    not seen leave that product unchanged, with one
    :class:`~shoal.exceptions.UnseenWordWarning` that counts them. ``score`` counts
    every word once, also inside bags, so that rows and counts of the same words score
    the same, and adds one imaginary word drawn from q(d) to the fit, so that estimates
    of zero do not cost minus infinity. The table of words by domains is dense in
    memory.

    References
    ----------
    .. [1] M. Roberts, P. Mani, S. Garg, Z. C. Lipton (2022). Unsupervised Learning
       under Latent Label Shift. NeurIPS.
    .. [2] K. Huang, X. Fu, N. D. Sidiropoulos (2016). Anchor-Free Correlated Topic
       Modeling: Identifiability and Algorithm. NeurIPS. On anchor words: S. Arora,
       R. Ge, A. Moitra (2012). Learning Topic Models: Going beyond SVD. FOCS.
    .. [3] T. Hofmann (1999). Probabilistic Latent Semantic Indexing. SIGIR.

    Examples
    --------
    Three shops sell fruit out of two kinds of baskets, in different proportions. One
    kind holds apples and figs, the other limes and figs:

    >>> from shoal import DiscreteMixture
    >>> sales = {"north": [81, 6, 13], "south": [18, 48, 34], "west": [45, 30, 25]}
    >>> fruit = ["apple", "lime", "fig"]
    >>> domains = [shop for shop in sales for _ in range(100)]
    >>> X = [[name] for row in sales.values() for name, n in zip(fruit, row)
    ...      for _ in range(n)]
    >>> model = DiscreteMixture(n_classes=2, random_state=0).fit(X, domains)
    >>> model.prevalence_.round(2)
    array([[0.9, 0.1],
           [0.2, 0.8],
           [0.5, 0.5]])
    >>> model.predict_proba([["fig"]], "south").round(3)
    array([[0.059, 0.941]])

    The same from a table of counts, one row per shop:

    >>> model = DiscreteMixture(n_classes=2, input="counts", random_state=0)
    >>> model.fit(list(sales.values()), domains=list(sales)).word_given_class_.round(2)
    array([[0.9, 0. , 0.1],
           [0. , 0.6, 0.4]])
    """

    def __init__(
        self,
        n_classes: Any = None,
        *,
        input: str = "rows",
        representation: Any = None,
        n_words: Any = None,
        factorizer: Any = "em",
        domain_weight: Any = "equal",
        check_identifiable: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.input = input
        self.representation = representation
        self.n_words = n_words
        self.factorizer = factorizer
        self.domain_weight = domain_weight
        self.check_identifiable = check_identifiable
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Alias of ``domains``, for scikit-learn's tools.
        domains : array-like of shape (n_samples,)
            Where each row comes from; may be left out with ``input="counts"``.

        Returns
        -------
        self
        """
        X, codes, names = self._begin(X, y if domains is None else domains)
        rng = check_random_state(self.random_state)
        with one_thread():
            bags = self._learn_words(X, len(names), rng)
            counts = sum_by_domain(bags, codes, len(names))
            self._factorize(counts, names, rng)
        if self.n_classes is not None and not domains_differ(counts):
            warnings.warn(NO_SIGNAL, IdentifiabilityWarning, stacklevel=2)
        self.labels_ = self._bayes(bags, self.prevalence_[codes]).argmax(axis=1)
        some = X[:: -(-X.shape[0] // NOVELTY_ROWS)]
        self.novelty_quantiles_ = novelty_quantiles(self._novelty(some))
        return self

    # ---- the steps of fit ---------------------------------------------------------

    def _begin(self, X: Any, domains: Any) -> tuple[Any, Array, Array]:
        """Check everything that came from outside."""
        self._check_settings()
        X, rules = self._as_table(X), self._input_rules()
        if domains is None and self.input == "counts":
            X = check_X(self, X, reset=True, **rules)
            codes = names = np.arange(X.shape[0])
        else:
            X, codes, names = check_X_domains(self, X, domains, **rules)
        if self.n_classes is not None:
            # Too many classes, if allowed at all, are for factorize to warn of.
            n_allowed = len(names) if self.check_identifiable else sys.maxsize
            check_n_classes(self.n_classes, n_allowed)
        if self.input == "counts":
            check_counts(X, allow_empty=False)
        return X, codes, names

    def _learn_words(self, X: Any, n_domains: int, rng: Any) -> Any:
        """Set up the vocabulary; returns the bags of the training rows."""
        column_names = getattr(self, "feature_names_in_", None)
        if self.input == "counts":
            indices = np.arange(X.shape[1])
            self.vocabulary_ = indices if column_names is None else column_names
            return X
        if self._clusters_rows():
            n_classes = n_domains if self.n_classes is None else self.n_classes
            self.discretizer_ = words_by_clustering(
                self.representation,
                self.n_words or min(WORDS_PER_CLASS * n_classes, len(X)),
                n_dimensions=min(n_domains, *X.shape),
                random_state=rng,
            )
            words = self.discretizer_.fit(X).predict(X)
            self.vocabulary_ = np.arange(self.discretizer_[-1].n_clusters_)
        else:
            words, self.vocabulary_ = find_words(X, column_names)
        return single_word_bags(words, len(self.vocabulary_))

    def _factorize(self, counts: Array, names: Array, rng: Any) -> None:
        """Both factors of the table, classes in canonical order."""
        self.word_count_ = counts.sum(axis=0)
        weight = resolve_domain_weight(self.domain_weight, names, counts.sum(axis=1))
        given = self.factorizer
        solver = Factorizer(method=given) if isinstance(given, str) else clone(given)
        solver.set_params(
            n_classes=self._resolve_n_classes(counts, rng),
            domain_weight=weight,
            allow_fewer=True,  # words, where the number of classes was chosen
            check_identifiable=self.check_identifiable,
            random_state=_draw_seed(rng),
        )
        self.factorization_ = solver.fit(normalize_rows(counts)).factorization_
        self._store(self.factorization_.class_given_domain, names, weight)
        self.word_given_class_ = self.factorization_.cluster_given_class

    def _resolve_n_classes(self, counts: Array, rng: Any) -> int:
        n_words, least = np.count_nonzero(self.word_count_), self.n_classes or 2
        if n_words < least:
            raise ValueError(
                f"X has {n_words} distinct words, too few for n_classes={least}; use "
                "fewer classes or finer words"
            )
        if self.n_classes is None:
            self.rank_ = supported_rank(counts, random_state=_draw_seed(rng))
            return self.rank_.n_classes
        return int(self.n_classes)

    # ---- after the fit ------------------------------------------------------------

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

    # ---- what may come in ---------------------------------------------------------

    def _clusters_rows(self) -> bool:
        return self.representation is not None or self.n_words is not None

    def _takes_words(self) -> bool:
        return self.input == "rows" and not self._clusters_rows()

    def _input_rules(self) -> dict[str, Any]:
        if self._takes_words():
            return {"dtype": None}
        return {"accept_sparse": self.input == "counts"}

    def _as_table(self, X: Any) -> Any:
        if self._takes_words() and isinstance(X, (list, tuple)):
            return np.array(X, dtype=object)  # numpy would turn 1 beside "a" into "1"
        if self.input == "counts" and isinstance(X, np.ndarray) and X.dtype.hasobject:
            raise TypeError(
                "X has dtype object, and counts are numbers; use X.astype(int)"
            )
        return X

    def _check_rows(self, X: Any) -> Any:
        X = check_X(self, self._as_table(X), **self._input_rules())
        return check_counts(X) if self.input == "counts" else X

    def _check_settings(self) -> None:
        if self.input not in INPUTS:
            raise ValueError(f"input must be one of {INPUTS}, got {self.input!r}")
        if self.input == "counts" and self._clusters_rows():
            raise ValueError(
                "representation and n_words make words of rows: they need "
                "input='rows', got input='counts'"
            )
        named = not isinstance(self.factorizer, Factorizer)
        if named and self.factorizer not in list(METHODS):
            raise ValueError(
                f"factorizer must be one of {list(METHODS)} or a Factorizer, got "
                f"{self.factorizer!r}"
            )
        n_words, n_classes = self.n_words, self.n_classes
        if n_words is not None and (
            not is_whole(n_words)
            or n_words < 1
            or (is_whole(n_classes) and n_words < n_classes)
        ):
            raise ValueError(
                "n_words must be None or a whole number, and not below n_classes="
                f"{n_classes}, got {n_words!r}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.input != "counts"
        tags.input_tags.sparse = self.input == "counts"
        tags.input_tags.positive_only = self.input == "counts"
        tags.input_tags.string = tags.input_tags.categorical = self._takes_words()
        return tags


def _rank_of_words(
    model: Any, X: Any, codes: Array, names: Array, rng: np.random.Generator
) -> RankResult:
    """Rank of the model's own table of words by domains."""
    chosen = clone(model).set_params(n_classes=None)
    return chosen.fit(X, domains=names[codes]).rank_


def _draw_seed(rng: Any) -> int:
    """Seed for one step, so that no generator lives on in a fitted part."""
    return int(rng.randint(np.iinfo(np.int32).max))
