"""Fitted estimators of several kinds, their summaries, and eyes to read pages with."""

from html.parser import HTMLParser
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax

from shoal import DiscreteMixture, DomainMixture, choose_n_classes
from shoal.analysis._bootstrap import Intervals
from shoal.base import LatentShiftEstimator
from shoal.datasets import load_penguins
from shoal.report import summarize

NAMES = ["Adelie", "Gentoo", "Chinstrap"]


class Penguins(NamedTuple):
    """A fit of the penguins with everything a report can show of it."""

    data: Any
    model: Any
    intervals: Any
    diagnosis: Any
    choice: Any
    refits: list[Any]

    def summarize(self, **changes: Any) -> dict[str, Any]:
        """Summary of everything; ``changes`` replace arguments."""
        settings = {
            "feature_names": self.data.feature_names,
            "labels": self.data.labels,
            "intervals": self.intervals,
            "diagnosis": self.diagnosis,
            "choice": self.choice,
            "refits": self.refits,
            "groups": {"Biscoe": "west", "Dream": "west", "Torgersen": "east"},
            "columns": [{"name": "species", "role": "label", "reason": "held aside"}],
            "source": {"path": "data/penguins.csv", "fingerprint": "f" * 64},
            "command": "shoal fit data/penguins.csv --domain island --out 'my run'",
            "title": "Penguins of three islands",
            "seconds": 2.5,
        }
        settings |= changes
        return summarize(self.model, self.data.X, self.data.domains, **settings)


@pytest.fixture(scope="session")
def penguins() -> Penguins:
    data = load_penguins()
    model = DomainMixture(3, search=False, random_state=0)
    model = model.fit(data.X, data.domains).set_names(NAMES)
    other = DomainMixture(3, search=False, expansion="linear", random_state=1)
    fewer = DomainMixture(2, search=False, random_state=0)
    return Penguins(
        data=data,
        model=model,
        intervals=model.bootstrap(data.X, data.domains, n_resamples=25, random_state=0),
        diagnosis=model.diagnose(data.X, data.domains, random_state=0),
        choice=choose_n_classes(data.X, data.domains, [2, 3, 4], random_state=0),
        refits=[one.fit(data.X, data.domains) for one in (other, fewer)],
    )


@pytest.fixture(scope="session")
def summary(penguins) -> dict[str, Any]:
    return penguins.summarize()


class NearestCorner(LatentShiftEstimator):
    """Classes given by their means; only the prevalences are learned, by counting."""

    def __init__(self, means: Any = None) -> None:
        self.means = means

    def fit(self, X, y=None, *, domains=None):
        names, codes = np.unique(domains if y is None else y, return_inverse=True)
        self.n_features_in_ = X.shape[1]
        self.class_weight_ = np.full(len(self.means), 1 / len(self.means))
        proba = self._class_given_x(X)
        size = np.bincount(codes)
        counts = np.zeros((len(names), len(self.means)))
        np.add.at(counts, codes, proba)
        weight = np.full(len(names), 1 / len(names))
        self._store(counts / size[:, None], names, weight)
        self.labels_ = proba.argmax(axis=1)
        return self

    def _class_given_x(self, X):
        square = (X**2).sum(axis=1)[:, None] - 2 * X @ self.means.T
        return softmax(-square - (self.means**2).sum(axis=1), axis=1)


