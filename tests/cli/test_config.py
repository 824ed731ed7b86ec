"""Options from shoal.toml; the command line wins."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from shoal.cli._options import Speech, Work, split_names, with_groups
from shoal.io._options import FileOptions, ReadOptions, SourceOptions


def make_app(seen: dict[str, Any]) -> Any:
    """Two commands that only note what they were given."""
    app = typer.Typer()

    @app.command()
    @with_groups
    def fit(
        source: ReadOptions,
        work: Work,
        speech: Speech,
        k: Annotated[str, typer.Option("--k")] = "auto",
    ) -> None:
        seen.update(source=source, work=work, speech=speech, k=k)

    @app.command()
    @with_groups
    def choose(work: Work, speech: Speech) -> None:
        seen.update(work=work, speech=speech)

    return get_command(app)


def run(tmp_path: Path, text: str, *arguments: str) -> dict[str, Any]:
    (tmp_path / "shoal.toml").write_text(text)
    seen: dict[str, Any] = {}
    given = [*arguments, "--config", str(tmp_path / "shoal.toml")]
    make_app(seen).main(given, standalone_mode=False)
    return seen


def test_keys_are_options_and_the_command_line_wins(tmp_path: Path):
    text = """
    domain = "island"
    seed = 7
    drop-missing-domain = true
    features = ["a", "b,c"]
    na = "none"
    [fit]
    k = 3
    merge_small = "other"
    """
    seen = run(tmp_path, text, "fit", "--seed", "8")
    assert seen["source"].domain == "island"
    assert seen["source"].drop_missing_domain is True
    assert seen["source"].features == ["a", "b", "c"]
    assert seen["source"].na == ["none"]
    assert seen["source"].merge_small == "other"
    assert seen["work"].seed == 8
    assert seen["k"] == "3"


def test_flags_in_the_file_count(tmp_path: Path):
    seen = run(tmp_path, "json = true\nquiet = false", "choose")
    assert seen["speech"].as_json is True
    assert seen["speech"].quiet is False


def test_tables_of_other_commands_do_not_count(tmp_path: Path):
    seen = run(tmp_path, "[fit]\nseed = 5\n", "choose")
    assert seen["work"].seed == 0


BAD = {
    "not TOML": ("domain = island", "is not TOML"),
    "unknown option": ('domian = "island"', 'unknown option "domian"'),
    "unknown option in a table": ("[fit]\nkk = 3", 'unknown option "fit.kk"'),
    "a command that is no table": ("fit = 3", "has fit = 3"),
    "a flag that is a word": ('counts = "yes"', "has counts = 'yes'"),
    "an option that is a flag": ("domain = true", "has domain = True"),
    "several values": ('domain = ["a", "b"]', "has domain = ['a', 'b']"),
    "out of range": ("level = 90", "has level = 90, which must be a number from 0.01"),
    "config in a config": ('config = "other.toml"', 'unknown option "config"'),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_files_are_told_in_one_line(cli, tmp_path: Path, text: str, said: str):
    (tmp_path / "shoal.toml").write_text(text)
    ended = cli("fit", "x.csv", "--config", "shoal.toml")
    assert ended.code == 2
    error, hint = ended.stderr.splitlines()
    assert error.startswith('error[E002] "shoal.toml" ')
    assert said in error
    assert hint.startswith("hint: ")


def test_a_config_that_is_not_there_with_json(cli):
    ended = cli("fit", "x.csv", "--json", "--config", "absent.toml")
    document = json.loads(ended.stdout)
    assert ended.code == 2
    assert document["command"] == "fit"
    assert document["messages"][0]["code"] == "E002"
    assert "absent.toml" in document["messages"][0]["text"]


def test_a_value_of_the_wrong_kind_is_named(cli, tmp_path: Path):
    (tmp_path / "shoal.toml").write_text('seed = "one"')
    ended = cli("fit", "x.csv", "--config", "shoal.toml")
    assert ended.code == 2
    assert 'error[E002] "shoal.toml" has seed = one' in ended.stderr


def test_options_for_other_commands_may_stand_in_a_shared_file(cli, tmp_path: Path):
    """Typed, an option without a use for the data is refused."""
    rows = "".join(f"{row % 3},{row * row % 11},{row % 7}\n" for row in range(90))
    (tmp_path / "x.csv").write_text("site,a,b\n" + rows)
    (tmp_path / "shoal.toml").write_text(
        'domain = "site"\ndevice = "cuda:9"\nsize = 64\nskip-bad = true\nworkers = 2'
    )
    ended = cli("choose", "x.csv", "--config", "shoal.toml", "--k", "2:3")
    assert "E002" not in ended.stderr
    for typed in (["--device", "cuda:9"], ["--size", "64"], ["--skip-bad"]):
        ended = cli("choose", "x.csv", "--domain", "site", "--k", "2:3", *typed)
        assert ended.code == 2
        assert f"error[E002] {typed[0]} " in ended.stderr


def test_names_of_columns():
    assert split_names(None) == []
    assert split_names(["a,b", "c"]) == ["a", "b", "c"]
    assert split_names(['"a,b",c']) == ["a,b", "c"]


def test_the_options_for_reading_are_made_from_those_of_the_reader():
    """What the reader can be told is what a command takes, under the same names."""
    given = {}

    @with_groups
    def command(source: ReadOptions) -> None:
        given["source"] = source

    app = typer.Typer()
    app.command()(command)
    options = {one.name: one for one in get_command(app).params}
    assert {field.name for field in fields(ReadOptions)} <= set(options)
    command_line = get_command(app)
    command_line.main([], standalone_mode=False)
    assert SourceOptions(**vars(given["source"])) == SourceOptions(na=[])
    words = "--features a,b --features c --drop d --na - --na x,y --sample 9"
    command_line.main(words.split(), standalone_mode=False)
    source = given["source"]
    assert source == ReadOptions(
        features=["a", "b", "c"], drop=["d"], na=["-", "x,y"], sample=9
    )
    assert source.of_files.keys() == {field.name for field in fields(FileOptions)}
    assert source.of_files["na"] == ["-", "x,y"]
