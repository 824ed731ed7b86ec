"""Checks for stage estimators whose input is a table of probabilities or points."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from support.battery import (
    Check,
    assert_same,
    fitted_state,
    must_raise,
    parametrize,
    run_checks,
)

__all__ = [
    "TableProblem",
    "check_table_estimator",
    "make_table_problem",
    "parametrize_with_table_checks",
    "table_checks",
]

Array = np.ndarray[Any, Any]

# Solvers that stop when a whole batch has converged may differ in late digits.
SAME_ROW = 1e-6
# Methods that map a table to one result per row, where an estimator has them.
ROW_METHODS = ("predict", "predict_proba", "transform")


@dataclass(frozen=True)
class TableProblem:
    """What a stage estimator is fitted to and asked about.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Input of fit; rows sum to 1.
    rows : ndarray of shape (n_rows, n_columns)
        Input of predict, predict_proba and transform.
    stochastic : bool
        Whether a table whose rows are not distributions must be refused. False for
        estimators that take points of any kind, such as k-means.
    """

    table: Array
    rows: Array
    stochastic: bool = True


def make_table_problem(
    n_classes: int = 2, *, stochastic: bool = True, seed: int = 0
) -> TableProblem:
    """Draw an exact product of two factors with anchors in both, for any stage.

    A tenth of the 40 rows sits on each of the corners, and each class has a column of
    its own.
    """
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n_classes), size=40)
    weights[: 4 * n_classes] = np.repeat(np.eye(n_classes), 4, axis=0)
    corners = rng.dirichlet(np.ones(2 * n_classes), size=n_classes)
    corners[:, :n_classes] *= np.eye(n_classes)
    table = weights @ (corners / corners.sum(axis=1, keepdims=True))
    table /= table.sum(axis=1, keepdims=True)
    return TableProblem(table, table[::3], stochastic)


def table_checks(*, stochastic: bool = True) -> list[Check]:
    """List the checks of the battery, so that a test can count what ran.

    Parameters
    ----------
    stochastic : bool, default=True
        Include the checks that tables which are not row-stochastic are refused.
    """
    checks: list[Check] = [
        check_fit_returns_self,
        check_parameters_are_kept,
        check_clone_is_not_fitted,
        check_same_seed_same_result,
        check_fit_forgets_the_past,
        check_table_is_not_modified,
        check_single_precision,
        check_lists_and_frames,
        check_deepcopy_is_equal,
        check_row_methods_before_fit,
        check_row_alone_and_in_table,
        check_nan_raises,
        check_wrong_shapes_raise,
    ]
    if stochastic:
        checks += [check_negative_entries_raise, check_row_sums_raise]
    return checks


def check_table_estimator(
    estimator: Any, *, problem: TableProblem | None = None
) -> list[str]:
    """Hold a stage estimator to its contract; the first broken promise raises.

    Parameters
    ----------
    estimator : estimator instance
        With its seed set; it is cloned, never changed.
    problem : TableProblem, default=None
        :func:`make_table_problem` when None.

    Returns
    -------
    list of str
        Names of the checks that ran.
    """
    problem = make_table_problem() if problem is None else problem
    checks = table_checks(stochastic=problem.stochastic)
    return run_checks(checks, estimator, problem)


def parametrize_with_table_checks(
    estimators: Iterable[Any], *, problem: TableProblem | None = None
) -> Any:
    """Decorate a test so that it runs once for each estimator and check.

    The test takes ``estimator`` and ``check`` and calls ``check(estimator)``.
    """
    problem = make_table_problem() if problem is None else problem
    return parametrize(table_checks(stochastic=problem.stochastic), estimators, problem)


def _row_methods(estimator: Any) -> list[str]:
    return [name for name in ROW_METHODS if hasattr(estimator, name)]


# ---- fit --------------------------------------------------------------------------


def check_fit_returns_self(estimator: Any, problem: TableProblem) -> None:
    """Fit returns self and learns something."""
    assert estimator.fit(problem.table) is estimator, "fit must return self"
    assert fitted_state(estimator), "fit must set attributes that end in _"


def check_parameters_are_kept(estimator: Any, problem: TableProblem) -> None:
    """``__init__`` and fit leave parameters as they were given."""
    before = estimator.get_params(deep=False)
    rebuilt = type(estimator)(**before)
    for name, value in rebuilt.get_params(deep=False).items():
        assert value is before[name], f"__init__ must keep {name} as it is"
    kept = copy.deepcopy(before)
    estimator.fit(problem.table)
    assert_same(kept, estimator.get_params(deep=False), "parameters")
    assert estimator.set_params(**before) is estimator, "set_params must return self"


def check_clone_is_not_fitted(estimator: Any, problem: TableProblem) -> None:
    """Clones carry parameters, not results."""
    copied = clone(estimator.fit(problem.table))
    assert not fitted_state(copied), "a clone must not be fitted"


def check_same_seed_same_result(estimator: Any, problem: TableProblem) -> None:
    """Two fits with the same seed learn the same, bit by bit."""
    first = clone(estimator).fit(problem.table)
    second = clone(estimator).fit(problem.table)
    assert_same(fitted_state(first), fitted_state(second), "fit")


def check_fit_forgets_the_past(estimator: Any, problem: TableProblem) -> None:
    """Fitting again starts from nothing."""
    once = clone(estimator).fit(problem.table)
    other = np.roll(problem.table, 1, axis=0)
    twice = clone(estimator).fit(other).fit(problem.table)
    assert_same(fitted_state(once), fitted_state(twice), "second fit")


def check_table_is_not_modified(estimator: Any, problem: TableProblem) -> None:
    """Tables may be read-only, and stay what they were."""
    table, rows = problem.table.copy(), problem.rows.copy()
    fitted = clone(estimator).fit(table)
    for name in _row_methods(fitted):
        getattr(fitted, name)(rows)
    assert_array_equal(table, problem.table, err_msg="the table was modified")
    assert_array_equal(rows, problem.rows, err_msg="the rows were modified")
    table.setflags(write=False)
    rows.setflags(write=False)
    fitted = clone(estimator).fit(table)
    for name in _row_methods(fitted):
        getattr(fitted, name)(rows)


def check_single_precision(estimator: Any, problem: TableProblem) -> None:
    """Tables in single precision give finite results."""
    fitted = estimator.fit(problem.table.astype(np.float32))
    for name in _row_methods(fitted):
        result = getattr(fitted, name)(problem.rows.astype(np.float32))
        assert np.isfinite(result).all(), f"{name} in single precision"


def check_lists_and_frames(estimator: Any, problem: TableProblem) -> None:
    """Nested lists and data frames are as good as arrays."""
    expected = fitted_state(clone(estimator).fit(problem.table))
    from_list = fitted_state(clone(estimator).fit(problem.table.tolist()))
    assert_same(expected, from_list, "fit of a list")
    try:
        import pandas as pd
    except ImportError:
        return
    names = [f"column {index}" for index in range(problem.table.shape[1])]
    frame = pd.DataFrame(problem.table, columns=names)
    from_frame = fitted_state(clone(estimator).fit(frame))
    from_frame.pop("feature_names_in_", None)
    assert_same(expected, from_frame, "fit of a data frame")


def check_deepcopy_is_equal(estimator: Any, problem: TableProblem) -> None:
    """Deep copies know the same and answer the same."""
    fitted = estimator.fit(problem.table)
    twin = copy.deepcopy(fitted)
    assert_same(fitted_state(fitted), fitted_state(twin), "deep copy")
    for name in _row_methods(fitted):
        expected = getattr(fitted, name)(problem.rows)
        assert_array_equal(getattr(twin, name)(problem.rows), expected)


# ---- rows -------------------------------------------------------------------------


def check_row_methods_before_fit(estimator: Any, problem: TableProblem) -> None:
    """Every method that needs a fit says so."""
    for name in _row_methods(estimator):
        method = getattr(estimator, name)
        must_raise(NotFittedError, f"{name} before fit", method, problem.rows)


def check_row_alone_and_in_table(estimator: Any, problem: TableProblem) -> None:
    """Rows get the same answer alone and among others."""
    fitted = estimator.fit(problem.table)
    for name in _row_methods(fitted):
        method = getattr(fitted, name)
        together = method(problem.rows)
        for row in range(len(problem.rows)):
            alone = method(problem.rows[[row]])[0]
            assert_allclose(alone, together[row], rtol=0, atol=SAME_ROW, err_msg=name)


# ---- bad tables -------------------------------------------------------------------


def check_nan_raises(estimator: Any, problem: TableProblem) -> None:
    """NaN and infinity are refused."""
    for value in (np.nan, np.inf):
        table = problem.table.copy()
        table[1, 0] = value
        must_raise(ValueError, f"{value} in the table", estimator.fit, table)


def check_wrong_shapes_raise(estimator: Any, problem: TableProblem) -> None:
    """Only tables with two dimensions and at least one row are taken."""
    must_raise(ValueError, "one dimension", clone(estimator).fit, problem.table[0])
    must_raise(ValueError, "no rows", clone(estimator).fit, problem.table[:0])
    fitted = clone(estimator).fit(problem.table)
    narrow = problem.rows[:, :-1] + 0.1
    narrow /= narrow.sum(axis=1, keepdims=True)
    for name in _row_methods(fitted):
        must_raise(ValueError, f"{name} of narrow rows", getattr(fitted, name), narrow)


def check_negative_entries_raise(estimator: Any, problem: TableProblem) -> None:
    """Probabilities cannot be negative."""
    table = problem.table.copy()
    table[1] = 0
    table[1, :2] = [1.5, -0.5]
    must_raise(ValueError, "a negative entry", estimator.fit, table, match="negative")


def check_row_sums_raise(estimator: Any, problem: TableProblem) -> None:
    """Rows of probabilities sum to 1."""
    table = 0.9 * problem.table
    must_raise(ValueError, "rows that sum to 0.9", estimator.fit, table, match="sum")
