"""50,000 documents of 20,000 words: time and memory, beside NMF on the same matrix.

    OMP_NUM_THREADS=1 python benchmarks/tabular/large_texts.py

Ten topics in twenty domains (mixes of Dirichlet 1); documents of one topic, 30 to 150
words each, of a vocabulary whose frequencies fall like 1 over the rank; a topic
multiplies each frequency by a log-normal number (1.2). Each method runs in a process of
its own: seconds of processor, and the most memory that it ever held, with the data.
`NMF` is scikit-learn's (nndsvda, 200 rounds) on the same TF-IDF as in text.py.
"""

import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from _record import Record, Run, options
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfTransformer

from shoal import CountMixture
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/large_texts.py"
METHODS = ("shoal", "NMF")
K, N_DOMAINS = 10, 20


def main() -> None:
    """Run what is missing, each method in a process of its own."""
    parser = options(__doc__, "large_texts", documents=50_000, words=20_000)
    parser.add_argument("--only", choices=METHODS)
    args = parser.parse_args()
    if args.only:
        print(json.dumps(run_once(args.only, args.documents, args.words)))
        return
    settings = {"documents": args.documents, "words": args.words}
    record = Record(args.record, COMMAND, settings, ("method",), summarize)
    sizes = ["--documents", str(args.documents), "--words", str(args.words)]

    def apart(method: str) -> Run:
        command = [sys.executable, __file__, *sizes, "--only", method]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return dict(json.loads(ended.stdout))

    record.fill([(method,) for method in METHODS], apart)


def make_texts(n_documents: int, n_words: int) -> tuple[sparse.csr_array, ...]:
    """Counts, domains and topics."""
    rng = np.random.default_rng(0)
    common = 1 / np.arange(2, n_words + 2)
    topics = common * np.exp(rng.normal(0, 1.2, (K, n_words)))
    topics /= topics.sum(axis=1, keepdims=True)
    mixes = rng.dirichlet(np.ones(K), N_DOMAINS)
    domains = np.sort(rng.integers(0, N_DOMAINS, n_documents))
    labels = np.array([rng.choice(K, p=mixes[domain]) for domain in domains])
    sizes = rng.integers(30, 151, n_documents)
    rows = np.repeat(np.arange(n_documents), sizes)
    words = np.empty(len(rows), dtype=np.int64)
    for topic in range(K):
        own = np.flatnonzero(labels[rows] == topic)
        words[own] = rng.choice(n_words, len(own), p=topics[topic])
    ones = np.ones(len(rows))
    counts = sparse.coo_array((ones, (rows, words)), shape=(n_documents, n_words))
    return counts.tocsr(), domains, labels


def run_once(method: str, n_documents: int, n_words: int) -> Run:
    """One method: what it costs, and how many documents it gets right."""
    X, domains, labels = make_texts(n_documents, n_words)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "NMF":
            tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(X)
            model = NMF(K, init="nndsvda", max_iter=200, random_state=0)
            found = model.fit_transform(tfidf).argmax(axis=1)
        else:
            ours = CountMixture(K, weighting="tfidf", random_state=0)
            found = ours.fit_predict(X, domains)
    return {
        "method": method,
        "entries": int(X.nnz),
        "cpu_seconds": round(time.process_time() - begun, 1),
        "peak_gib": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2
        ),
        "accuracy": matched_accuracy(labels, found),
    }


def summarize(runs: list[Run]) -> dict[str, dict[str, float]]:
    """What each cost."""
    keys = ("cpu_seconds", "peak_gib", "accuracy")
    return {run["method"]: {key: run[key] for key in keys} for run in runs}


if __name__ == "__main__":
    main()
