"""The frozen description of one run. What it says is all that a run may depend on."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from shoal.validation import check_real, check_whole

Setting = str | int | float | bool | None
#: A problem of the paper, whatever the wave: dataset, n_domains, alpha.
Cell = tuple[str, int, float]

# Long enough that two of a million specs share a name once in 10^7 such collections.
NAME_LENGTH = 16


@dataclass(frozen=True)
class Spec:
    """One run of one method on one problem.

    Attributes
    ----------
    dataset : str
        A data set of :mod:`shoal_bench.problems`.
    n_domains : int
        r; with the data set and alpha it says which of the paper's matrices mix it.
    alpha : float
        Concentration of the prevalences.
    wave : int
        The repetition: which draw of the matrix, and the seed of all chance.
    method : str
        A method of :mod:`shoal_bench.methods`.
    n_rows : int or None, default=None
        Training rows that the problem draws from; None: the data set's own number.
    settings : mapping of str to str, int, float, bool or None, default={}
        What differs from the defaults of the method and of the data set. Kept as
        sorted pairs; :attr:`options` is the mapping again.

    Examples
    --------
    >>> from shoal_bench.spec import Spec
    >>> spec = Spec("cifar20", 20, 3, wave=0, method="ddfa_si",
    ...             settings={"n_clusters": 50})
    >>> spec.name
    '5bf9d170e6272f44'
    >>> print(spec)
    cifar20 r=20 alpha=3 wave=0 ddfa_si n_clusters=50
    >>> Spec.from_dict(spec.to_dict()) == spec
    True
    """

    dataset: str
    n_domains: int
    alpha: float
    wave: int
    method: str
    n_rows: int | None = None
    settings: Any = ()

    def __post_init__(self) -> None:
        check_whole(1, n_domains=self.n_domains)
        check_whole(0, wave=self.wave)
        if self.n_rows is not None:
            check_whole(1, n_rows=self.n_rows)
        check_real(0, above=True, alpha=self.alpha)
        object.__setattr__(self, "settings", _frozen(self.settings))

    @property
    def name(self) -> str:
        """Hash of :attr:`canonical`: the name of the run, in any process, for ever."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:NAME_LENGTH]

    @property
    def canonical(self) -> str:
        """JSON with sorted keys; whole floats as integers, defaults left out.

        A field added later must have a default, so that old runs keep their names.
        """
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @property
    def options(self) -> dict[str, Setting]:
        """The settings as a mapping."""
        return dict(self.settings)

    @property
    def cell(self) -> Cell:
        """The problem whatever the wave: one cell of a table."""
        return self.dataset, self.n_domains, float(self.alpha)

    @property
    def seed(self) -> int:
        """Seed of everything random but the matrix."""
        return self.wave

    def to_dict(self) -> dict[str, Any]:
        """As JSON writes it; what is at its default is left out."""
        content: dict[str, Any] = {
            "dataset": self.dataset,
            "n_domains": int(self.n_domains),
            "alpha": _plain(self.alpha),
            "wave": int(self.wave),
            "method": self.method,
        }
        if self.n_rows is not None:
            content["n_rows"] = int(self.n_rows)
        if self.settings:
            content["settings"] = self.options
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The spec that :meth:`to_dict` described."""
        return cls(**content)

    def __str__(self) -> str:
        words = [f"{self.dataset} r={self.n_domains} alpha={self.alpha:g}"]
        words += [f"wave={self.wave}", self.method]
        if self.n_rows is not None:
            words.append(f"n_rows={self.n_rows}")
        return " ".join(words + [f"{key}={value}" for key, value in self.settings])


def _frozen(
    settings: Mapping[str, Setting] | Iterable[tuple[str, Setting]],
) -> tuple[tuple[str, Setting], ...]:
    """Settings as sorted pairs, each value in its one canonical form."""
    pairs = dict(settings)
    for name, value in pairs.items():
        if not isinstance(name, str):
            raise TypeError(f"settings must be named by strings, got {name!r}")
        if value is not None and not isinstance(value, str | int | float):
            raise TypeError(
                f"settings[{name!r}] must be a string, number, bool or None, got "
                f"{type(value).__name__}"
            )
    return tuple((name, _plain(pairs[name])) for name in sorted(pairs))


def _plain(value: Any) -> Any:
    """Whole floats as integers: 3 and 3.0 are one alpha, and one name."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"settings must be finite numbers, got {value!r}")
        return int(value) if value.is_integer() else float(value)
    return value
