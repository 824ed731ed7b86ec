"""Tables that were dropped, and what became of them: folders that outlive the page."""

import json
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.io._files import write_whole


@dataclass(frozen=True)
class PageSettings:
    """Limits of the page.

    Attributes
    ----------
    max_mb : int
        Larger files are refused by name: they take minutes to fit and belong to
        ``shoal fit``, which reads in parts.
    preview_rows, preview_columns : int
        Of the table that people recognize theirs by.
    values : int
        Values of a column that are named, so that people know which one it is.
    seconds_to_end : float
        A cancelled fit may put its files away for so long.
    name_letters : int
        Longer file names are cut.
    """

    max_mb: int = 200
    preview_rows: int = 6
    preview_columns: int = 30
    values: int = 4
    seconds_to_end: float = 5.0
    name_letters: int = 80


PAGE = PageSettings()
#: The class of every row, as fit writes it and as people take it with them.
PARQUET, ROWS = "assignments.parquet", "assignments.csv"

# ---- what a table looks like, and which of its columns could be the domain -----------

Record = dict[str, Any]


def preview(path: Path) -> Record:
    """The first rows, every column, and the candidates for the domain.

    Raises
    ------
    shoal.exceptions.CodedError
        Where the file cannot be read, as ``shoal fit`` would.
    """
    from shoal.io._options import SourceOptions
    from shoal.io.source._open import open_content
    from shoal.io.table._columns import looks_like_label
    from shoal.io.table._domains import domain_candidates, tidy

    content = open_content(str(path), SourceOptions(require_domain=False))
    frame = tidy(content.frame, content.decimal)
    known = [str(name) for name in frame.columns]
    columns = []
    for name in known:
        values = frame[name].dropna()
        n_values = int(values.nunique())
        columns.append(
            {
                "name": name,
                "n_values": n_values,
                "values": [_cell(one) for one in values.unique()[: PAGE.values]],
                "label": looks_like_label(name, n_values, len(frame), known),
            }
        )
    shown = frame.iloc[: PAGE.preview_rows, : PAGE.preview_columns]
    return {
        "n_rows": len(frame),
        "columns": columns,
        "candidates": [name for name, _ in domain_candidates(frame)],
        "head": known[: PAGE.preview_columns],
        "rows": [[_cell(one) for one in row] for row in shown.to_numpy(dtype=object)],
    }


def _cell(value: Any) -> str:
    """A cell as people write it: 181, not 181.0."""
    if value is None or value != value:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


# ---- what the checks of a run said, for the classes as they are called now -----------

CLASS = re.compile(r"\{(c\d+)\}")


