"""How a fitted estimator shows itself: in a notebook, row by row, in figures."""

from collections.abc import Iterable
from dataclasses import replace
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn import get_config

import shoal.plots as plots
from shoal.probability import TINY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shoal.analysis._explain import RowExplanation
    from shoal.analysis._tree import ClassTree

Array = np.ndarray[Any, Any]

# ---- in a notebook: verdict, mix and classes -----------------------------------------

MOST_DOMAINS = 12
MOST_CLASSES = 12
# Colours follow the notebook's theme: only shades of the text colour are used.
STYLE = (
    "<style>.shoal-repr{font-size:90%;border-collapse:collapse;margin-top:.5em}"
    ".shoal-repr td,.shoal-repr th{padding:.2em .7em;text-align:right}"
    ".shoal-repr th:first-child{text-align:left}"
    ".shoal-repr tfoot td,.shoal-repr tfoot th{border-top:1px solid currentColor}"
    ".shoal-verdict{margin:.6em 0 0}</style>"
)
# What diagnose said of a fit; beside the models, so that asking does not change them.
VERDICTS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
SIGNS = {
    "clear": ("\N{CHECK MARK}", "Clear: no check found a sign of a problem"),
    "caution": ("\N{WARNING SIGN}", "Use with caution"),
    "do not use": ("\N{MULTIPLICATION X}", "Do not use"),
}


class NotebookRepr:
    """Adds what was found to scikit-learn's own picture of an estimator.

    Notebooks ask for ``_repr_html_`` or ``_repr_mimebundle_``; both obey scikit-learn's
    ``set_config(display=...)``.
    """

    @property
    def _repr_html_(self) -> Any:
        # A property, as in scikit-learn: there is no such thing with display="text".
        plain = super()._repr_html_  # type: ignore[misc]
        return lambda: plain() + found_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle

    def _remember(self, diagnosis: Any) -> None:
        """Keep the verdict to show it; None keeps nothing."""
        if diagnosis is not None:
            VERDICTS[self] = diagnosis

    def _remembered(self) -> Any:
        return VERDICTS.get(self)


def found_html(model: Any) -> str:
    """Verdict, then prevalences as a small table; empty before the fit.

    Parameters
    ----------
    model : LatentShiftEstimator

    Returns
    -------
    str
        HTML. At most 12 domains and 12 classes; the caption counts the others.
    """
    if not hasattr(model, "prevalence_"):
        return ""
    table = np.asarray(model.prevalence_)
    domains, names = list(model.domains_), list(model.class_names_)
    heads = "".join(f"<th>{escape(str(n))}</th>" for n in names[:MOST_CLASSES])
    rows = "".join(
        _row(domain, shares)
        for domain, shares in zip(domains[:MOST_DOMAINS], table, strict=False)
    )
    caption = _caption(domains, names)
    return (
        f"{STYLE}{_verdict_html(model)}"
        f"<table class='shoal-repr'><caption>{caption}</caption>"
        f"<thead><tr><th>domain</th>{heads}</tr></thead><tbody>{rows}</tbody>"
        f"<tfoot>{_row('mean of the domains', table.mean(axis=0))}</tfoot></table>"
    )


def _verdict_html(model: Any) -> str:
    diagnosis = VERDICTS.get(model)
    n_domains, n_classes = np.shape(model.prevalence_)
    found = f"{n_classes} classes in {n_domains} domains."
    if diagnosis is None:
        asked = "Not checked yet: <code>model.diagnose(X, domains)</code> says whether "
        return f"<p class='shoal-verdict'>{found} {asked}to trust them.</p>"
    sign, words = SIGNS[diagnosis.verdict]
    return (
        f"<p class='shoal-verdict'><strong>{sign} {words}.</strong> {found} "
        f"{escape(_weakest(diagnosis))}</p>"
    )


def _weakest(diagnosis: Any) -> str:
    """What speaks most against the classes; empty where nothing does."""
    for status in ("fail", "caution"):
        for finding in diagnosis.findings:
            if finding.status == status:
                return str(finding.reason)
    return ""


def _row(name: Any, shares: Any) -> str:
    return f"<tr><th>{escape(str(name))}</th>{_cells(shares[:MOST_CLASSES])}</tr>"


def _cells(shares: Any) -> str:
    """Shares with a shade behind them."""
    return "".join(
        "<td style='background:color-mix(in srgb,currentColor "
        f"{30 * share:.0f}%,transparent)'>{share:.0%}</td>"
        for share in shares
    )


def _caption(domains: list[Any], names: list[str]) -> str:
    more = [
        f"{len(values) - most} more {what}"
        for values, most, what in (
            (domains, MOST_DOMAINS, "domains"),
            (names, MOST_CLASSES, "classes"),
        )
        if len(values) > most
    ]
    return "share of each class in each domain" + "".join(f", {text}" for text in more)


# ---- why a row is of its class, and what that asks of an estimator -------------------


class UsualRow(NamedTuple):
    """What stands for columns that are not seen, and which the fit has used.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        NaN where the fit integrates out what it does not see.
    used : ndarray of shape (n_features,), bool
    """

    values: Array
    used: Array


