"""Figures and report of a fitted estimator, as methods of it."""

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import shoal.plots as plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shoal.analysis.tree import ClassTree

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
        from shoal.analysis.tree import class_tree

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
