"""``shoal diagnose``: do the assumptions hold here, and what to do if not."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from shoal.cli._fit import K
from shoal.cli._fitting import Settings, fit_only, parse_k
from shoal.cli._imaging import Encoder, embed_table, plan_images
from shoal.cli._messages import CommandError, write_json
from shoal.cli._models import load_model
from shoal.cli._options import (
    Force,
    Out,
    Redact,
    Speech,
    Work,
    is_typed,
    refuse_no_encoder,
    with_groups,
    working,
)
from shoal.cli._output import Output, Stage, Stages, running
from shoal.cli._places import filled_folder, refuse_existing
from shoal.cli._reading import Data, Rows, Source, name_of, read
from shoal.cli._redacting import without_rare_names
from shoal.cli._runs import DIAGNOSTICS
from shoal.cli._scaling import Place, diagnosed, opened
from shoal.cli._tables import VERDICTS, findings_table, warn_findings

ModelOption = Annotated[
    Path | None,
    working("--model", metavar="MODEL", help="Judge this model instead of a new fit."),
]
Permutations = Annotated[
    int, working("--permutations", min=2, help="Shuffles that show what chance gives.")
]


@with_groups
def diagnose(
    data: Data,
    source: Source,
    encoder: Encoder,
    work: Work,
    place: Place,
    speech: Speech,
    model: ModelOption = None,
    k: K = "auto",
    permutations: Permutations = 100,
    out: Out = None,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """Whether the classes should be trusted: every check, its number, what to do.

    Five questions: do domains differ, do the classes explain it, does each class look
    alike everywhere, is the mix rich enough, and is the table itself sound.
    Passing means that no sign of a problem was found. Judges the --model, or one
    fitted for the purpose, for which a folder of images needs --encoder. With --out,
    writes diagnostics.json.
    """
    with running("diagnose", redact=redact, **speech.options) as output:
        settings = Settings(work, parse_k(k), more_stages=plan_images(encoder))
        if out is not None:
            refuse_existing(out, [DIAGNOSTICS], force=force)
        with output.stages(_plan(name_of(data), model, settings)) as stages:
            # a model is asked of all rows; for a fit, a sample is all that must fit
            whole = model is not None or source.sample is None
            in_parts = place.in_parts(data, whole=whole)
            if model is not None:
                refuse_fitting(encoder, in_parts=in_parts)
            else:
                refuse_no_encoder(encoder)
            question = Question(
                output, stages, data, source, encoder, place, model, settings,
                permutations,
            )  # fmt: skip
            found = question.ask_in_parts() if in_parts else question.ask()
        found = without_rare_names(found) if redact else found
        output.data = found.to_dict()
        if out is not None:
            with filled_folder(out) as temporary:
                write_json(temporary / DIAGNOSTICS, output.data)
            output.files = [out / DIAGNOSTICS]
        warn_findings(output, output.data["findings"])
        output.show(
            findings_table(output.data["findings"]),
            f"Verdict: {VERDICTS[found.verdict]}",
        )
        output.show_files()


def refuse_fitting(encoder: Encoder, *, in_parts: bool) -> None:
    """Raise E002 for options of a new fit, which a fitted model has answered."""
    leave = "leave one of them out"
    if encoder.given:
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
    anew = {field.name for field in fields(Rows)} | ({"sample"} if in_parts else set())
    names = [field.name for field in fields(Source) if field.name not in anew]
    return [f"--{name.replace('_', '-')}" for name in (*names, "k", "size")]


def _plan(name: str, model: Path | None, settings: Settings) -> dict[str, Stage]:
    plan = {"read": Stage(f"reading {name}", 3), **settings.more_stages}
    if model is None and settings.k is None:
        plan["choose"] = Stage("choosing the number of classes", 3)
    if model is None:
        plan["fit"] = Stage("finding the classes", 4)
    return plan | {"diagnose": Stage("asking whether to trust them", 6)}


@dataclass(frozen=True)
class Question:
    """What is to be judged: a model, or one fitted for the purpose."""

    output: Output
    stages: Stages
    data: Sequence[str]
    source: Source
    encoder: Encoder
    place: Place
    model: Path | None
    settings: Settings
    n_permutations: int

    @property
    def seed(self) -> int:
        """Of all chance."""
        return self.settings.work.seed

    def ask(self) -> Any:
        """The diagnosis by all rows."""
        from threadpoolctl import threadpool_limits

        from shoal.analysis.diagnose import with_columns

        self.stages.begin("read")
        with threadpool_limits(1):
            table, judged = self._fit() if self.model is None else self._load()
            self.stages.begin("diagnose")
            found = judged.diagnose(
                table.X,
                table.domains,
                n_permutations=self.n_permutations,
                random_state=self.seed,
            )
            return with_columns(found, table.feature_names)

    def _fit(self) -> tuple[Any, Any]:
        output, stages, work = self.output, self.stages, self.settings.work
        table = read(output, self.data, self.source, self.seed, redact=output.redact)
        if self.encoder.given:
            skip_bad = self.source.skip_bad
            table, _ = embed_table(
                output, stages, table, self.encoder, work, skip_bad=skip_bad
            )
        judged, _ = fit_only(output, stages, table, self.settings)
        return table, judged

    def _load(self) -> tuple[Any, Any]:
        assert self.model is not None
        loaded = load_model(self.model, self.encoder.device)
        table = loaded.known_table(self.output, self.data, self.source)
        return table, loaded.model

    def ask_in_parts(self) -> Any:
        """The diagnosis by a sample of data that are read in parts."""
        from threadpoolctl import threadpool_limits

        data, source, place, work = (
            self.data, self.source, self.place, self.settings.work
        )  # fmt: skip
        self.stages.begin("read")
        if self.model is not None:
            loaded = load_model(self.model, self.encoder.device)
            asked = (loaded, data, source, self.seed, place)
            with threadpool_limits(1):
                return diagnosed(self.stages, *asked, self.n_permutations)
        with (
            threadpool_limits(1),
            opened(
                self.output,
                self.stages,
                data,
                source,
                work,
                place,
                redact=self.output.redact,
            ) as parts,  # fmt: skip
        ):
            assert parts is not None  # asked before, in the same words
            learning = replace(self.settings, learn=parts.learn)
            judged, _ = fit_only(self.output, self.stages, parts.table, learning)
            self.stages.begin("diagnose")
            return parts.diagnose(judged, self.n_permutations, self.seed)
