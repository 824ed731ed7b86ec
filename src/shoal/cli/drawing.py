"""The page of a run, from what its summary says and what its classes are called now."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.cli.fitting import Fitted, Settings
from shoal.cli.messages import CommandError
from shoal.cli.models import load_model
from shoal.cli.options import Work
from shoal.cli.output import Output
from shoal.cli.pictures import pictures_of
from shoal.cli.places import filled_file
from shoal.cli.prevalences import fitted_classes
from shoal.cli.progress import Stage
from shoal.cli.reading import Rows, name_of
from shoal.cli.runs import folder_of

__all__ = ["draw", "named", "summarize_again"]


def draw(path: Path, summary: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Write the page; its path, size, and what was left out to stay below it."""
    from shoal.report import write

    try:
        with filled_file(path) as place:
            done = write(summary, place, **options)
    except (KeyError, TypeError, IndexError) as error:
        raise CommandError(
            "E162",
            f"the summary of the run is damaged ({type(error).__name__}: {error})",
            "fit again, or give the data: `shoal report RUN DATA`",
        ) from error
    return {**done, "path": str(path)}


def named(output: Output, summary: dict[str, Any], model: Path) -> dict[str, Any]:
    """The summary with the names that the classes have now."""
    import shoal
    from shoal.report import rename

    fitted = shoal.load(model)
    names = {
        f"c{index}": str(fitted.class_names_[now])
        for index, now in enumerate(fitted_classes(fitted))
    }
    ids = [group["id"] for group in summary.get("classes", [])]
    if ids != list(names):
        raise CommandError(
            "E162",
            "the summary of the run has other classes than its model",
            "fit again, or give the data: `shoal report RUN DATA`",
        )
    if len(set(names.values())) < len(names):
        output.warn(
            "W162",
            "merged classes are drawn apart, under one name",
            "`shoal report RUN DATA`, with the data of the fit, draws them as one",
        )
    return rename(summary, names)


def summarize_again(
    output: Output, model: Path, data: Sequence[str], rows: Rows, work: Work
) -> dict[str, Any]:
    """A summary of the model as it is now, on the rows of its fit."""
    from threadpoolctl import threadpool_limits

    from shoal.cli.fit import summary_of

    settings = Settings(work)
    plan = {
        "read": Stage(f"reading {name_of(data)}", 1),
        "diagnose": Stage("asking whether to trust the classes", 5),
        "intervals": Stage(f"intervals: {settings.n_resamples} resamples", 5),
    }
    with output.stages(plan) as stages, threadpool_limits(1):
        stages.begin("read")
        loaded = load_model(model)
        table = loaded.known_table(output, data, rows)
        stages.begin("diagnose")
        X, domains, seed = table.X, table.domains, work.seed
        diagnosis = loaded.model.diagnose(X, domains, random_state=seed)
        stages.begin("intervals")
        intervals = loaded.model.bootstrap(
            X, domains, n_jobs=work.n_jobs, random_state=seed
        )
    fitted = Fitted(table, loaded.model, None, intervals, diagnosis)
    shown = Path(data[0]) if table.kind == "images" else None
    options = {"images": pictures_of(shown, table), "redact": output.redact}
    return summary_of(output, fitted, work, folder_of(model), **options)
