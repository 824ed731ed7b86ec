"""Messages: a code, one line for the reader, and the one thing to do about it.

The long text of a code is in :mod:`shoal.cli.catalogue`.
"""

from dataclasses import asdict, dataclass

from shoal.cli.catalogue import CATALOGUE, EXIT_CODES, Explanation
from shoal.exceptions import CodedError

__all__ = ["CATALOGUE", "EXIT_CODES", "CommandError", "Explanation", "Message"]


@dataclass(frozen=True)
class Message:
    """One line for the reader, and the one thing to do about it."""

    code: str
    text: str
    hint: str
    level: str = "error"

    @property
    def exit_code(self) -> int:
        """How a command ends that this message stops."""
        return CATALOGUE[self.code].exit_code

    def to_dict(self) -> dict[str, str]:
        """Its entry in the JSON document."""
        return asdict(self)


class CommandError(CodedError):
    """Ends a command with a coded message and that code's exit status."""
