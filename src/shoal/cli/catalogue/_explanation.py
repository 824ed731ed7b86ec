"""The form of an entry of the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """What ``shoal explain`` says about a code.

    Attributes
    ----------
    title : str
        What is the matter, in a few words.
    text : str
        What it means, why it matters and what can be done.
    exit_code : int
        How a command ends that stops with this code; 0 for what lets it go on.
    """

    title: str
    text: str
    exit_code: int = 0
