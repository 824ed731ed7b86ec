"""Options: declared once, in groups, refused where they would be overlooked."""

import csv
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from shoal.cli._main import read_config
from shoal.cli._messages import COMMAND_LINE, CommandError

# ---- numbers that decide -------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """What the commands decide by; see the comments for why."""

    # ---- what is shown
    # Seconds between lines about one long stage where there is no bar to move.
    plain_every: float = 10.0
    # Before so many seconds, and so much of the work counted, a guess at the time left
    # of a stage may be off by more than a factor of two: it is not shown. Nor is it
    # where one half of what is done took so many times as long as the other, or after a
    # silence so many times as long as any before it.
    first_seconds: float = 5.0
    first_share: float = 0.05
    steady: float = 1.5
    silent: float = 2.0
    # Shares of the work that lie closer to each other are one.
    told_apart: float = 0.002
    # Columns of a file, which has no edge at which a table must break its cells.
    wide: int = 200
    # Rows of a table on the terminal; files and --json have all.
    shown_rows: int = 40
    # Of more domains than that, their spread and so many of the largest.
    largest_domains: int = 10
    # More classes would not fit beside each other with their intervals.
    most_with_intervals: int = 8
    # Columns that tell most about the domain.
    shown_leaks: int = 5

    # ---- what deserves a warning
    # A smaller fit score says that many rows are unlike anything seen.
    least_fit: float = 0.5
    # The share of rows unlike those of training that is no accident.
    many_unlike: float = 0.1

    # ---- what counts as the same
    # Classes of two fits, if so much of either lies in the other.
    same_class: float = 0.8
    # Shares: a model may be kept in single precision.
    same_share: float = 1e-6
    # The sum of shares that somebody typed, and 1.
    same_sum: float = 1e-3

    # ---- what is looked at, and guesses
    # Rows looked at for leaks and copies; more would only sharpen the second digit.
    check_rows: int = 20_000
    # Copies of the rows that a fit holds at its peak: measured on generated tables.
    copies: int = 6

    # ---- images
    # At a time: what the memory of a small device holds.
    batch: int = 1024
    # Components of the features, and rows for each: with fewer rows, domains are
    # learned by heart.
    most_components: int = 128
    rows_per_component: int = 20
    # An image is told apart from others: with one alone there is nothing to learn.
    least_images: int = 2
    # So many are written, so that a training that is killed loses a tenth of its work.
    checkpoints: int = 10
    # A step teaches the more the more often it comes: small batches suit a CPU, and
    # views of three quarters show things as large as they are, for .56 of the work.
    images_a_step: int = 512
    images_a_step_on_cpu: int = 128
    view_on_cpu: float = 0.75
    # A loss that keeps more than this share after so many epochs has not fallen.
    loss_left: float = 0.98
    epochs_to_judge: int = 5


NUMBERS = Numbers()

# ---- groups of options: dataclasses --------------------------------------------------

#: For an option that must be given.
REQUIRED: Any = MISSING


def _option(panel: str, default: Any, help: str, *names: str, **more: Any) -> Any:
    """A field that is an option, called like the field unless ``names`` say more."""
    facts = {"rich_help_panel": panel, "help": help, **more}
    return field(default=default, metadata={"names": names, "facts": facts})


READING = "Which rows and columns"
WORKING, SPEAKING = "How it works", "What it says and writes"
reading = partial(_option, READING)
working = partial(_option, WORKING)
speaking = partial(_option, SPEAKING)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Spread the dataclasses that a command takes into options of their own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if is_dataclass(hint)
    }

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        for name, group in groups.items():
            own = {one.name: _taken(one, given.pop(one.name)) for one in fields(group)}
            given[name] = group(**own)
        if any(getattr(given[name], "engine", None) == "ray" for name in groups):
            from shoal.cli._main import run_apart

            run_apart(debug=given["speech"].debug)
        command(**given)

    parameters = [
        parameter
        for name, original in inspect.signature(command).parameters.items()
        for parameter in (_options_of(groups[name]) if name in groups else [original])
    ]
    _set_signature(spread, parameters)
    return spread


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=_annotation(hints[one.name], one),
        )
        for one in fields(group)
    ]


