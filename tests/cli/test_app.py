"""What all commands share: help, codes, streams, lazy imports."""

import io
import json
import re
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import shoal as package
from shoal.cli import main
from shoal.cli._app import EXAMPLES, app
from shoal.cli._messages import EXIT_CODES, CommandError, catalogue
from shoal.cli._options import Speech
from shoal.cli._output import running
from shoal.cli._tables import prevalence_table
from shoal.exceptions import CodedWarning, CollapseWarning, CompileWarning, InputError


def modules_after(code: str) -> set[str]:
    """Modules loaded by some code in a fresh interpreter."""
    code += "\nimport sys; print('MODULES', *sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.partition("MODULES")[2].split())


HELP = """
from shoal.cli import main
try:
    main({arguments})
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["version"]])
def test_help_needs_no_numerical_library(arguments: list[str]):
    loaded = modules_after(HELP.format(arguments=arguments))
    assert not loaded & {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "torch"}


def test_import_is_lazy_and_names_are_found():
    assert "sklearn" not in modules_after("import shoal")
    code = "from shoal import DDFA, DiscreteMixture, DomainMixture"
    loaded = modules_after(code)
    assert "sklearn" in loaded
    assert not loaded & {"torch", "typer", "skops", "matplotlib"}


def test_every_public_name_exists():
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'KMeans'"):
        _ = package.KMeans


def test_console_script_is_main():
    scripts = entry_points(group="console_scripts", name="shoal")
    assert [script.load() for script in scripts] == [main]


def test_no_arguments_show_the_help(shoal):
    result = shoal()
    assert result.returncode == 0
    for command in EXAMPLES:
        assert command.__name__ in result.stdout


def test_every_example_is_in_its_help(cli):
    for command, example in EXAMPLES.items():
        shown = cli(command.__name__, "--help").stdout
        assert example in " ".join(shown.replace("│", " ").split())


def test_exit_codes_are_in_the_help(cli):
    text = " ".join(cli("--help").stdout.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in text


# ---- wrong usage -----------------------------------------------------------------

WRONG = {
    "unknown command": (["dmeo"], "dmeo"),
    "unknown option": (["fit", "--sed", "1"], "--sed"),
    "not a number": (["fit", "x.csv", "--seed", "one"], "--seed"),
    "missing value": (["fit", "--out"], "--out"),
    "no data": (["fit"], "DATA"),
    "missing argument": (["explain"], "code"),
    "unknown code": (["explain", "E999"], "E999"),
}


@pytest.mark.parametrize(("arguments", "named"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_and_a_hint(cli, arguments, named):
    result = cli(*arguments)
    assert result.code == 2
    assert result.stdout == ""
    error, hint = result.stderr.splitlines()
    assert error.startswith("error[E002] ")
    assert named.lower() in error.lower()
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(("arguments", "named"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_document_with_json(cli, arguments, named):
    result = cli(*arguments[:1], "--json", *arguments[1:])
    document = json.loads(result.stdout)
    assert result.code == 2
    assert document["status"] == "error"
    assert document["messages"][0]["code"] == "E002"
    assert document["files"] == []


RANGES = {
    "fit x --level 90": ("--level must be a number from 0.01 to 0.999, got 90", "0.9"),
    "fit x --level=90": ("--level must be a number from 0.01 to 0.999, got 90", "0.9"),
    "fit x --bootstrap 1": ("--bootstrap must be a whole number from 2, got 1", "200"),
    "fit x --seed -1": ("--seed must be a whole number from 0, got -1", "0"),
    "fit x --seed one": ("--seed must be a whole number from 0, got one", "0"),
    "fit x --sample 1": ("--sample must be a whole number from 2, got 1", "2"),
    "predict m x --min-confidence 2": (
        "--min-confidence must be a number from 0 to 1, got 2", "0.8"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("command", "said"), RANGES.items(), ids=RANGES)
def test_a_value_out_of_range_is_told_with_the_range(cli, command, said):
    result = cli(*command.split())
    option = said[0].split()[0]
    assert result.code == 2
    assert result.stderr.splitlines() == [
        f"error[E002] {said[0]}",
        f"hint: such as {option} {said[1]}",
    ]


# ---- how a command ends ----------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (CommandError("E140", "cannot write", "elsewhere"), 3, "error[E140]"),
        (InputError("E101", "no file\n", "look"), 3, "error[E101] no file\nhint: look"),
        (InputError("E999", "new", "look"), 1, "error[E001] new"),
        (KeyboardInterrupt(), 130, "error[E003]"),
        (RuntimeError("odd"), 1, "error[E001] unexpected RuntimeError: odd"),
    ],
)
def test_whatever_ends_a_command_has_a_code(capsys, error, code, text):
    with pytest.raises(typer.Exit) as raised, running("toy", Speech()):
        raise error
    assert raised.value.exit_code == code
    captured = capsys.readouterr()
    assert text in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_traceback_only_with_debug(capsys):
    with pytest.raises(typer.Exit), running("toy", Speech(debug=True)):
        raise RuntimeError("odd")
    assert "Traceback" in capsys.readouterr().err


def test_an_error_takes_back_data_and_files(capsys):
    def half_way() -> None:
        with running("toy", Speech(as_json=True)) as output:
            output.data = {"half": "done"}
            output.show("not for stdout")
            raise CommandError("E140", "cannot write", "elsewhere")

    with pytest.raises(typer.Exit):
        half_way()
    document = json.loads(capsys.readouterr().out)
    assert document["data"] == {}
    assert document["messages"] == [
        {
            "code": "E140",
            "level": "error",
            "text": "cannot write",
            "hint": "elsewhere",
        }
    ]


def test_colour_only_when_wanted(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def said(**options) -> str:
        with running("toy", Speech(**options)) as output:
            output.warn("W139", "look", "there")
        return capsys.readouterr().err

    assert "\x1b[1;33m" in said()
    assert "33m" not in said(no_color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "33m" not in said()


def test_warnings_make_the_status_warning(capsys):
    with running("toy", Speech(as_json=True)) as output:
        output.warn("W139", "look", "there")
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "warning"
    assert "warning[W139] look" in captured.err


def test_strict_turns_warnings_into_exit_7(capsys):
    with (
        pytest.raises(typer.Exit) as raised,
        running("toy", Speech(strict=True)) as output,
    ):
        output.warn("W139", "look", "there")
    assert raised.value.exit_code == 7
    with running("toy", Speech(strict=True)):
        pass


def test_warnings_with_a_code_keep_it(capsys):
    with running("toy", Speech(as_json=True)):
        said = CodedWarning("W143", "a value is new", "look at it")
        warnings.warn(said, stacklevel=1)
    (message,) = json.loads(capsys.readouterr().out)["messages"]
    assert (message["code"], message["text"]) == ("W143", "a value is new")
    assert str(said) == "a value is new; look at it"


def test_warnings_of_estimators_are_coded_and_said_once(capsys):
    with running("toy", Speech(as_json=True)):
        for _ in range(2):
            warnings.warn("class 2 is empty", CollapseWarning, stacklevel=1)
        warnings.warn("numpy has moved on", DeprecationWarning, stacklevel=1)
    captured = capsys.readouterr()
    assert [one["code"] for one in json.loads(captured.out)["messages"]] == ["W161"]
    assert captured.err.count("class 2 is empty") == 1
    assert "numpy" not in captured.err


def test_what_could_not_be_compiled_is_no_remark_about_the_fit(capsys):
    text = "compile=True failed for step (ValueError: no); pass compile=False"
    with running("toy", Speech()):
        warnings.warn(text, CompileWarning, stacklevel=1)
    error = capsys.readouterr().err
    assert "warning[W161] compile=True failed for step (ValueError: no)\n" in error
    assert "hint: nothing: the results are the same" in error


# ---- version and explain ---------------------------------------------------------


def test_version_says_what_runs():
    import numpy

    result = CliRunner().invoke(app, ["version", "--json"])
    data = json.loads(result.stdout)["data"]
    assert data["shoal"] == package.__version__
    assert data["numpy"] == numpy.__version__
    assert "torch" in data


@pytest.mark.parametrize("code", catalogue())
def test_every_code_is_explained(code: str):
    result = CliRunner().invoke(app, ["explain", code.lower()])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code}: {catalogue()[code].title}")


def test_a_reader_who_leaves_early_is_no_error():
    command = [sys.executable, "-m", "shoal", "version"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert said == b""


# ---- large tables ----------------------------------------------------------------


def shares_of(n_domains: int, n_classes: int, place: str = "site") -> list[dict]:
    """Records of prevalence.csv."""
    return [
        {
            "domain": f"{place}{domain}",
            "class_id": f"c{index}",
            "class_name": f"c{index}",
            "estimate": 0.125,
            "lo": 0.05,
            "hi": 0.25,
            "level": 0.9,
            "n_rows": 10,
            "flag": "",
        }
        for domain in range(n_domains)
        for index in range(n_classes)
    ]


@pytest.mark.parametrize(
    ("width", "n_classes", "cell", "shown"),
    [
        (100, 3, "12.5% (5-25)", 3),
        (80, 6, "(5-25)", 6),
        (90, 8, "12.5%", 8),
        (80, 30, "12.5%", 7),
        (30, 8, "12.5%", 1),
    ],
)
def test_a_terminal_is_never_too_narrow(width, n_classes, cell, shown):
    """Intervals go below their share, then to the file; then classes do."""
    place = "hospital number " * (n_classes > 3)
    table = prevalence_table(shares_of(40, n_classes, place), "site")
    lines = printed(table, width)
    heads = next(line for line in lines if "c0" in " ".join(line))
    assert [word for word in re.split(r"\W+", " ".join(heads)) if word[:1] == "c"] == [
        f"c{index}" for index in range(shown)
    ]
    assert sum(line[2:] == [cell] * shown for line in lines) == 40
    text = " ".join(" ".join(line) for line in lines)
    assert "…" not in text
    assert ("with 90% intervals" in text) == ("(" in cell)
    left = n_classes - shown
    assert (f"{left} more class" in text) == (left > 0)
    assert ("prevalence.csv has the intervals" in text) == (
        "(" not in cell and n_classes <= 8
    )


def printed(table: Any, width: int = 100) -> list[list[str]]:
    """The words of each line of a table, as a terminal shows them."""
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


@pytest.mark.parametrize("thin", ["none", "some", "all"])
def test_thousands_of_domains_are_told_by_their_spread(thin: str):
    """Not by the first of them; single ones where their shares can be read."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1, 1], 2_000)
    flags = {"none": 0, "some": 1_995, "all": 2_000}[thin]
    records = [
        {
            "domain": f"site{domain}",
            "class_id": f"c{index}",
            "class_name": f"c{index}",
            "estimate": shares[domain, index],
            "lo": 0.0,
            "hi": 1.0,
            "level": 0.9,
            "n_rows": 100 + domain,
            "flag": "thin" if domain < flags else "",
        }
        for domain in range(2_000)
        for index in range(2)
    ]
    lines = printed(prevalence_table(records, "site"))
    assert lines[0] == ["Share of each class in 2,000 domains"]
    cells = {line[0]: line[2:] for line in lines if len(line) == 4}
    for name, row in {
        "average of all": shares.mean(axis=0),
        "a tenth are below": np.quantile(shares, 0.1, axis=0),
        "nine tenths are below": np.quantile(shares, 0.9, axis=0),
    }.items():
        assert cells[name] == [f"{100 * share:.1f}%" for share in row]
    single = [name for name in cells if re.fullmatch(r"site\d+", name)]
    n_shown = {"none": 10, "some": 5, "all": 0}[thin]
    assert single == [f"site{1999 - place}" for place in range(n_shown)]
    text = " ".join(line[0] for line in lines[-2:])
    assert text.endswith("prevalence.csv has all.")
    assert ("with 90% intervals" in text) == (thin != "all")
    assert ("No domain has rows enough" in text) == (thin == "all")
    assert ("the 5 largest that are not thin" in text) == (thin == "some")
