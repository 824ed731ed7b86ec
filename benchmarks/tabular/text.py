"""Texts: six newsgroups dealt to domains, beside topic models and clusters.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/text.py

Words are read as `shoal fit --text` reads them, and every method gets the same counts.
BERTopic's recipe (nothing of its code): 20 singular vectors in five dimensions (by PCA,
not UMAP), HDBSCAN of at least ten texts, topics described by class-based TF-IDF and the
most similar merged until the number is reached; texts that HDBSCAN left out are given
to the topic whose words they share most.
Labels are seen by the scores alone; but weights, components and stop words were set
while looking at the scores of seeds 0 to 2, so that these are development numbers.
Records already in results/tabular/text.json are not run again.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from _real import Array, deal_rows, read
from _record import Record, options, spread
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import NMF, PCA, LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

import shoal.io
from shoal import CountMixture, choose_n_classes
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/text.py"
SETTINGS = {"alpha": 1.0, "n_rows": 2400, "n_init": 10, "n_components": 20}
DIMENSIONS, LEAST = 5, 10  # of BERTopic's recipe, as it is published


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = options(__doc__, "text", seeds=3)
    parser.add_argument("--first", type=int, default=0, help="First seed.")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds)
    record = Record(args.record, COMMAND, SETTINGS, ("n_domains", "seed"), summarize)
    record.fill([(n, seed) for seed in seeds for n in (8, 12)], run_once)


def run_once(n_domains: int, seed: int) -> dict:
    """Every method on one deal, with the number of classes given, and chosen."""
    frame = read("news6")
    labels = np.unique(frame["label"], return_inverse=True)[1]
    deal = n_domains, SETTINGS["alpha"], SETTINGS["n_rows"], seed
    which, domains = deal_rows(labels, *deal)
    rows = frame.iloc[which][["text"]].reset_index(drop=True).assign(site=domains)
    table, labels = shoal.io.read(rows, domain="site", text="text"), labels[which]
    kept = np.flatnonzero(np.diff(table.X.indptr) > 0)  # as the command line does
    X, domains, labels = table.X[kept], table.domains[kept], labels[kept]
    n_labels = len(np.unique(labels))
    accuracy, seconds = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, find_classes in methods(X, domains, n_labels, seed).items():
            begun = time.process_time()
            classes = find_classes()
            seconds[method] = time.process_time() - begun
            accuracy[method] = matched_accuracy(labels, classes)
        begun = time.process_time()
        free = CountMixture(weighting="tfidf", random_state=seed)
        choice = choose_n_classes(X, domains, estimator=free, random_state=seed)
        chosen = free.set_params(n_classes=choice.n_classes).fit(X, domains)
        seconds["shoal, k chosen"] = time.process_time() - begun
    accuracy["shoal, k chosen"] = matched_accuracy(labels, chosen.labels_)
    accuracy["labelled"] = _labelled(X, labels)
    return {
        "n_domains": n_domains,
        "seed": seed,
        "n_rows": len(labels),
        "n_words": X.shape[1],
        "k": chosen.n_classes_,
        "k_sentence": choice.sentence,
        "accuracy": accuracy,
        "seconds": seconds,
    }


def methods(
    X: Array, domains: Array, n_labels: int, seed: int
) -> dict[str, Callable[[], Array]]:
    """Ours, and what people use, on the same counts."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    svd = TruncatedSVD(SETTINGS["n_components"], random_state=seed)
    points = normalize(svd.fit_transform(tfidf))
    lda = LatentDirichletAllocation(n_labels, random_state=seed)
    nmf = NMF(n_labels, init="nndsvda", max_iter=500, random_state=seed)
    kmeans = KMeans(n_labels, n_init=SETTINGS["n_init"], random_state=seed)
    ours = CountMixture(n_labels, weighting="tfidf", random_state=seed)
    return {
        "shoal": lambda: ours.fit_predict(X, domains),
        "LDA": lambda: lda.fit_transform(X).argmax(axis=1),
        "NMF": lambda: nmf.fit_transform(tfidf).argmax(axis=1),
        "k-means on SVD": lambda: kmeans.fit_predict(points),
        "BERTopic's recipe": lambda: topics_of_clusters(points, X, n_labels, seed),
    }


def topics_of_clusters(points: Array, bags: Array, k: int, seed: int) -> Array:
    """BERTopic's recipe."""
    reduced = PCA(DIMENSIONS, random_state=seed).fit_transform(points)
    topics = HDBSCAN(min_cluster_size=LEAST, copy=True).fit_predict(reduced)
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


def _labelled(X: Array, labels: Array) -> float:
    """Accuracy of a logistic regression with labels, out of fold: a ceiling."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    found = cross_val_predict(LogisticRegression(C=10, max_iter=500), tfidf, labels)
    return float((found == labels).mean())


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per number of domains."""
    lines = []
    for n_domains in sorted({run["n_domains"] for run in runs}):
        mine = [run for run in runs if run["n_domains"] == n_domains]
        lines.append(
            {
                "n_domains": n_domains,
                "seeds": sorted(run["seed"] for run in mine),
                "k": [run["k"] for run in mine],
                "accuracy": {
                    name: spread([run["accuracy"][name] for run in mine])
                    for name in mine[0]["accuracy"]
                },
            }
        )
    return lines


if __name__ == "__main__":
    main()
