"""What ``fit`` and ``demo`` compute: classes, intervals and whether to trust them.

Numpy and scikit-learn are imported inside the functions: the command line must be able
to print its help without them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError
from shoal.cli._naming import Names, renamed
from shoal.cli._options import Work
from shoal.cli._output import Output, Stage, Stages
from shoal.cli._reading import refuse_images
from shoal.exceptions import CodedError

if TYPE_CHECKING:
    from shoal.io import Table


AUTO = "auto"


@dataclass(frozen=True)
class Settings:
    """How to fit; ``k`` None means to choose it."""

    work: Work
    k: int | None = None
    level: float = 0.9
    n_resamples: int = 200
    names: Names | None = None
    n_reruns: int = 0
    more_stages: Mapping[str, Stage] = field(default_factory=dict)
    learn: Callable[[Any, "Table"], Any] | None = None  # instead of the estimator's fit


@dataclass(frozen=True)
class Fitted:
    """A fitted model and all that was asked about it.

    ``stored`` is what to save where that is more than ``model``: with the network in
    front of it. ``assign`` writes the classes of all rows where ``table`` is a sample.
    """

    table: "Table"
    model: Any
    choice: Any
    intervals: Any
    diagnosis: Any
    refits: tuple[Any, ...] = ()
    stored: Any = None
    assign: Callable[[Path], None] | None = None


def parse_k(text: str) -> int | None:
    """Number of classes as given; None for ``auto``."""
    if text == AUTO:
        return None
    if not text.isdecimal() or int(text) < 2:
        raise CommandError(
            "E002",
            f'k must be a whole number from 2, or auto, got "{text}"',
            "run `shoal choose DATA` to see which numbers the data support",
        )
    return int(text)


def refuse_too_many(k: int | None, n_domains: int) -> None:
    """Raise E112 for more classes than domains can tell apart."""
    if k is not None and k > n_domains:
        raise CommandError(
            "E112",
            f"{k} classes cannot be separated with {n_domains} domains",
            f"use --k {n_domains} or less, or a finer domain column",
        )


def plan_fit(name: str, settings: Settings, *, then: str = "") -> dict[str, Stage]:
    """Stages of a fit; costs are shares of the seconds measured on small tables."""
    plan = {"read": Stage(f"reading {name}", 3)}  # and loading the libraries
    more = settings.more_stages
    plan |= {key: stage for key, stage in more.items() if key == "embed"}
    if settings.k is None:
        plan["choose"] = Stage("choosing the number of classes", 3)
    plan["fit"] = Stage("finding the classes", 4)
    plan |= {key: stage for key, stage in more.items() if key == "tune"}
    plan |= {
        "diagnose": Stage("asking whether to trust them", 3),
        "intervals": Stage(f"intervals: {settings.n_resamples} resamples", 3),
    }
    if settings.n_reruns:
        n_fits = settings.n_reruns + 2
        plan["rerun"] = Stage(
            f"other seeds and numbers of classes: {n_fits}", 3 * n_fits
        )
    return plan | ({"write": Stage(then, 2)} if then else {})


def estimator_for(kind: str, k: int | None, work: Work) -> Any:
    """The estimator of a kind of table, not fitted."""
    from shoal.discrete import DiscreteMixture
    from shoal.mixture._estimator import DomainMixture

    if kind in ("counts", "text"):
        return DiscreteMixture(k, input="counts", random_state=work.seed)
    if kind == "images":  # what can become a layer of the network
        return DomainMixture(
            k,
            scale="global",
            expansion="linear",
            random_state=work.seed,
            n_jobs=work.n_jobs,
        )
    return DomainMixture(k, random_state=work.seed, n_jobs=work.n_jobs)


def find_classes(
    output: Output,
    stages: Stages,
    table: "Table",
    settings: Settings,
    embedded: Any = None,
) -> Fitted:
    """Choose the number of classes unless given, fit, diagnose and resample.

    ``embedded`` is the network whose features the table holds, if any.
    """
    from threadpoolctl import threadpool_limits

    from shoal.analysis.diagnose import with_columns

    work = settings.work
    # own threads work side by side; those of BLAS would wait for each other
    with threadpool_limits(1):
        model, choice = fit_only(output, stages, table, settings)
        stored = None
        if embedded is not None:
            if "tune" in settings.more_stages:
                stages.begin("tune")
            stored, model, table = embedded.finish(model, table)
        stages.begin("diagnose")
        diagnosis = with_columns(
            model.diagnose(table.X, table.domains, random_state=work.seed),
            table.feature_names,
        )
        refuse_no_signal(diagnosis)
        stages.begin("intervals")
        intervals = model.bootstrap(
            table.X,
            table.domains,
            n_resamples=settings.n_resamples,
            level=settings.level,
            n_jobs=work.n_jobs,
            random_state=work.seed,
        )
        refits = tuple(fit_again(stages, table, model.n_classes_, settings))
    return Fitted(table, model, choice, intervals, diagnosis, refits, stored)


def fit_again(
    stages: Stages, table: "Table", k: int, settings: Settings
) -> Iterator[Any]:
    """Fits from other seeds, and with one class fewer and more where that can be."""
    import numpy as np

    if not settings.n_reruns:
        return
    stages.begin("rerun")
    most = len(np.unique(np.asarray(table.domains)))
    seeds = [settings.work.seed + step for step in range(1, settings.n_reruns + 1)]
    plans = [(k, seed) for seed in seeds]
    plans += [(n, settings.work.seed) for n in (k - 1, k + 1) if 2 <= n <= most]
    for done, (n_classes, seed) in enumerate(plans):
        stages.advance(done / len(plans))
        work = replace(settings.work, seed=seed)
        yield estimator_for(table.kind, n_classes, work).fit(table.X, table.domains)


def fit_only(
    output: Output, stages: Stages, table: "Table", settings: Settings
) -> tuple[Any, Any]:
    """The fitted model, and the choice of the number of classes if there was one."""
    import numpy as np

    refuse_images(table)
    refuse_too_many(settings.k, len(np.unique(np.asarray(table.domains))))
    choice = None
    if settings.k is None:
        stages.begin("choose")
        choice = choose_k(table, settings.work)
    k = settings.k if choice is None else choice.n_classes
    stages.begin("fit")
    estimator = estimator_for(table.kind, k, settings.work)
    model = fit_or_refuse(estimator, table, settings.learn)
    if choice is not None and choice.n_classes is None:
        output.warn(
            "W160",
            f"{choice.sentence}; {model.n_classes_} were fitted",
            "`shoal choose` shows the curve; set the number with --k",
        )
    names = settings.names(output, model, table) if settings.names else None
    return (renamed(model, names) if names else model), choice


def fit_or_refuse(
    estimator: Any,
    table: "Table",
    learn: Callable[[Any, "Table"], Any] | None = None,
) -> Any:
    """The fitted estimator; E164 where it cannot fit these rows."""
    try:
        if learn is not None:
            return learn(estimator, table)
        return estimator.fit(table.X, table.domains)
    except CodedError:
        raise
    except ValueError as error:
        text, _, hint = str(error).partition("; ")
        hint = hint or "see what was read with `shoal check`"
        raise CommandError("E164", text, hint) from error


def choose_k(table: "Table", work: Work, **options: Any) -> Any:
    """The curve over numbers of classes."""
    from shoal.mixture import choose_n_classes

    return choose_n_classes(
        table.X,
        table.domains,
        estimator=estimator_for(table.kind, None, work),
        n_jobs=work.n_jobs,
        random_state=work.seed,
        **options,
    )


def refuse_no_signal(diagnosis: Any) -> None:
    """Raise E138 if the diagnosis says that domains cannot be told apart."""
    finding = diagnosis["E138"]
    if finding.status == "fail":
        numbers = finding.numbers
        raise nothing_to_find(
            f"gain {numbers['gain']:.3f} nats, needed {numbers['needed']:.3f}"
        )


def nothing_to_find(gain: str) -> CommandError:
    """The error of domains that do not differ."""
    return CommandError(
        "E138",
        f"domains cannot be told apart on held-out rows ({gain})",
        "the mix may be the same everywhere; see `shoal explain E138`",
    )
