"""What the page lets through to the command line."""

import json

import pytest

from shoal.app._jobs import (
    BadRequestError,
    Job,
    JobStore,
    fit_arguments,
    preview,
    safe_name,
    with_names,
)


def test_options_become_arguments():
    given = {"domain": "--force", "label": "", "k": "3", "impute": "median"}
    assert fit_arguments(given) == ["--domain=--force", "--k=3", "--impute=median"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "choose the column that says where a row comes from"),
        ({"domain": "a", "k": "3; rm"}, "k cannot be '3; rm'"),
        ({"domain": "a", "impute": "magic"}, "impute cannot be 'magic'"),
        ({"domain": "a", "out": "/etc"}, "there is no option 'out'"),
    ],
)
def test_other_options_are_refused(options, message):
    with pytest.raises(BadRequestError) as caught:
        fit_arguments(options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("birds.csv", "birds.csv"),
        ("C:\\data\\birds.csv", "birds.csv"),
        ("../../etc/passwd", "passwd"),
        (".hidden", "table.hidden"),
        ("--out=x.csv", "table--out_x.csv"),
        ("job.json", "table-job.json"),
        ("assignments.csv", "table-assignments.csv"),
        ("", "table-"),
        ("a" * 200 + ".csv", "a" * 76 + ".csv"),
    ],
)
def test_names_of_files_are_made_safe(name, kept):
    assert safe_name(name) == kept


def test_progress_is_what_the_command_said_last(tmp_path):
    job = JobStore(tmp_path).make("x.csv")
    assert job.progress() == {"stage": 0, "stages": 1, "text": "starting"}
    lines = "[1/6] reading x\n[2/6] finding the classes (0:01 gone)\nnoise\n"
    (job.folder / "progress.log").write_text(lines)
    assert job.progress() == {"stage": 2, "stages": 6, "text": "finding the classes"}


def test_remarks_call_classes_by_their_names(tmp_path):
    """Where a class is meant, and nowhere else."""
    summary = tmp_path / "summary.json"
    reason = "Some classes occur in one domain: {c1} only in c1, {c0} only in c2."
    summary.write_text(json.dumps({"checks": {"findings": [{"reason": reason}]}}))
    printed = reason.replace("{", "").replace("}", "")
    messages = [{"code": "W139", "text": printed}, {"code": "W148", "text": "c1: -9"}]
    assert with_names(messages, summary, {}) == messages
    assert with_names(messages, tmp_path / "none.json", {"c0": "A"}) == messages
    told = with_names(messages, summary, {"c1": "Gentoo", "c0": "{c1}"})
    assert [one["text"] for one in told] == [
        "Some classes occur in one domain: Gentoo only in c1, {c1} only in c2.",
        "c1: -9",
    ]


def test_a_run_whose_page_was_stopped_is_known_after_a_restart(tmp_path):
    job = JobStore(tmp_path).make("x.csv")
    job.keep(status="running")
    again = JobStore(tmp_path).jobs[job.id]
    assert isinstance(again, Job)
    assert again.status() == "interrupted"
    (again.folder / "result.json").write_text('{"status": "error", "messages": []}')
    assert again.status() == "failed"
    (again.folder / "result.json").write_text('{"status": "ok", "data": {}}')
    again.run.mkdir()
    assert again.status() == "done"


def test_a_job_can_be_forgotten(tmp_path):
    store = JobStore(tmp_path)
    job = store.make("x.csv")
    store.drop(job)
    assert store.jobs == {}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadRequestError, match="nothing is running for this table"):
        job.cancel()


def test_the_preview_shows_a_table_as_it_will_be_read(tmp_path):
    """Numbers with decimal commas as numbers; blanks make no further place."""
    lines = ["size;site"] + [
        f"{3 + n // 7},{n % 7};{('Moor', 'Heath ', 'Moor ')[n % 3]}" for n in range(60)
    ]
    lines[1] = "-;Moor"
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines))
    shown = preview(path)
    assert shown["candidates"] == ["site"]
    assert shown["rows"][:2] == [["", "Moor"], ["3.1", "Heath"]]
    assert shown["columns"][1]["n_values"] == 2
