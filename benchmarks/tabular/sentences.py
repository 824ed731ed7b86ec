"""Texts as points of a sentence encoder: six newsgroups, beside BERTopic's recipe.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/sentences.py

The deals of text.py, seeds 3 to 5, and in place of words the points of
"use-multilingual" (extra `text`). Compared, with the number of classes given: `shoal
fit --encoder use-multilingual`; k-means; and BERTopic's recipe, if umap-learn is
installed, on the points and on 20 singular vectors of the words: five dimensions by
UMAP, HDBSCAN (at least ten texts), topics described by class-based TF-IDF and the most
similar merged until the number is reached, texts that HDBSCAN left out given to the
topic whose words they share most. `labelled` is a logistic regression with labels, out
of fold. The weighting of points was set while looking at seeds 0 to 2.
"""

import sys
import time
import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
from _real import Array, deal_rows, read
from _record import Record, Run, options, spread
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

import shoal.io
from shoal import CountMixture
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/sentences.py"
SETTINGS = {
    "encoder": "use-multilingual",
    "alpha": 1.0,
    "n_rows": 2400,
    "n_init": 10,
    "n_components": 20,
}
NEIGHBOURS, DIMENSIONS, LEAST = 15, 5, 10


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = options(__doc__, "sentences", seeds=3, first=3)
    args = parser.parse_args()
    record = Record(args.record, COMMAND, SETTINGS, ("n_domains", "seed"), summarize)
    seeds = range(args.first, args.first + args.seeds)
    record.fill([(n, seed) for seed in seeds for n in (8, 12)], run_once)


@cache
def read_once() -> tuple[Array, Array, Array, float]:
    """Points, counts of words and labels of all texts, and seconds of the encoder."""
    frame = read("news6")
    begun = time.process_time()
    how = {"domain": "label", "text": "text", "encoder": SETTINGS["encoder"]}
    table = shoal.io.read(frame, **how)
    seconds = time.process_time() - begun
    labels = np.unique(frame["label"], return_inverse=True)[1]
    return table.X, table.described[0], labels, seconds


def run_once(n_domains: int, seed: int) -> Run:
    """Every method on one deal."""
    points, counts, labels, seconds = read_once()
    deal = n_domains, SETTINGS["alpha"], SETTINGS["n_rows"], seed
    which, domains = deal_rows(labels, *deal)
    X, bags, labels = points[which], counts[which], labels[which]
    k = len(np.unique(labels))
    kmeans = KMeans(k, n_init=SETTINGS["n_init"], random_state=seed)
    ours = CountMixture(k, weighting="points", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            "shoal, encoder": ours.fit_predict(X, domains),
            "k-means on points": kmeans.fit_predict(X),
        }
        if find_spec("umap"):
            words = singular_vectors(bags, seed)
            found["BERTopic's recipe"] = topics_of_clusters(X, bags, k, seed)
            found["its recipe on words"] = topics_of_clusters(words, bags, k, seed)
        guess = LogisticRegression(C=10, max_iter=500)
        found["labelled"] = cross_val_predict(guess, X, labels)
    accuracy = {name: matched_accuracy(labels, one) for name, one in found.items()}
    accuracy["labelled"] = float((found["labelled"] == labels).mean())
    return {
        "n_domains": n_domains,
        "seed": seed,
        "n_rows": len(labels),
        "spoke": ours.route_.by,
        "texts_a_cpu_second": round(len(points) / seconds, 1),
        "accuracy": accuracy,
    }


def singular_vectors(bags: Array, seed: int) -> Array:
    """Words as text.py gives them to k-means."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(bags)
    svd = TruncatedSVD(SETTINGS["n_components"], random_state=seed)
    return normalize(svd.fit_transform(tfidf))


def topics_of_clusters(X: Array, bags: Array, k: int, seed: int) -> Array:
    """BERTopic's recipe; nothing of its code."""
    # its numba would take the study of that name beside this one for a package
    sys.modules.setdefault("coverage", None)  # type: ignore[arg-type]
    from umap import UMAP

    reduced = UMAP(
        NEIGHBOURS, DIMENSIONS, min_dist=0.0, metric="cosine", random_state=seed
    ).fit_transform(X)
    topics = HDBSCAN(min_cluster_size=LEAST).fit_predict(reduced)
    while len(np.unique(topics[topics >= 0])) > k:
        names, words = class_words(bags, topics)
        size = np.array([(topics == name).sum() for name in names])
        least = int(size.argmin())
        like = cosine_similarity(words[[least]], words)[0]
        like[least] = -1
        topics[topics == names[least]] = names[int(like.argmax())]
    names, words = class_words(bags, topics)
    lost = topics < 0
    if lost.any() and len(names):
        near = cosine_similarity(bags[lost], words).argmax(axis=1)
        topics[lost] = names[near]
    return topics


def class_words(bags: Array, topics: Array) -> tuple[Array, Array]:
    """Topics, and class-based TF-IDF of their words."""
    names = np.unique(topics[topics >= 0])
    counts = np.array([bags[topics == name].sum(axis=0) for name in names])
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    mean = counts.sum() / len(names)
    return names, share * np.log1p(mean / np.maximum(counts.sum(axis=0), 1))


def summarize(runs: list[Run]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per number of domains."""
    lines = []
    for n_domains in sorted({run["n_domains"] for run in runs}):
        mine = [run for run in runs if run["n_domains"] == n_domains]
        found = {
            name: spread([run["accuracy"][name] for run in mine])
            for name in mine[0]["accuracy"]
        }
        seeds = sorted(run["seed"] for run in mine)
        lines.append({"n_domains": n_domains, "seeds": seeds, "accuracy": found})
    return lines


if __name__ == "__main__":
    main()
