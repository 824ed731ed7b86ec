"""``shoal diagnose``: do the assumptions hold here, and what to do if not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from shoal.cli.fit import K
from shoal.cli.fitting import Settings, fit_only, parse_k
from shoal.cli.groups import with_groups
from shoal.cli.models import load_model
from shoal.cli.options import Force, Out, Speech, Work, working
from shoal.cli.output import Output, running
from shoal.cli.places import filled_folder, refuse_existing
from shoal.cli.plain import write_json
from shoal.cli.progress import Stage, Stages
from shoal.cli.reading import Data, Source, name_of, read
from shoal.cli.runs import DIAGNOSTICS
from shoal.cli.scaling import Place, diagnosed, opened
from shoal.cli.tables import VERDICTS, findings_table, warn_findings

__all__ = ["diagnose"]

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
    work: Work,
    place: Place,
    speech: Speech,
    model: ModelOption = None,
    k: K = "auto",
    permutations: Permutations = 100,
    out: Out = None,
    force: Force = False,
) -> None:
    """Whether the classes should be trusted: every check, its number, what to do.

    Four questions: do domains differ, do the classes explain it, does each class look
    alike everywhere, is the mix rich enough; and whether the table itself is sound.
    Passing means that no sign of a problem was found. Judges the --model, or one
    fitted for the purpose. With --out, writes diagnostics.json.
    """
    settings_k = k
    with running("diagnose", **speech.options) as output:
        settings = Settings(work, parse_k(settings_k))
        if out is not None:
            refuse_existing(out, [DIAGNOSTICS], force=force)
        with output.stages(_plan(name_of(data), model, settings)) as stages:
            # a model is asked of all rows; for a fit, a sample is all that must fit
            whole = model is not None or source.sample is None
            ask = _ask_in_parts if place.in_parts(data, whole=whole) else _ask
            asked = (output, stages, data, source, place, model, settings)
            found = ask(*asked, permutations)
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


def _plan(name: str, model: Path | None, settings: Settings) -> dict[str, Stage]:
    plan = {"read": Stage(f"reading {name}", 3)}
    if model is None and settings.k is None:
        plan["choose"] = Stage("choosing the number of classes", 3)
    if model is None:
        plan["fit"] = Stage("finding the classes", 4)
    return plan | {"diagnose": Stage("asking whether to trust them", 6)}


def _ask(
    output: Output,
    stages: Stages,
    data: Sequence[str],
    source: Source,
    place: Place,
    model: Path | None,
    settings: Settings,
    n_permutations: int,
) -> Any:
    """The diagnosis of a model, or of one fitted for the purpose."""
    from threadpoolctl import threadpool_limits

    seed = settings.work.seed
    stages.begin("read")
    with threadpool_limits(1):
        if model is None:
            table = read(output, data, source, seed)
            judged, _ = fit_only(output, stages, table, settings)
        else:
            loaded = load_model(model)
            table, judged = loaded.known_table(output, data, source), loaded.model
        stages.begin("diagnose")
        return judged.diagnose(
            table.X, table.domains, n_permutations=n_permutations, random_state=seed
        )


def _ask_in_parts(
    output: Output,
    stages: Stages,
    data: Sequence[str],
    source: Source,
    place: Place,
    model: Path | None,
    settings: Settings,
    n_permutations: int,
) -> Any:
    """The same of a sample of data that are read in parts."""
    from threadpoolctl import threadpool_limits

    seed = settings.work.seed
    stages.begin("read")
    if model is not None:
        loaded = load_model(model)
        with threadpool_limits(1):
            return diagnosed(stages, loaded, data, source, seed, place, n_permutations)
    with (
        threadpool_limits(1),
        opened(output, stages, data, source, settings.work, place) as parts,
    ):
        assert parts is not None  # asked above, in the same words
        learning = replace(settings, learn=parts.learn)
        judged, _ = fit_only(output, stages, parts.table, learning)
        stages.begin("diagnose")
        return parts.diagnose(judged, n_permutations, seed)
