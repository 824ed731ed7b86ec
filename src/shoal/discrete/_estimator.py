"""DiscreteMixture: finitely many inputs, or topic models (Algorithms 3 and 4)."""

import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from shoal._work import one_thread
from shoal.analysis._novelty import novelty_quantiles
from shoal.analysis._rank import NO_SIGNAL, domains_differ, supported_rank
from shoal.discrete._fitted import FittedWords
from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import normalize_rows
from shoal.stages._words import (
    check_counts,
    find_words,
    single_word_bags,
    sum_by_domain,
    words_by_clustering,
)
from shoal.stages.factorize import Factorizer
from shoal.stages.factorize._estimator import METHODS
from shoal.validation import check_X, check_X_domains, resolve_domain_weight
from shoal.validation._arguments import is_whole
from shoal.validation._domains import check_n_classes

Array = np.ndarray[Any, Any]

INPUTS = ("rows", "counts")
WORDS_PER_CLASS = 3
NOVELTY_ROWS = 5_000


@dataclass(eq=False, repr=False)
class DiscreteMixture(FittedWords):
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
        domains, that the table supports against permuted domains (``rank_``).
        :func:`shoal.choose_n_classes` draws the held-out curve beside it.
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
    shoal.CountMixture : Documents, cells and bags of ONE class each, as the unit.
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

    n_classes: Any = None
    _: KW_ONLY
    input: str = "rows"
    representation: Any = None
    n_words: Any = None
    factorizer: Any = "em"
    domain_weight: Any = "equal"
    check_identifiable: bool = True
    random_state: Any = None

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


def _draw_seed(rng: Any) -> int:
    """Seed for one step, so that no generator lives on in a fitted part."""
    return int(rng.randint(np.iinfo(np.int32).max))