#: What the reader's options are on a command line, which knows no arrays or tuples.
TYPES = {
    Any: str | None,
    Sequence[str]: list[str],
    Sequence[str] | None: list[str] | None,
}


def _annotation(hint: Any, declared: Any) -> Any:
    """The type of a field and its option, unless it is annotated with one already."""
    if "facts" not in declared.metadata:
        return hint
    hint = next((ours for one, ours in TYPES.items() if one == hint), hint)
    names = declared.metadata.get("names") or [f"--{declared.name.replace('_', '-')}"]
    facts = {"rich_help_panel": READING, **declared.metadata["facts"]}
    return Annotated[hint, typer.Option(*names, **facts)]


def _taken(declared: Any, value: Any) -> Any:
    """What a command gets of an option: names that were joined by commas, apart."""
    if not declared.metadata.get("joined"):
        return value
    names = split_names(value)
    if value and not names:
        option = f"--{declared.name}"
        text = f"{option} names no column"
        raise CommandError("E002", text, f"leave it out, or name one: {option} COL")
    return names or declared.default


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names given as ``a,b`` or one by one; quotes protect a comma in a name."""
    return [name for row in csv.reader(given or ()) for name in row if name]


def _set_signature(function: Any, parameters: list[inspect.Parameter]) -> None:
    # All by keyword: an option without a default may then follow one with.
    by_keyword = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in parameters
    ]
    function.__signature__ = inspect.Signature(by_keyword)
    function.__annotations__ = {one.name: one.annotation for one in by_keyword}
    del function.__wrapped__  # or typer would look behind it


# ---- options that would be overlooked in silence are refused instead -----------------


def is_typed(option: str) -> bool:
    """Whether an option stands on the command line.

    One in a file of options (``--config``) may be meant for other commands.
    """
    words = COMMAND_LINE.get()
    return any(word == option or word.startswith(f"{option}=") for word in words)


def refuse_idle(
    given: Mapping[str, bool], why: str, hint: str = "leave it out"
) -> None:
    """Raise E002 for the first option that was typed."""
    for option, is_given in given.items():
        if is_given and is_typed(option):
            raise CommandError("E002", f"{option} {why}", hint)


# ---- groups that many commands share -------------------------------------------------

#: Of --encoder: no network.
NONE = "none"
# What is computed without a network is computed there anyway.
HONOURED = ("auto", "cpu")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What all computing commands share."""

    seed: int = working(0, "Seed of all chance.", min=0)
    threads: int | None = working(
        None, "All cores if not given; changes no result.", min=1
    )

    @property
    def n_jobs(self) -> int:
        """As estimators take it."""
        return -1 if self.threads is None else self.threads

    by = "auto"

    @property
    def looks(self) -> bool:
        """Whether classes are told apart by how rows look alone."""
        return False


#: Of --by: what tells classes apart.
AUTO, SHIFT, LOOKS = "auto", "shift", "looks"


@dataclass(frozen=True, kw_only=True)
class Learning(Work):
    """The same, where classes are learned."""

    by: str = working(
        AUTO,
        "What tells classes apart: how domains shift, how rows look, or what held-out "
        "rows say of both.",
        metavar="auto|shift|looks",
    )

    @property
    def looks(self) -> bool:
        """Whether classes are told apart by how rows look."""
        if self.by not in (AUTO, SHIFT, LOOKS):
            text = f'by must be {AUTO}, {SHIFT} or {LOOKS}, got "{self.by}"'
            raise CommandError("E002", text, f"write --by {LOOKS}, or leave it out")
        return self.by == LOOKS