class ExplainsRows:
    """The question, and two hooks that a fit answers better where it can."""

    class_weight_: Array

    def explain(
        self,
        x: Any,
        domain: Any = None,
        *,
        prevalence: Any = None,
        against: Any = None,
        random_state: Any = 0,
    ) -> "RowExplanation":
        """Why a row is of its class: evidence in nats, by column and by domain.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One row.
        domain : hashable, default=None
            Where it comes from; None for the equal mix of the training domains.
        prevalence : array-like of shape (n_classes,), default=None
            Class mix of a domain that fit has not seen, instead.
        against : int or str, default=None
            The class that the most probable one is held against; the next when None.
        random_state : int, RandomState instance or None, default=0
            Draws orders of columns where these are more than ten.

        Returns
        -------
        RowExplanation
            Parts that add up to the log odds of the two classes: the log odds of their
            shares in the domain, and what each column adds (its Shapley value, against
            the column not being seen or being as usual). See
            :class:`shoal.analysis.RowExplanation`.
        """
        from shoal.analysis._explain import explain

        how = {"prevalence": prevalence, "against": against}
        return explain(self, x, domain, **how, random_state=random_state)

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        """Log p(x|y) of validated rows, up to a number for each row.

        In the domains of the rows, where these change it. From q(y|x) unless the fit
        knows better: that cannot tell apart what is too improbable for a float.
        """
        given = np.maximum(self._class_given_x(X), TINY)
        return np.asarray(np.log(given) - np.log(np.maximum(self.class_weight_, TINY)))

    def _usual_row(self) -> UsualRow | None:
        """The row that columns are held against; None where rows have no columns."""
        return None

    def _class_given_x(self, X: Any) -> Array:
        raise NotImplementedError


def usual_row(used: Array, centre: Array) -> UsualRow:
    """From the centre of the columns that the fit has used."""
    values = np.zeros(len(used))
    values[used] = centre
    return UsualRow(values, used)


# ---- figures and report, as methods --------------------------------------------------

# Rooms above all estimators: looked up when one asks for them, never needed here.
CHOOSING, REPORT = "shoal.mixture", "shoal.report"

# Trees that were asked for, beside the prevalences of the fit that they are of: models
# are saved and compared without them.
TREES: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()


class ShowsItself:
    """Figures of :mod:`shoal.plots` as methods, and the page about a fit."""

    _origin: Any
    prevalence_: Any

    def plot_prevalence(self, intervals: Any = None, *, ax: Any = None) -> "Axes":
        """Class shares of every domain; see :func:`shoal.plots.plot_prevalence`.

        ``intervals`` are those of ``bootstrap``; without them dots stand alone.
        """
        return plots.plot_prevalence(self if intervals is None else intervals, ax=ax)

    def plot_map(self, X: Any, domains: Any = None, **options: Any) -> "Axes":
        """Rows by class in a plane; see :func:`shoal.plots.plot_map`."""
        return plots.plot_map(self, X, domains, **options)

    def plot_classes(self, X: Any, domains: Any = None, **options: Any) -> "Axes":
        """What tells the classes apart; see :func:`shoal.plots.plot_classes`."""
        return plots.plot_classes(self, X, domains, **options)

    def plot_choice(
        self,
        X: Any,
        domains: Any = None,
        n_classes: Iterable[int] | None = None,
        *,
        random_state: Any = 0,
        ax: Any = None,
    ) -> "Axes":
        """Held-out likelihood of the domains over the number of classes.

        Asks :func:`shoal.choose_n_classes` with the settings of this estimator, which
        takes several fits; :func:`shoal.plots.plot_choice` draws one made before.
        """
        choice = import_module(CHOOSING).choose_n_classes(
            X, domains, n_classes, estimator=self._origin, random_state=random_state
        )
        return plots.plot_choice(choice, ax=ax)

    def tree(self, X: Any, domains: Any = None, **options: Any) -> "ClassTree":
        """Which class splits into which; see :func:`shoal.class_tree`.

        It takes a fit for every smaller number of classes, and is kept for ``cut``.
        """
        from shoal.analysis._tree import class_tree

        found = class_tree(self, X, domains, **options)
        TREES[self] = self.prevalence_, replace(found, model=None)
        return found

    def cut(self, n_classes: int) -> Any:
        """A fitted estimator with fewer classes, by the tree of this one.

        ``tree`` must have been asked for before; all classes are the estimator itself.
        """
        fitted, found = TREES.get(self, (None, None))
        if found is None or fitted is not self.prevalence_:  # or of an earlier fit
            raise ValueError("there is no tree to cut; call tree(X, domains) first")
        return replace(found, model=self).cut(n_classes)

    def report(
        self, X: Any, domains: Any = None, path: Any = "report.html", **options: Any
    ) -> Any:
        """Write one offline HTML page about this fit, with intervals and checks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of fit.
        domains : array-like of shape (n_samples,)
            Where each row comes from.
        path : path-like, default="report.html"
            Replaced when it exists.
        **options
            Those of :func:`shoal.report.report`, such as ``title``, ``labels`` or
            ``n_resamples``.

        Returns
        -------
        pathlib.Path
            Of the page.
        """
        return import_module(REPORT).report(self, X, domains, path, **options)