def many_domains(n_domains: int, n_features: int, n_classes: int, rows: int = 12):
    """A fitted estimator of many domains, with its rows."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(n_classes, n_features))
    prevalence = rng.dirichlet(np.ones(n_classes), size=n_domains)
    labels = np.concatenate([rng.choice(n_classes, rows, p=p) for p in prevalence])
    domains = np.repeat([f"site {d:04d}" for d in range(n_domains)], rows)
    X = means[labels] + rng.normal(size=(len(labels), n_features))
    return NearestCorner(means).fit(X, domains), X, domains


def guess_intervals(model: Any, n_rows: int) -> Intervals:
    """Intervals of domains with ``n_rows`` rows each, from binomial draws."""
    rng = np.random.default_rng(0)
    share = model.prevalence_
    draws = np.stack([rng.multinomial(n_rows, share) / n_rows for _ in range(20)])
    return Intervals(
        prevalence=share,
        low=np.minimum(draws.min(axis=0), share),
        high=np.maximum(draws.max(axis=0), share),
        level=0.9,
        draws=draws,
        co_assignment=np.ones(n_rows * len(share)),
        domains=model.domains_,
        class_names=list(model.class_names_),
        n_rows=np.full(len(share), n_rows),
    )


@pytest.fixture(scope="session")
def thousand() -> dict[str, Any]:
    """Summary of a thousand domains, 300 features and 8 classes."""
    model, X, domains = many_domains(1000, 300, 8)
    return summarize(model, X, domains, intervals=guess_intervals(model, 12))


@pytest.fixture(scope="session")
def fourteen() -> dict[str, Any]:
    """Summary with more classes than there are colours."""
    model, X, domains = many_domains(20, 10, 14)
    return summarize(model, X, domains, intervals=guess_intervals(model, 12))


WORDS = ["boat", "fish", "net", "engine", "wheel", "brake", "the", "and", "secretword"]


def make_texts() -> tuple[Any, Any, Any, pd.DataFrame]:
    """Bags of words of five towns, two topics; the texts they come from."""
    rng = np.random.default_rng(0)
    share = np.array([[6, 6, 3, 0, 0, 0, 5, 5, 0.1], [0, 0, 0, 5, 5, 4, 5, 5, 0.1]])
    share /= share.sum(axis=1, keepdims=True)
    mix = np.linspace(0.1, 0.9, 5)
    towns = np.repeat(["Ayr", "Bude", "Cork", "Deal", "Ely"], 40)
    topic = (rng.random(len(towns)) > np.repeat(mix, 40)).astype(int)
    counts = np.array([rng.multinomial(30, share[t]) for t in topic])
    texts = [
        " ".join(rng.permutation(np.repeat(WORDS, bag))).capitalize() for bag in counts
    ]
    frame = pd.DataFrame({"text": texts, "year": 2000 + topic})
    return sparse.csr_array(counts), towns, topic, frame


@pytest.fixture(scope="session")
def texts():
    counts, towns, _, frame = make_texts()
    model = DiscreteMixture(2, input="counts", random_state=0).fit(counts, towns)
    return model, counts, towns, frame


# ---- reading pages -----------------------------------------------------------------

VOID = {"meta", "link", "input", "img", "br"}


class Node:
    """An element with its attributes and everything inside."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, dict(attributes), []

    def __getitem__(self, name):
        return self.attributes[name]

    @property
    def text(self):
        parts = [c if isinstance(c, str) else c.text for c in self.children]
        return " ".join("".join(parts).split())

    def all(self, tag=None, **wanted):
        """Elements inside with this tag and these attributes (classes: one of them)."""
        found = []
        for child in self.children:
            if isinstance(child, str):
                continue
            classes = child.attributes.get("class", "").split()
            same = all(
                value in classes
                if name == "class_"
                else child.attributes.get(name) == value
                for name, value in wanted.items()
            )
            if same and tag in (None, child.tag):
                found.append(child)
            found += child.all(tag, **wanted)
        return found

    def one(self, tag=None, **wanted):
        (found,) = self.all(tag, **wanted)
        return found


class Parser(HTMLParser):
    """Builds the tree, and complains about tags that do not match."""

    def __init__(self):
        super().__init__()
        self.stack = [Node("document", [])]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, attrs)
        self.stack[-1].children.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_endtag(self, tag):
        assert self.stack[-1].tag == tag, f"</{tag}> closes <{self.stack[-1].tag}>"
        self.stack.pop()

    def handle_data(self, data):
        self.stack[-1].children.append(data)


@pytest.fixture(scope="session")
def parse():
    """Function from HTML to the root of its tree."""

    def parse(page: str) -> Node:
        parser = Parser()
        parser.feed(page)
        parser.close()
        assert len(parser.stack) == 1
        return parser.stack[0]

    return parse
