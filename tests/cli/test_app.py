"""What all commands share: help, codes, streams, lazy imports."""

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import typer
from typer.testing import CliRunner

import shoal as package
from shoal.cli import main
from shoal.cli.app import EXAMPLES, app
from shoal.cli.demo import demo
from shoal.cli.messages import CATALOGUE, CommandError
from shoal.cli.output import running


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


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["version"]])
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


@pytest.mark.parametrize(
    "command", [command for command in EXAMPLES if command is not demo]
)
def test_examples_in_help_run(command, shoal):
    """The demo's example is run in test_demo.py."""
    example = EXAMPLES[command]
    assert example in " ".join(shoal(command.__name__, "--help").stdout.split())
    result = shoal(*example.split()[1:])
    assert result.returncode == 0
    assert result.stdout
    assert result.stderr == ""


def test_exit_codes_in_help_are_the_catalogue_s(shoal):
    text = " ".join(shoal("--help").stdout.split())
    for explanation in CATALOGUE.values():
        assert re.search(rf"\b{explanation.exit_code} \w", text)


# ---- wrong usage -----------------------------------------------------------------

WRONG = {
    "unknown command": (["dmeo"], "dmeo"),
    "unknown option": (["demo", "--sed", "1"], "--sed"),
    "not a number": (["demo", "--seed", "one"], "--seed"),
    "missing value": (["demo", "--out"], "--out"),
    "missing argument": (["explain"], "code"),
    "unknown code": (["explain", "E999"], "E999"),
}


@pytest.mark.parametrize(("arguments", "named"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_and_a_hint(shoal, arguments, named):
    result = shoal(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    error, hint = result.stderr.splitlines()
    assert error.startswith("error[E002] ")
    assert named.lower() in error.lower()
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(("arguments", "named"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_document_with_json(shoal, arguments, named):
    result = shoal(*arguments[:1], "--json", *arguments[1:])
    document = json.loads(result.stdout)
    assert result.returncode == 2
    assert document["status"] == "error"
    assert document["messages"][0]["code"] == "E002"
    assert document["files"] == []


# ---- how a command ends ----------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (CommandError("E140", "cannot write", "elsewhere"), 3, "error[E140]"),
        (KeyboardInterrupt(), 130, "error[E003]"),
        (RuntimeError("odd"), 1, "error[E001] unexpected RuntimeError: odd"),
    ],
)
def test_whatever_ends_a_command_has_a_code(capsys, error, code, text):
    with pytest.raises(typer.Exit) as raised, running("toy"):
        raise error
    assert raised.value.exit_code == code
    captured = capsys.readouterr()
    assert text in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_traceback_only_with_debug(capsys):
    with pytest.raises(typer.Exit), running("toy", debug=True):
        raise RuntimeError("odd")
    assert "Traceback" in capsys.readouterr().err


def test_an_error_takes_back_data_and_files(capsys):
    def half_way() -> None:
        with running("toy", as_json=True) as output:
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
        with running("toy", **options) as output:
            output.warn("W139", "look", "there")
        return capsys.readouterr().err

    assert "\x1b[1;33m" in said()
    assert "33m" not in said(color=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "33m" not in said()


def test_warnings_make_the_status_warning(capsys):
    with running("toy", as_json=True) as output:
        output.warn("W139", "look", "there")
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "warning"
    assert "warning[W139] look" in captured.err


# ---- version and explain ---------------------------------------------------------


def test_version_says_what_runs():
    import numpy

    result = CliRunner().invoke(app, ["version", "--json"])
    data = json.loads(result.stdout)["data"]
    assert data["shoal"] == package.__version__
    assert data["numpy"] == numpy.__version__
    assert "torch" in data


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_is_explained(code: str):
    result = CliRunner().invoke(app, ["explain", code.lower()])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code}: {CATALOGUE[code].title}")
