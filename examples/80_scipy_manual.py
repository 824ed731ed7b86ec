"""SciPy's manual: pages of five subjects found from their words alone.

Every page is a piece of the documentation of one function, its label the subpackage.
Twelve imaginary readers took home pages in different proportions (the one thing here
that is planted); shoal sees who took which page and the words on it, finds the subjects
and tells them by their words.

    python examples/80_scipy_manual.py
"""

import inspect
from importlib import import_module

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer

from shoal import DiscreteMixture
from shoal.datasets import draw_prevalence, plan_domains, take
from shoal.metrics import matched_accuracy

SUBJECTS = ("stats", "special", "signal", "optimize", "linalg")
PARAGRAPHS = 3  # a page


def pages_of(subject: str) -> list[str]:
    """Prose of a subpackage, a few paragraphs a page; code is left out."""
    package = import_module(f"scipy.{subject}")
    pages = []
    for name in package.__all__:
        text = inspect.getdoc(getattr(package, name)) or ""
        prose = [p for p in text.split("\n\n") if len(p) > 80 and ">>>" not in p]
        starts = range(0, len(prose), PARAGRAPHS)
        pages += [" ".join(prose[i : i + PARAGRAPHS]) for i in starts]
    return pages


manual = {subject: pages_of(subject) for subject in SUBJECTS}
labels = np.repeat(SUBJECTS, [len(pages) for pages in manual.values()])
vectorizer = CountVectorizer(
    min_df=5, max_df=0.2, token_pattern="[a-z]{3,}", stop_words="english"
)
counts = vectorizer.fit_transform(sum(manual.values(), []))
words = vectorizer.get_feature_names_out()
with_words = np.diff(counts.indptr) > 0
counts, labels = counts[with_words], labels[with_words]

mixes = draw_prevalence(len(SUBJECTS), 12, alpha=1.0, max_condition=20, random_state=0)
readers = plan_domains(labels, mixes, valid_share=0, random_state=0)
X, domains = take(readers, counts, "train")
truth = readers.labels(labels, "train")

model = DiscreteMixture(len(SUBJECTS), input="counts", random_state=0).fit(X, domains)
print(f"{X.shape[0]} pages, {X.shape[1]} words, {len(model.domains_)} readers")
found = matched_accuracy(truth, model.labels_)
alone = KMeans(len(SUBJECTS), n_init=10, random_state=0).fit_predict(X)
print(f"right subject: shoal {found:.3f}, k-means {matched_accuracy(truth, alone):.3f}")

of_class = model.word_given_class_
over = of_class - of_class.mean(axis=0)  # more frequent than in the other classes
for number, weights in enumerate(over):
    top = words[np.argsort(-weights)[:8]]
    print(f"c{number}: {', '.join(top)}")