@dataclass(frozen=True, kw_only=True)
class Classes:
    """How many classes."""

    k: str = working("auto", "Number of classes; auto chooses it.", metavar="N|auto")

    @property
    def number(self) -> int | None:
        """None where it is to be chosen."""
        if self.k == "auto":
            return None
        if not self.k.isdecimal() or int(self.k) < 2:
            text = f'k must be a whole number from 2, or auto, got "{self.k}"'
            hint = "run `shoal choose DATA` to see which numbers the data support"
            raise CommandError("E002", text, hint)
        return int(self.k)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a network computes."""

    device: str = working("auto", "For images: auto, cpu, cuda or cuda:1.")


@dataclass(frozen=True, kw_only=True)
class Encoder(Machine):
    """The network that turns images into columns."""

    encoder: str = working(
        NONE,
        "For images: efficientnet-lite0, the folder that `shoal pretrain` wrote, or "
        "weights. For texts: use-multilingual.",
        metavar="none|NAME|PATH",
    )
    size: int | None = reading(None, "Pixels a side; as in the training.", min=4)

    @property
    def encodes(self) -> bool:
        """Whether there is one, of images or of texts."""
        return self.encoder != NONE

    @property
    def of_texts(self) -> str | None:
        """The encoder of texts that is asked for, if it is one."""
        if not self.encodes:
            return None
        from shoal.io._sentences import SENTENCES

        return self.encoder if self.encoder in SENTENCES else None

    @property
    def given(self) -> bool:
        """Whether there is one of images."""
        return self.encodes and self.of_texts is None

    @property
    def learns(self) -> bool:
        """Whether it is trained as well."""
        return False

    def plan(self) -> dict[str, Any]:
        """The stages that an encoder adds to a fit, or renames: before it, after it."""
        if self.of_texts:
            return {"read": f"reading, and encoding the texts ({self.encoder})"}
        if not self.given:
            return {}
        from shoal.cli._networks import plan_images

        return plan_images(self)

    def embed(self, output: Any, table: Any, **how: Any) -> Any:
        """The table of the images' features and the network that made them, if any."""
        if not self.given:
            return table, None
        from shoal.cli._networks import with_features

        return with_features(output, table, self, **how)

    def refuse_unused(self) -> None:
        """Raise E002 for options of a network where --encoder names none."""
        if self.given:
            return
        given = {
            "--fine-tune": self.learns,
            "--size": self.size is not None,
            "--device": self.device not in HONOURED,
        }
        hint = "leave it out, or name a network with --encoder"
        refuse_idle(given, "is for the network that --encoder names", hint)


@dataclass(frozen=True, kw_only=True)
class TunedEncoder(Encoder):
    """The same, where it may learn."""

    fine_tune: bool = working(False, "For images: train the network end to end too.")

    @property
    def learns(self) -> bool:
        """Whether it is trained as well."""
        return self.fine_tune


#: What --plain-csv does.
PLAIN_CSV = "CSV cells as they are, also those that a spreadsheet would run."


@dataclass(frozen=True, kw_only=True)
class Results:
    """Where results go."""

    # options of those below alone
    redact = plain_csv = False

    out: Path | None = speaking(None, "Folder for the results.", metavar="DIR")
    force: bool = speaking(False, "Overwrite what is in the way.")


@dataclass(frozen=True, kw_only=True)
class CsvResults(Results):
    """The same, where tables are among them."""

    plain_csv: bool = speaking(False, PLAIN_CSV)


@dataclass(frozen=True, kw_only=True)
class SafeResults(Results):
    """The same, where they may have to be kept from strangers."""

    redact: bool = speaking(
        False, "No rows, ids, words or rare values in what is written."
    )


@dataclass(frozen=True, kw_only=True)
class TableResults(CsvResults, SafeResults):
    """Both."""


@dataclass(frozen=True, kw_only=True)
class Speech:
    """How a command speaks."""

    as_json: bool = speaking(
        False, "Print one JSON document instead of tables.", "--json"
    )
    quiet: bool = speaking(
        False, "Print nothing but errors (and --json).", "--quiet", "-q"
    )
    verbose: bool = speaking(
        False, "Lines instead of a bar, with memory.", "--verbose", "-v"
    )
    no_color: bool = speaking(False, "No colour; NO_COLOR does the same.")
    strict: bool = speaking(False, "End with exit code 7 if anything warned.")
    debug: bool = speaking(False, "Show tracebacks and libraries' warnings.")
    config: Path | None = speaking(
        None,
        "TOML file with options; the command line wins.",
        metavar="FILE",
        is_eager=True,
        callback=read_config,
    )
