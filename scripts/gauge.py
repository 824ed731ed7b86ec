"""How large the house is, in numbers: ``python scripts/gauge.py`` prints them.

For ``src/shoal`` and ``src/shoal_bench``: files, lines of code (neither blank, comment
nor docstring), names in ``__all__``, the longest module, and how long functions are
(all their lines but the docstring), and how many pairs of files (or places in one file)
share six lines of code that are alike but for names, numbers and texts. At least three
of the six must call or decide something: signatures, settings and imports look alike
everywhere. Also how many of our files a ``shoal fit`` of the
penguins visits: those with a function that runs, importing not counted.

``--check`` compares with what was agreed on and ends with 1 where it is not met;
``--no-trace`` leaves the fit out.
"""

import argparse
import ast
import contextlib
import io
import keyword
import math
import os
import statistics
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGES = ("shoal", "shoal_bench")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: The most of each number that was agreed on; what has no goal is only printed.
GOALS = {
    "shoal": {
        "files": 200,
        "lines of code": 24_000,
        "names in __all__": 150,
        "longest module": 450,
        "median function": 10,
        "p90 function": 28,
        "largest function": 60,
        "files visited by fit": 70,
    },
    "shoal_bench": {
        "lines of code": 4_500,
        "longest module": 450,
        "median function": 10,
        "p90 function": 28,
        "largest function": 60,
    },
}


@dataclass(frozen=True)
class Number:
    """A number and, where it is that of one place, its place."""

    value: int
    place: str = ""


def measure(package: Path) -> dict[str, Number]:
    """All numbers of a package that can be read from its files."""
    code = n_files = names = 0
    modules, functions, shapes = [], [], {}
    for path in sorted(package.rglob("*.py")):
        text, place = path.read_text(), str(path.relative_to(package.parent))
        tree = ast.parse(text)
        n_files += 1
        code += lines_of_code(text, tree)
        names += names_offered(tree)
        shapes[place] = shape_of(text)
        modules.append(Number(len(text.splitlines()), place))
        functions += [
            Number(length(node), f"{place}:{node.name}")
            for node in ast.walk(tree)
            if isinstance(node, FUNCTIONS)
        ]
    lengths = sorted(function.value for function in functions)
    return {
        "files": Number(n_files),
        "lines of code": Number(code),
        "names in __all__": Number(names),
        "longest module": max(modules, key=lambda one: one.value),
        "median function": Number(int(statistics.median(lengths))),
        "p90 function": Number(lengths[math.ceil(0.9 * len(lengths)) - 1]),
        "largest function": max(functions, key=lambda one: one.value),
        "pairs of like logic": Number(pairs(shapes)),
    }


def lines_of_code(text: str, tree: ast.Module) -> int:
    """Lines that are neither blank, comment nor docstring."""
    documentation: set[int] = set()
    for node in ast.walk(tree):
        documentation |= set(docstring_lines(node))
    return sum(
        bool(line.strip())
        and not line.lstrip().startswith("#")
        and number not in documentation
        for number, line in enumerate(text.splitlines(), start=1)
    )


def docstring_lines(node: ast.AST) -> range:
    """Where the docstring of a module, class or function stands; empty without one."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node) is None:
        return range(0)
    first = node.body[0]
    return range(first.lineno, (first.end_lineno or first.lineno) + 1)


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function with its signature, without decorators and docstring."""
    last = node.end_lineno or node.lineno
    return last - node.lineno + 1 - len(docstring_lines(node))


def names_offered(tree: ast.Module) -> int:
    """Length of the ``__all__`` of a module."""
    return sum(
        len(node.value.elts)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        and isinstance(node.value, ast.List | ast.Tuple)
    )


# ---- places of like logic ------------------------------------------------------------

#: Lines that are compared, and how many of them must call or decide something.
RUN, ACTING = 6, 3
ACTS = {"(", "if", "for", "while", "with", "return", "yield", "raise"}
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
          tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip


def shape_of(text: str) -> list[str]:
    """Lines of code with a sign for every name, number and text, without imports."""
    lines: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            own = token.type == tokenize.OP or keyword.iskeyword(token.string)
            sign = token.string if own else tokenize.tok_name[token.type]
            lines[token.start[0]] = f"{lines.get(token.start[0], '')} {sign}"
    wordless = {"", " STRING", " )", " ]", " }"}  # docstrings, ends of calls
    kept = [line for line in lines.values() if line not in wordless]
    return [line for line in kept if not line.startswith((" from", " import"))]


def pairs(shapes: dict[str, list[str]]) -> int:
    """Pairs of files (or twice one file) that share a run of lines."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for name, lines in shapes.items():
        for first in range(len(lines) - RUN + 1):
            run = tuple(lines[first : first + RUN])
            if sum(not ACTS.isdisjoint(line.split()) for line in run) >= ACTING:
                places.setdefault(run, []).append((name, first))
    found = {
        (one, other)
        for known in places.values()
        for (one, first), (other, again) in combinations(known, 2)
        if one != other or again >= first + RUN  # not the same lines once more
    }
    return len(found)


# ---- a fit, and the files it visits --------------------------------------------------


def visited() -> list[str]:
    """Files of shoal with a function that runs in a ``shoal fit`` of the penguins."""
    from shoal.cli import main
    from shoal.datasets import load_penguins

    penguins = load_penguins(as_frame=True)
    frame = penguins.X.assign(island=penguins.domains, species=penguins.labels)
    command = "fit penguins.csv --domain island --label species --id bird --k 3"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        frame.to_csv("penguins.csv", index_label="bird")
        with traced() as found, contextlib.suppress(SystemExit):
            main([*command.split(), "--out", "run", "--quiet"])
        if not Path("run", "report.html").exists():
            raise RuntimeError(f"shoal {command} wrote no report")
    return sorted(found)


@contextlib.contextmanager
def traced() -> Iterator[set[str]]:
    """Gather the files of shoal whose functions run meanwhile, on any thread."""
    found: set[str] = set()
    home = str(SOURCE / "shoal") + os.sep

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        path = code.co_filename
        if event != "call" or path in found or not path.startswith(home):
            return
        # bodies of modules and classes have no fast locals; templates are not Python
        is_function = bool(code.co_flags & 1)
        if path.endswith(".py") and is_function and not _importing(frame):
            found.add(path)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported further up the stack."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


# ---- what is printed -----------------------------------------------------------------


def report(name: str, numbers: dict[str, Number]) -> list[str]:
    """Print the numbers of a package; the goals that it misses."""
    print(f"src/{name}")
    missed = []
    for what, number in numbers.items():
        goal = GOALS[name].get(what)
        said = "" if goal is None else f"at most {goal:,}"
        if goal is not None and number.value > goal:
            missed.append(f"src/{name}: {what} {number.value:,}, {said}")
            said += ", missed"
        print(f"  {what:<22}{number.value:>8,}  {said:<24}{number.place}".rstrip())
    return missed


def main() -> int:
    """Measure, print, and with ``--check`` judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="end with 1 if a goal is missed"
    )
    parser.add_argument("--no-trace", action="store_true", help="leave the fit out")
    options = parser.parse_args()
    missed = []
    for name in PACKAGES:
        numbers = measure(SOURCE / name)
        if name == "shoal" and not options.no_trace:
            numbers["files visited by fit"] = Number(len(visited()))
        missed += report(name, numbers)
    if options.check:
        print(*missed, sep="\n")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
