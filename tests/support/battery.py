"""What both batteries share: running checks, marking them, comparing fits."""

import copy
import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from shoal.exceptions import ShoalWarning

__all__ = [
    "EXPECTED_FAILURES",
    "Check",
    "assert_same",
    "fitted_state",
    "must_raise",
    "parametrize",
    "run_checks",
]

Check = Callable[[Any, Any], None]

# (class of the estimator, name of the check) -> reason. Nothing is excused today.
EXPECTED_FAILURES: dict[tuple[str, str], str] = {}


def run_checks(checks: Iterable[Check], estimator: Any, problem: Any) -> list[str]:
    """Run every check on clones of the estimator; return the names of those run."""
    names = []
    for check in checks:
        _run_check(estimator, check=check, problem=problem)
        names.append(_name(check))
    return names


def parametrize(checks: list[Check], estimators: Iterable[Any], problem: Any) -> Any:
    """Make the decorator ``pytest.mark.parametrize("estimator, check", ...)``."""
    import pytest

    cases = []
    for estimator in estimators:
        kind = type(estimator).__name__
        if isinstance(estimator, type):
            raise TypeError(f"pass an instance, not the class {estimator.__name__}")
        for check in checks:
            reason = EXPECTED_FAILURES.get((kind, _name(check)))
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason)]
            bound = functools.partial(_run_check, check=check, problem=problem)
            case = pytest.param(
                estimator, bound, marks=marks, id=f"{kind}-{_name(check)}"
            )
            cases.append(case)
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _run_check(estimator: Any, *, check: Check, problem: Any) -> None:
    with warnings.catch_warnings():
        # Small problems make honest estimators complain; that is not tested here.
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(clone(estimator), problem)


def _name(check: Check) -> str:
    return str(getattr(check, "__name__", check))


def must_raise(
    kind: type[Exception],
    what: str,
    function: Callable[..., Any],
    *arguments: Any,
    match: str = "",
) -> None:
    """Fail unless the call raises an error of that kind with a matching message."""
    message = None
    try:
        function(*arguments)
    except kind as error:
        message = str(error)
    assert message is not None, f"{what} must raise {kind.__name__}"
    assert re.search(match, message), f"{what}: unclear message {message!r}"


def fitted_state(estimator: Any) -> dict[str, Any]:
    """Everything that fit has learned, as a copy."""
    state = vars(estimator).items()
    learned = {name: value for name, value in state if name.endswith("_")}
    return copy.deepcopy(learned)


def assert_same(first: Any, second: Any, what: str, rtol: float = 0) -> None:
    """Compare what two fits have learned: arrays, numbers, objects that hold them."""
    assert type(first) is type(second), f"{what}: {type(first)} and {type(second)}"
    if dataclasses.is_dataclass(first) or hasattr(first, "get_params"):
        first, second = vars(first), vars(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys(), f"{what}: different attributes"
        for name in first:
            assert_same(first[name], second[name], f"{what}.{name}", rtol)
    elif isinstance(first, (list, tuple)):
        assert len(first) == len(second), f"{what}: different lengths"
        for one, other in zip(first, second, strict=True):
            assert_same(one, other, what, rtol)
    elif isinstance(first, (np.ndarray, float, np.floating)):
        _assert_same_array(np.asarray(first), np.asarray(second), what, rtol)
    elif isinstance(first, (str, int, bool, type(None))):
        assert first == second, f"{what}: {first!r} and {second!r}"


def _assert_same_array(
    first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], what: str, rtol: float
) -> None:
    if first.dtype.kind in "fc":
        np.testing.assert_allclose(first, second, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(first, second, err_msg=what)
