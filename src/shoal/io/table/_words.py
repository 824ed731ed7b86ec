"""Text as bags of words.

A word is a run of two or more letters and digits of any alphabet, in lower case, at
least one of them a letter: J45 and HbA1c are words, 2024 is none. Kept are words that
occur in at least two rows and in at most half of them, and of those the 5,000 most
frequent (ties in alphabetical order). There is no list of stop words, which would be of
one language: words that most rows share fall to the second rule. Languages written
without spaces need a segmenter first.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

WORD = r"(?u)\b(?=\w*[^\W\d_])\w{2,}\b"
MIN_ROWS = 2
MAX_SHARE = 0.5
MAX_WORDS = 5_000


def learn_vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """The words worth counting, in alphabetical order.

    >>> learn_vocabulary(["One fish", "two fishes, red", "red fish", "blue sea", "Sea"])
    ('fish', 'red', 'sea')
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(token_pattern=WORD, dtype=np.float64)
    try:
        table = counter.fit_transform(texts)
    except ValueError:  # not a single word
        return ()
    rows = np.bincount(table.indices, minlength=table.shape[1])
    kept = np.flatnonzero((rows >= MIN_ROWS) & (rows <= MAX_SHARE * len(texts)))
    total = np.asarray(table.sum(axis=0)).ravel()
    frequent = kept[np.argsort(-total[kept], kind="stable")[:MAX_WORDS]]
    words = counter.get_feature_names_out()
    return tuple(words[np.sort(frequent)].tolist())


def count_words(texts: Sequence[str], vocabulary: Sequence[str]) -> Any:
    """Bags as a CSR array of shape (n_texts, n_words)."""
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        token_pattern=WORD, vocabulary=list(vocabulary), dtype=np.float64
    )
    return sparse.csr_array(counter.transform(texts))
