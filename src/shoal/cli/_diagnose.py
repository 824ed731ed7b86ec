"""``shoal diagnose``: do the assumptions hold here, and what to do if not."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from shoal.cli._fit import Settings, fit_only, rows_to_fit
from shoal.cli._messages import CommandError
from shoal.cli._models import Loaded, PlaceOptions, diagnosis_of, load_model
from shoal.cli._options import (
    Classes,
    Encoder,
    Learning,
    SafeResults,
    Speech,
    is_typed,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import (
    Data,
    name_of,
    without_rare_names,
)
from shoal.cli._runs import DIAGNOSTICS, keep_json, refuse_results
from shoal.cli._tables import VERDICTS, findings_table, warn_findings
from shoal.io._options import FileOptions, ReadOptions


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(Classes):
    """What is judged, and how."""

    model: Path | None = working(
        None, "Judge this model instead of a new fit.", metavar="MODEL"
    )
    permutations: int = working(100, "Shuffles that show what chance gives.", min=2)


@with_groups
def diagnose(
    data: Data,
    source: ReadOptions,
    encoder: Encoder,
    work: Learning,
    place: PlaceOptions,
    judged: JudgeOptions,
    results: SafeResults,
    speech: Speech,
) -> None:
    """Whether the classes should be trusted: every check, its number, what to do.

    Five questions: do domains differ, do the classes explain it, does each class look
    alike everywhere, is the mix rich enough, and is the table itself sound.
    Passing means that no sign of a problem was found. Judges the --model, or one
    fitted for the purpose, for which a folder of images needs --encoder. With --out,
    writes diagnostics.json.
    """
    with running("diagnose", speech, results) as output:
        settings = Settings(work, judged.number, more_stages=encoder.plan())
        refuse_results(results, [DIAGNOSTICS])
        question = Question(output, data, source, encoder, place, judged, settings)
        with output.stages(_plan(name_of(data), judged.model, settings)):
            found = question.ask()
        found = without_rare_names(found) if output.redact else found
        output.found(found.to_dict())
        keep_json(output, results, DIAGNOSTICS)
        warn_findings(output, output.data["findings"])
        checks = findings_table(output.data["findings"])
        output.show(checks, f"Verdict: {VERDICTS[found.verdict]}")
        output.show_files()


def refuse_fitting(encoder: Encoder, *, in_parts: bool) -> None:
    """Raise E002 for options of a new fit, which a fitted model has answered."""
    leave = "leave one of them out"
    if encoder.encodes:
        text = "--encoder is for a new fit, and --model has its own network or none"
        raise CommandError("E002", text, leave)
    for option in _of_a_fit(in_parts=in_parts):
        if is_typed(option):
            text = f"{option} is for a new fit, and --model was fitted already"
            raise CommandError("E002", text, leave)


def _of_a_fit(*, in_parts: bool) -> list[str]:
    """Options that say how to fit; how files are to be read is asked anew.

    Of data in parts, a sample is drawn for a model too.
    """
    anew = {field.name for field in fields(FileOptions)}
    anew |= {"sample"} if in_parts else set()
    names = [field.name for field in fields(ReadOptions) if field.name not in anew]
    return [f"--{name.replace('_', '-')}" for name in (*names, "k", "size", "by")]


def _plan(name: str, model: Path | None, settings: Settings) -> dict[str, str]:
    plan = {"read": f"reading {name}", **settings.more_stages}
    if model is None and settings.k is None:
        plan["choose"] = "choosing the number of classes"
    if model is None:
        plan["fit"] = "finding the classes"
    return plan | {"diagnose": "asking whether to trust them"}


@dataclass(frozen=True)
class Question:
    """What is to be judged: a model, or one fitted for the purpose."""

    output: Output
    data: Sequence[str]
    source: ReadOptions
    encoder: Encoder
    place: PlaceOptions
    judged: JudgeOptions
    settings: Settings

    def ask(self) -> Any:
        """The diagnosis, by all rows or a sample of those that are read in parts."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            if self.judged.model is None:
                self.encoder.refuse_unused()
                return self._of_a_fit()
            in_parts = self.place.in_parts(self.data)
            refuse_fitting(self.encoder, in_parts=in_parts)
            self.output.begin("read")
            loaded = load_model(self.judged.model, self.encoder.device)
            return self._in_parts(loaded) if in_parts else self._of_all_rows(loaded)

    def _of_a_fit(self) -> Any:
        asked = (self.data, self.source, self.encoder, self.place, self.settings)
        with rows_to_fit(self.output, *asked) as rows:
            model, choice = fit_only(self.output, rows.table, rows.settings)
            found = self._diagnose(model, rows.table, choice)
            return rows.parts.with_sizes(found) if rows.parts else found

    def _of_all_rows(self, loaded: Loaded) -> Any:
        table = loaded.known_table(self.output, self.data, self.source)
        return self._diagnose(loaded.model, table)

    def _diagnose(self, model: Any, table: Any, choice: Any = None) -> Any:
        self.output.begin("diagnose")
        shuffles = {"n_permutations": self.judged.permutations}
        return diagnosis_of(model, table, self.settings.work, choice, **shuffles)

    def _in_parts(self, loaded: Loaded) -> Any:
        from shoal.scale import diagnose
        from shoal.scale._settings import SETTINGS

        return self.place.ask(
            diagnose,
            self.output,
            loaded,
            self.data,
            self.source,
            sample=self.source.sample or SETTINGS.sample,
            n_permutations=self.judged.permutations,
            seed=self.settings.work.seed,
            drop_missing_domain=self.source.drop_missing_domain,
        )
