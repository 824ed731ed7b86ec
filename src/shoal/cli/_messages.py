"""What is said: messages and their codes, values for JSON, what --redact allows."""

import errno
import inspect
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from shoal.exceptions import CodedError
from shoal.io._notation import visible

#: The words after ``shoal``, for the record of a run.
COMMAND_LINE: ContextVar[tuple[str, ...]] = ContextVar("COMMAND_LINE", default=())

#: What the system says where nothing more can be written: the disk, the share of a user
#: or the file is full.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

#: What the status of a command means to the shell.
EXIT_CODES = {
    0: "done",
    1: "bug in shoal",
    2: "wrong usage",
    3: "input or output unusable",
    4: "not answerable from these data",
    5: "optional package missing",
    6: "model problem",
    7: "done, but a check failed under --strict",
    130: "interrupted",
}

# ---- the catalogue -------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """What ``shoal explain`` says about a code; see messages.toml.

    Attributes
    ----------
    title : str
        What is the matter, in a few words.
    cause, fix : str
        Why, and what can be done about it.
    exit : int
        How a command ends that stops with this code; 0 for what lets it go on.
    safe : bool
        Whether its lines quote nothing that --redact leaves out.
    """

    title: str
    cause: str
    fix: str
    exit: int = 0
    safe: bool = False

    @property
    def text(self) -> str:
        """Cause and fix, in one paragraph."""
        return " ".join(f"{self.cause} {self.fix}".split())


@cache
def sections() -> dict[str, dict[str, Explanation]]:
    """The catalogue by its parts, in the order of a command's life."""
    text = Path(__file__).with_name("messages.toml").read_text(encoding="utf-8")
    return {
        title: {code: Explanation(**facts) for code, facts in codes.items()}
        for title, codes in tomllib.loads(text).items()
    }


@cache
def catalogue() -> dict[str, Explanation]:
    """Every code that a command can end or warn with."""
    return {code: one for codes in sections().values() for code, one in codes.items()}


# ---- messages ------------------------------------------------------------------------


@dataclass(frozen=True)
class Notice:
    """One line for the reader, and the one thing to do about it."""

    code: str
    text: str
    hint: str
    level: str = "error"

    @property
    def exit_code(self) -> int:
        """How a command ends that this message stops."""
        return catalogue()[self.code].exit


class CommandError(CodedError):
    """Ends a command with a coded message and that code's exit status."""


# ---- Numbers, arrays and tables as what JSON knows -----------------------------------


def plain(value: Any) -> Any:
    """Lists, dicts, numbers and strings; what is not a finite number becomes None."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        return plain(value.tolist())
    return str(value)


# Fields that --redact lets through, with all that is below them: numbers, names of
# columns and of domains (rare ones have lost theirs before the fit), ids and names of
# classes, codes, and sentences made of these alone. Whatever is not listed is emptied.
TOLD = frozenset(
    """
    schema command date title kind redacted versions files size unit seed seconds
    made.date made.seconds made.seed made.estimator made.scale made.parameters
    made.versions source.fingerprint source.bytes source.rows
    columns.name columns.role domain_name domain domains groups
    n_rows n_features n_classes largest_k images.formats images.width images.height
    megabytes rows_looked_at leaks repeated_rows repeated_excess
    classes class_names prevalence differences score choice sentence rank baseline curve
    time_was_up reruns neighbours cards.class_id cards.rows cards.rows_by_domain
    cards.histogram cards.sure cards.unsure cards.kept cards.features
    verdict evidence findings numbers checks limits scale
    counts unsure unlike min_confidence fit_score unknown
    n_images labels images_per_second device path bytes left_out
    """.split()
)


def allowed(content: Mapping[str, Any], below: str = "") -> dict[str, Any]:
    """A document as --redact writes and says it: what is not on the list is emptied."""
    kept = {}
    for key, value in content.items():
        field = below + key
        if field in TOLD:
            kept[key] = value
        elif any(one.startswith(f"{field}.") for one in TOLD):
            kept[key] = _allowed_inside(value, f"{field}.")
        else:
            kept[key] = type(value)() if isinstance(value, (str, list, dict)) else None
    return kept


def _allowed_inside(value: Any, below: str) -> Any:
    if isinstance(value, Mapping):
        return allowed(value, below)
    if isinstance(value, (list, tuple)):
        return [_allowed_inside(one, below) for one in value]
    return None


def read_json(path: Path) -> Any:
    """What a JSON file holds; a ValueError where it is none, however deep."""
    from shoal.io._files import refuse_special

    refuse_special(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def write_json(path: Path, content: Any) -> None:
    """A JSON file for people and programs: indented, floats in full, no NaN."""
    text = json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    # what is spelled out is the same to who reads JSON
    path.write_text(visible(text, lines=True) + "\n", encoding="utf-8")


# ---- A wrong command line, told in the form of every other error ---------------------


def usage_message(error: Any, arguments: Sequence[str]) -> Notice:
    """What an error of typer says, and the fix."""
    context = getattr(error, "ctx", None)
    declared = _declared(context, getattr(error, "param", None))
    if declared is not None:
        return _out_of_range(error, declared, arguments)
    path = context.command_path if context is not None else "shoal"
    return Notice("E002", str(error.format_message()), f"see `{path} --help`")


@dataclass(frozen=True)
class Range:
    """Numbers that an option takes."""

    whole: bool
    least: float
    most: float | None
    default: float | None

    def __str__(self) -> str:
        end = "" if self.most is None else f" to {self.most:g}"
        return f"a {'whole ' * self.whole}number from {self.least:g}{end}"

    def example(self, option: str, help_of: str) -> str:
        """One of them, as a hint."""
        some = self.default
        if some is None:
            some = self.least or None  # the least of a rate is no good one
        return (
            f"see `{help_of} --help`" if some is None else f"such as {option}{some:g}"
        )


def _declared(context: Any, option: Any) -> Range | None:
    """The range of an option as we declared it, if it has one.

    Versions of typer keep it in different places; our own signatures do not change.
    """
    callback = getattr(getattr(context, "command", None), "callback", None)
    if callback is None or option is None:
        return None
    parameter = inspect.signature(callback).parameters.get(option.name)
    kind, told = (*get_args(parameter and parameter.annotation), None, None)[:2]
    least, most = (getattr(told, end, None) for end in ("min", "max"))
    if parameter is None or least is None:
        return None
    whole = float not in (kind, *get_args(kind))
    return Range(whole, least, most, parameter.default)


def _out_of_range(error: Any, allowed: Range, arguments: Sequence[str]) -> Notice:
    """The option, the value that it got, and those that it takes."""
    option, path = error.param.opts[0], error.ctx.command_path
    typed = _typed(option, arguments)
    if typed is not None:
        text = f"{option} must be {allowed}, got {typed}"
        return Notice("E002", text, allowed.example(f"{option} ", path))
    # what nobody typed comes from a file
    key, file = option.removeprefix("--"), error.ctx.params.get("config")
    value = (error.ctx.default_map or {}).get(error.param.name)
    text = f'"{file}" has {key} = {value}, which must be {allowed}'
    return Notice("E002", text, allowed.example(f"{key} = ", path))


def _typed(name: str, arguments: Sequence[str]) -> str | None:
    """The value of an option on the command line; the last one counts."""
    found = None
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == name:
            found = after
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found