def with_names(
    messages: Sequence[Mapping[str, Any]], summary: Path, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Messages of a fit, class ids of findings replaced by names.

    The summary of a run knows where in a finding a class stands; in the printed line a
    ``c1`` could also be a domain. Messages that are no findings stay as they are.
    """
    if not names or not summary.is_file():
        return [dict(one) for one in messages]
    checks = json.loads(summary.read_text(encoding="utf-8")).get("checks") or {}
    reasons = [one["reason"] for one in checks.get("findings", ())]
    now = {
        CLASS.sub(r"\1", reason): CLASS.sub(
            lambda found: names.get(found[1], found[1]), reason
        )
        for reason in reasons
    }
    return [{**one, "text": now.get(one["text"], one["text"])} for one in messages]


# ---- jobs ----------------------------------------------------------------------------


STAGE = re.compile(r"^\[(\d+)/(\d+)\] (.*?)(?: \(.*\))?$")
#: Options of ``shoal fit`` that the page may set, and what their values may be.
OPTIONS = {
    "domain": None,
    "label": None,
    "k": re.compile(r"\d{1,3}"),
    "impute": re.compile("median|mean|drop|stop"),
}


class BadRequestError(ValueError):
    """Something asked for that cannot be done, in a line for people."""


class Job:
    """One table and its fit, in a folder of its own.

    Parameters
    ----------
    folder : Path
        Holds the table, ``job.json``, ``progress.log``, ``result.json`` and ``run``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()

    @property
    def id(self) -> str:
        """Its name in addresses."""
        return self.folder.name

    @property
    def run(self) -> Path:
        """Folder of the results."""
        return self.folder / "run"

    def kept(self) -> Record:
        """What was written down of it."""
        return json.loads((self.folder / "job.json").read_text(encoding="utf-8"))

    def keep(self, **changes: Any) -> None:
        """Write changes down, so that a restart knows them."""
        path = self.folder / "job.json"
        before = self.kept() if path.exists() else {}
        write_whole(path, json.dumps(before | changes).encode())

    @property
    def table(self) -> Path:
        """The file that was dropped."""
        return self.folder / self.kept()["name"]

    # ---- how it goes ----------------------------------------------------------------

    def status(self) -> str:
        """One of new, running, done, failed, cancelled and interrupted."""
        said = str(self.kept()["status"])
        if said != "running" or (self.process and self.process.poll() is None):
            return said
        # it ended without this page: the page was stopped, or is about to notice
        return self._ending(None)

    def _ending(self, cancelled: bool | None) -> str:
        document = self.result()
        if document.get("status") in ("ok", "warning") and self.run.is_dir():
            return "done"
        if cancelled:
            return "cancelled"
        return "failed" if document.get("status") == "error" else "interrupted"

    def result(self) -> Record:
        """The document that the fit printed; empty while there is none."""
        try:
            text = (self.folder / "result.json").read_text(encoding="utf-8")
            return json.loads(text) if text.strip() else {}
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def progress(self) -> Record:
        """The stage that the fit has announced last."""
        try:
            lines = (self.folder / "progress.log").read_text(errors="replace")
        except FileNotFoundError:
            lines = ""
        stages = [found for line in lines.splitlines() if (found := STAGE.match(line))]
        if not stages:
            return {"stage": 0, "stages": 1, "text": "starting"}
        number, of, text = stages[-1].groups()
        return {"stage": int(number), "stages": int(of), "text": text}

    def describe(self) -> Record:
        """Everything that the page shows of it."""
        kept, status = self.kept(), self.status()
        found: Record = {"id": self.id, "status": status, **kept, "progress": None}
        found["status"] = status
        document = self.result()
        found["messages"] = document.get("messages", [])
        if status == "running":
            found["progress"] = self.progress()
        if status == "done":
            data = document["data"]
            found |= {key: data[key] for key in ("verdict", "evidence", "prevalence")}
            names = kept.get("names", {})
            found["classes"] = [
                one | {"name": names.get(one["id"], one["name"])}
                for one in data["classes"]
            ]
            summary = self.run / "summary.json"
            found["messages"] = with_names(found["messages"], summary, names)
            files = {path.name for path in self.run.iterdir() if path.is_file()}
            if PARQUET in files:  # no spreadsheet opens it
                files.add(ROWS)
            found["files"] = sorted(files)
        return found

    # ---- what is done with it -------------------------------------------------------

    def start(self, options: Mapping[str, Any]) -> None:
        """Fit the table in a process of its own."""
        arguments = fit_arguments(options)
        for name in ("result.json", "progress.log"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.run, ignore_errors=True)
        command = ["fit", str(self.table), *arguments, f"--out={self.run}"]
        with (
            (self.folder / "result.json").open("wb") as out,
            (self.folder / "progress.log").open("wb") as log,
        ):
            self.process = subprocess.Popen(
                shoal_command(*command),
                stdout=out,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self.keep(status="running", options=dict(options), names={})
        threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with self.lock:
            if process is self.process and self.kept()["status"] == "running":
                self.keep(status=self._ending(None))

    def cancel(self) -> None:
        """Stop the fit; what it wrote is put away as after Ctrl-C."""
        process = self.process
        if process is None or process.poll() is not None:
            raise BadRequestError("nothing is running for this table")
        with self.lock:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PAGE.seconds_to_end)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.keep(status=self._ending(cancelled=True))

    def rename(self, names: Mapping[str, Any]) -> None:
        """Give the classes names, in the model, the tables and the report."""
        pairs = {str(key): str(name).strip() for key, name in names.items()}
        if not pairs or not all(pairs.values()):
            raise BadRequestError("every class needs a name")
        given = [f"--set={key}={name}" for key, name in pairs.items()]
        done = subprocess.run(
            shoal_command("name", str(self.run), *given), capture_output=True
        )
        if done.returncode:
            message = json.loads(done.stdout)["messages"][-1]
            raise BadRequestError(f"{message['text']}; {message['hint']}")
        self.keep(names=self.kept().get("names", {}) | pairs)

    def packed(self) -> Path:
        """All results in one file."""
        archive = shutil.make_archive(str(self.folder / "results"), "zip", self.run)
        if (self.run / PARQUET).exists():
            with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as packed:
                packed.write(self.rows(), ROWS)
        return Path(archive)

    def rows(self) -> Path:
        """The class of every row, by its name, as spreadsheets open it."""
        import pandas as pd

        from shoal.io import write_assignments

        names = self.kept().get("names", {})
        found = pd.read_parquet(self.run / PARQUET)  # keeps the classes of the fit
        found["class"] = [names.get(one, one) for one in found["class"]]
        found = found.rename(columns={f"p_{key}": f"p_{names[key]}" for key in names})
        write_assignments(self.folder / ROWS, [found])
        return self.folder / ROWS


def fit_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options of the page as those of the command; an unknown one is refused."""
    if not options.get("domain"):
        raise BadRequestError("choose the column that says where a row comes from")
    arguments = []
    for name, value in options.items():
        if name not in OPTIONS:
            raise BadRequestError(f"there is no option {name!r}")
        if value in (None, ""):
            continue
        allowed = OPTIONS[name]
        if allowed is not None and not allowed.fullmatch(str(value)):
            raise BadRequestError(f"{name} cannot be {value!r}")
        arguments.append(f"--{name}={value}")
    return arguments


def shoal_command(*arguments: str) -> list[str]:
    """A command line of this very shoal, which answers in JSON."""
    return [sys.executable, "-m", "shoal", *arguments, "--json", "--no-color"]


class JobStore:
    """All jobs of a folder.

    Parameters
    ----------
    root : Path
        Made if it is not there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        found = sorted(path.parent for path in root.glob("*/job.json"))
        self.jobs = {folder.name: Job(folder) for folder in found}

    def make(self, name: str) -> Job:
        """An empty job for a file of this name."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        folder = self.root / f"{stamp}-{secrets.token_hex(3)}"
        folder.mkdir()
        job = Job(folder)
        job.keep(name=safe_name(name), status="new", made=stamp)
        self.jobs[job.id] = job
        return job

    def drop(self, job: Job) -> None:
        """Forget a job and all its files."""
        if job.status() == "running":
            raise BadRequestError("cancel the run first")
        self.jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def running(self) -> Job | None:
        """The job that is being fitted, if any."""
        going = (job for job in self.jobs.values() if job.status() == "running")
        return next(going, None)

    def start(self, job: Job, options: Mapping[str, Any]) -> None:
        """Fit a job, if no other is being fitted."""
        busy = self.running()
        if busy is not None:
            raise BadRequestError(
                f'"{busy.kept()["name"]}" is being fitted: wait or cancel'
            )
        job.start(options)


def safe_name(name: str) -> str:
    """A file name without what a file system or a command could misread.

    Examples
    --------
    >>> safe_name("../../etc/pass wd.csv"), safe_name("-rf"), safe_name("job.json")
    ('pass wd.csv', 'table-rf', 'table-job.json')
    """
    plain = re.sub(r"[^\w. ()+-]", "_", re.split(r"[/\\]", name)[-1]).strip()
    plain = plain[-PAGE.name_letters :]
    own = {"job.json", "result.json", "progress.log", "run", "results.zip", ROWS}
    if not plain or plain[0] in ".-" or plain in own:
        return f"table{'' if plain[:1] in ('.', '-') else '-'}{plain}"
    return plain
