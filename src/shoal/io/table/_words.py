"""Running text as bags of words, but those that say nothing about any text.

Function words are left out of the words that are counted if the texts are in one of a
few languages, which the function words themselves tell: in running text they are every
third word. Texts of any other language keep all of their words but those that most
rows share.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shoal.io._settings import READING

# A word is a run of two or more letters and digits of any alphabet, in lower case, at
# least one of them a letter: J45 and HbA1c are words, 2024 is none. Kept are words that
# occur in at least two rows and in at most half of them, and of those the 20,000 most
# frequent (ties in alphabetical order). Function words of the language that the texts
# are in are left out, if it is one that is known. Languages written without spaces need
# a segmenter first.
WORD = r"(?u)\b(?=\w*[^\W\d_])\w{2,}\b"


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
    most = READING.max_share_of_word * len(texts)
    total = np.asarray(table.sum(axis=0)).ravel()
    words = counter.get_feature_names_out()
    silent = stop_words(dict(zip(words, total, strict=True)))
    says = np.array([word not in silent for word in words])
    kept = np.flatnonzero((rows >= READING.min_rows_of_word) & (rows <= most) & says)
    frequent = kept[np.argsort(-total[kept], kind="stable")[: READING.max_words]]
    return tuple(words[np.sort(frequent)].tolist())


def count_words(texts: Sequence[str], vocabulary: Sequence[str]) -> Any:
    """Bags as a CSR array of shape (n_texts, n_words)."""
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        token_pattern=WORD, vocabulary=list(vocabulary), dtype=np.float64
    )
    return sparse.csr_array(counter.transform(texts))


# ---- the language of a text ----------------------------------------------------------


@cache
def function_words() -> dict[str, frozenset[str]]:
    """The function words of each language that is known; see stopwords.toml."""
    text = Path(__file__).with_name("stopwords.toml").read_text(encoding="utf-8")
    return {name: frozenset(own.split()) for name, own in tomllib.loads(text).items()}


def find_language(counts: Mapping[str, float]) -> str | None:
    """The language of texts, by how often each word occurs; None where none is clear.

    >>> from collections import Counter
    >>> text = "the cat and the dog are not in the house of the king " * 50
    >>> find_language(Counter(text.split()))
    'English'
    >>> find_language({"ENSG01": 3, "ENSG02": 5}) is None
    True
    """
    total = sum(counts.values())
    if total < READING.words_of_language:
        return None
    shares = {
        language: sum(counts.get(word, 0) for word in own) / total
        for language, own in function_words().items()
    }
    best, second = sorted(shares.values(), reverse=True)[:2]
    if best < READING.function_words or best < READING.clearly_more * second:
        return None
    return max(shares, key=shares.__getitem__)


def stop_words(counts: Mapping[str, float]) -> frozenset[str]:
    """The function words of the language that words are of; none if it is not clear."""
    language = find_language(counts)
    return function_words()[language] if language else frozenset()
