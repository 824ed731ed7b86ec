"""Every warning and error class of shoal, so that each can be filtered by name.

Errors about arguments are plain ``ValueError`` and ``TypeError``: they name the
argument, the value got and the fix.
"""

__all__ = [
    "CollapseWarning",
    "ConstantColumnWarning",
    "DomainMissingError",
    "FoldsReducedWarning",
    "IdentifiabilityWarning",
    "SubsampleWarning",
    "ShoalWarning",
    "UnseenWordWarning",
]


class ShoalWarning(UserWarning):
    """Base class of all warnings of shoal."""


class IdentifiabilityWarning(ShoalWarning):
    """The data cannot pin down the classes asked for (A.1, A.2, A.4, no shift)."""


class CollapseWarning(ShoalWarning):
    """A class ended up with (almost) no rows."""


class ConstantColumnWarning(ShoalWarning):
    """Columns that never vary were set aside."""


class FoldsReducedWarning(ShoalWarning):
    """A domain has fewer rows than folds, so fewer folds were made."""


class SubsampleWarning(ShoalWarning):
    """A stage worked on a stated sample of the rows instead of all of them."""


class UnseenWordWarning(ShoalWarning):
    """Inputs at predict that no training row had get their domain's prevalence."""


class DomainMissingError(ValueError):
    """``fit`` or ``score`` was called without saying where each row comes from."""
