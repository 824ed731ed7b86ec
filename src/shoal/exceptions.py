"""Every warning and error class of shoal, so that each can be filtered by name.

Errors about arguments are plain ``ValueError`` and ``TypeError``: they name the
argument, the value got and the fix. Errors about files, which also people who do not
write Python meet, have a code that never changes its meaning.
"""


class ShoalWarning(UserWarning):
    """Base class of all warnings of shoal."""


class CodedWarning(ShoalWarning):
    """What reading noticed about rows, with a code that never changes its meaning.

    Attributes
    ----------
    code : str
        ``W`` and three digits; ``shoal explain CODE`` says more.
    text, hint : str
        What was noticed, and what to do about it.
    """

    def __init__(self, code: str, text: str, hint: str) -> None:
        super().__init__(f"{text}; {hint}")
        self.code, self.text, self.hint = code, text, hint


class IdentifiabilityWarning(ShoalWarning):
    """The data cannot pin down the classes asked for (A.1, A.2, A.4, no shift)."""


class CollapseWarning(ShoalWarning):
    """A class ended up with (almost) no rows."""


class CompileWarning(ShoalWarning):
    """A part of a network's training could not be compiled and runs as it is."""


class ConstantColumnWarning(ShoalWarning):
    """Columns that never vary were set aside."""


class FoldsReducedWarning(ShoalWarning):
    """A domain has fewer rows than folds, so fewer folds were made."""


class SubsampleWarning(ShoalWarning):
    """A stage worked on a stated sample of the rows instead of all of them."""


class UnseenDomainWarning(ShoalWarning):
    """Folds that leave out whole domains cannot be scored: a search chooses nothing."""


class UnseenWordWarning(ShoalWarning):
    """Inputs at predict that no training row had get their domain's prevalence."""


class DomainMissingError(ValueError):
    """``fit`` or ``score`` was called without saying where each row comes from."""


class CodedError(ValueError):
    """An error with a code, one line of text and the one thing to do about it.

    Parameters
    ----------
    code : str
        Such as ``"E107"``; see ``shoal explain CODE``.
    text : str
        What is wrong, naming the column, row or file.
    hint : str
        How to put it right.

    Examples
    --------
    >>> error = InputError("E107", 'no column "Iland"', 'nearest: "island"')
    >>> str(error)
    'no column "Iland"; nearest: "island"'
    """

    def __init__(self, code: str, text: str, hint: str) -> None:
        super().__init__(code, text, hint)  # all of it, so that copies can be made
        self.code = code
        self.text = text
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.text}; {self.hint}"


class InputError(CodedError):
    """Data that cannot be used as they are (E1xx)."""


class ModelFileError(CodedError):
    """A saved model that is damaged, foreign, too new, or does not fit the data."""
