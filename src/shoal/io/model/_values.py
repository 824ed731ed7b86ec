"""Fitted objects as strict JSON and named arrays, exactly and without running code.

JSON has no tuples, no NaN, no numpy scalars and no arrays. Whatever it lacks becomes an
object whose first key starts with ``$``: ``{"$tuple": [1, 2]}``, ``{"$float": "nan"}``.
Objects of shoal's own classes are ``{"$object": name, "state": {...}}``, the name from
a fixed list: a class may move to another module without harm to saved models.
Scikit-learn's objects are files of their own. A model is ``{"class": name, ...}``, the
name from a list too, the rest is what its hook ``_dump`` writes and ``_load`` reads.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from shoal.io._settings import LOADING
from shoal.io.model._folder import (
    Budget,
    check_classes,
    check_widths,
    damaged,
    one_job,
)

Array = np.ndarray[Any, Any]

#: The only models that can be saved and loaded, and where they live, imported when one
#: turns up. A new estimator needs one line here.
MODELS = {
    "CountMixture": "shoal.counts",
    "DDFA": "shoal.ddfa",
    "DensityMixture": "shoal.density",
    "DiscreteMixture": "shoal.discrete",
    "DomainMixture": "shoal.mixture",
    "ImageMixture": "shoal.vision",
    "MergedClasses": "shoal.base._derived",
    "UpdatedMixes": "shoal.base._derived",
}

#: The only other classes that a model file can name, and where they live.
CLASSES = {
    "Adjuster": "shoal.stages.adjust",
    "Bags": "shoal.counts._bags",
    "Calibration": "shoal.stages.discriminate._calibrate",
    "Columns": "shoal.density._columns",
    "Components": "shoal.counts._components",
    "Density": "shoal.density._gaussian",
    "DensityMixture": "shoal.density._estimator",
    "Discriminator": "shoal.stages.discriminate._estimator",
    "EarlyStoppedMLP": "shoal.stages.discriminate._early_stopping",
    "Factorization": "shoal.stages.factorize._estimator",
    "Factorizer": "shoal.stages.factorize._estimator",
    "FeatureMap": "shoal.likelihood._features",
    "Filling": "shoal.mixture._gaps",
    "GivenClusters": "shoal.stages.discretize",
    "KMeansDiscretizer": "shoal.stages._kmeans",
    "LeadingComponents": "shoal.stages.discriminate._named",
    "Knowledge": "shoal.validation._known",
    "KnownClasses": "shoal.base._known",
    "Novelty": "shoal.analysis._novelty",
    "Penalties": "shoal.likelihood._problem",
    "PointMassDiscretizer": "shoal.stages.discretize",
    "RBFFeatures": "shoal.stages.discriminate._named",
    "RankResult": "shoal.analysis._rank",
    "Route": "shoal.mixture._route",
    "Strangers": "shoal.analysis._unknown",
}

# One number for each training row and domain: large, and only fit looks at it.
LEFT_OUT = {("Discriminator", "domain_given_x_")}
# Saved with the model, but in places of their own.
ELSEWHERE = {"schema_", "class_history_"}

# Text arrays are padded to their longest entry: a bound on what a file can ask for.
LONGEST_TEXT = 400_000

NAMED_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Writer:
    """Turns values into JSON, and collects the arrays and parts they refer to."""

    def __init__(self, dump_part: Callable[[Any], bytes]) -> None:
        self.arrays: dict[str, Array] = {}
        self.parts: dict[str, bytes] = {}
        self._dump_part = dump_part

    def model(self, estimator: Any) -> dict[str, Any]:
        """A fitted estimator as JSON."""
        name = type(estimator).__name__
        if name not in MODELS:
            raise TypeError(
                f"estimator must be one of {', '.join(MODELS)}, got {name} (a Pipeline "
                "or search: save the model inside it)"
            )
        return {"class": name, **estimator._dump(self)}

    def plain(self, estimator: Any) -> dict[str, Any]:
        """Parameters and fitted attributes of an estimator, all of them."""
        parameters = set(estimator.get_params(deep=False))
        state = self.state(estimator)
        return {
            "params": {key: state[key] for key in state if key in parameters},
            "state": {key: state[key] for key in state if key not in parameters},
        }

    def encode(self, value: Any, where: str) -> Any:
        """JSON of ``value``; ``where`` names it in the error when there is none."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, bytes):
            return {"$bytes": value.hex()}
        if isinstance(value, (list, tuple, dict)):
            return self._container(value, where)
        if isinstance(value, (np.ndarray, np.generic, np.dtype)):
            return self._numpy(value, where)
        if isinstance(value, np.random.RandomState):
            state = self.encode(value.get_state(legacy=True), where)
            return {"$random_state": state}
        return self._object(value, where)

    def _container(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            pairs = [[key, item] for key, item in value.items()]
            return {"$dict": self.encode(pairs, where)}
        items = [self.encode(item, where) for item in value]
        return {"$tuple": items} if type(value) is tuple else items

    def _numpy(self, value: Any, where: str) -> Any:
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        dtype, kind = value.dtype, value.dtype.kind
        if kind not in "biufMUSO" or dtype.itemsize > 8 and kind == "f":
            raise TypeError(f"cannot save {where}, of {dtype}; use float64")
        if isinstance(value, np.generic):
            plain = value.view(np.int64) if kind == "M" else value
            return {"$scalar": dtype.str, "value": self.encode(plain.item(), where)}
        shape = list(value.shape)
        if kind in "US":
            items = self.encode(value.ravel().tolist(), where)
            return {"$text": items, "shape": shape, "dtype": dtype.str}
        if kind == "O":
            items = [self.encode(item, where) for item in value.ravel()]
            return {"$objects": items, "shape": shape}
        return self._numbers(value)

    def _numbers(self, value: Array) -> dict[str, Any]:
        """Whole numbers as small as they come; Fortran order is kept, bit for bit."""
        node: dict[str, Any] = {"dtype": value.dtype.str}
        if value.dtype.kind == "M":
            value = value.view(np.int64)
        if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
            node["order"] = "F"
            value = value.T
        if value.dtype.kind in "iu" and value.size:
            smallest = np.result_type(
                np.min_scalar_type(value.min()), np.min_scalar_type(value.max())
            )
            value = value.astype(smallest) if smallest.kind in "iu" else value
        name = f"a{len(self.arrays)}"
        value = value.astype(value.dtype.newbyteorder("="), copy=False)
        self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        return {"$array": name, **node}

    def _object(self, value: Any, where: str) -> Any:
        kind = type(value)
        if CLASSES.get(kind.__name__) == kind.__module__:
            return {"$object": kind.__name__, "state": self.state(value, where)}
        _refuse_network(value, where)
        if kind is Pipeline:  # taken apart, since its steps may be shoal's own
            steps = self.encode(list(value.steps), where)
            return {"$pipeline": steps, "transform_input": value.transform_input}
        if kind.__module__.startswith("sklearn."):
            name = f"parts/{len(self.parts)}.skops"
            self.parts[name] = self._dump_part(value)
            return {"$part": name}
        raise TypeError(
            f"cannot save {where}, a {kind.__module__}.{kind.__qualname__}: only "
            "numbers, text, arrays and the estimators of shoal and scikit-learn can "
            "be saved without code; use one of those"
        )

    def state(self, value: Any, where: str = "") -> dict[str, Any]:
        """Attributes of one of shoal's objects; private ones are working memory."""
        name = type(value).__name__
        return {
            key: self.encode(item, f"{where or name}.{key}")
            for key, item in vars(value).items()
            if not key.startswith("_")
            and key not in ELSEWHERE
            and (name, key) not in LEFT_OUT
        }


def _refuse_network(value: Any, where: str) -> None:
    """Say of an object of shoal.vision, also inside a FrozenEstimator, what to do."""
    for one in (value, getattr(value, "estimator", None)):
        if type(one).__module__.startswith("shoal.vision."):
            raise TypeError(
                f"cannot save {where}, of the class {type(one).__name__}: of models "
                "with a network only ImageMixture can be saved; fit one of those, or "
                "keep this model with pickle"
            )


class Reader:
    """Turns JSON, arrays and parts back into values, and trusts none of them.

    What is named twice is made once, and all that is made is paid for.
    """

    def __init__(
        self,
        arrays: dict[str, Array],
        load_part: Callable[[str], Any],
        budget: Budget | None = None,
    ) -> None:
        self.arrays = arrays
        self.budget = budget or Budget()
        self._load_part = load_part
        self._made: dict[tuple[str, ...], Array] = {}

    def model(self, content: Any) -> Any:
        """The estimator that :meth:`Writer.model` has written."""
        name = content["class"]
        if name not in MODELS:
            raise damaged(f"the manifest names a model that shoal has not: {name}")
        return getattr(import_module(MODELS[name]), name)._load(content, self)

    def plain(self, cls: Any, content: Any) -> Any:
        """The estimator that :meth:`Writer.plain` has written."""
        return self.restore(cls, {**content["params"], **content["state"]})

    def decode(self, node: Any) -> Any:
        """Value of a JSON node."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        kinds = {
            "$float": lambda node: NAMED_FLOATS[node["$float"]],
            "$bytes": lambda node: bytes.fromhex(node["$bytes"]),
            "$tuple": lambda node: tuple(self.decode(_listed(node["$tuple"]))),
            "$dict": self._dict,
            "$array": self._array,
            "$scalar": self._scalar,
            "$objects": self._objects,
            "$text": self._text,
            "$dtype": lambda node: _plain_dtype(node["$dtype"]),
            "$random_state": self._random_state,
            "$object": self._object,
            "$pipeline": self._pipeline,
            "$part": lambda node: self._load_part(node["$part"]),
        }
        kind = next(iter(node), None) if isinstance(node, dict) else None
        if kind not in kinds:
            raise damaged(f"the manifest has a value of an unknown kind ({kind!r})")
        return kinds[kind](node)

    def _dict(self, node: Any) -> dict[Any, Any]:
        return {
            self.decode(key): self.decode(item) for key, item in _listed(node["$dict"])
        }

    def _array(self, node: Any) -> Array:
        name, dtype = node["$array"], _plain_dtype(node["dtype"])
        is_fortran = node.get("order") == "F"
        key = (str(name), dtype.str, str(is_fortran))
        if key not in self._made:
            value = self._converted(name, dtype)
            self._made[key] = value.T if is_fortran else value
        return self._made[key]

    def _converted(self, name: str, dtype: np.dtype[Any]) -> Array:
        stored = self.arrays[name]
        self.budget.pay_array(stored.shape, dtype.itemsize)
        if dtype.kind == "M":
            return np.asarray(stored.astype(np.int64).view(dtype))
        value = stored.astype(dtype)
        if not np.array_equal(value, stored, equal_nan=stored.dtype.kind == "f"):
            raise damaged(f"array {name} does not fit its type {dtype}")
        return value

    def _scalar(self, node: Any) -> Any:
        value, dtype = self.decode(node["value"]), _element_dtype(node["$scalar"])
        self.budget.pay_bytes(dtype.itemsize)
        if dtype.kind == "M":
            return np.int64(value).view(dtype)
        scalar = np.array(value, dtype=dtype)[()]
        if not isinstance(scalar, np.generic) or scalar != value == value:
            raise damaged(f"the manifest has a scalar that does not fit {dtype}")
        return scalar

    def _objects(self, node: Any) -> Array:
        items = self.decode(_listed(node["$objects"]))
        value = np.empty(len(items), dtype=object)
        value[:] = items
        return value.reshape(_shape(node))

    def _text(self, node: Any) -> Array:
        items = self.decode(_listed(node["$text"]))
        dtype = _element_dtype(node["dtype"])
        if dtype.kind not in "US":
            raise damaged("the manifest has a text array that is none")
        self.budget.pay_array([len(items)], dtype.itemsize)
        if not all(isinstance(item, str if dtype.kind == "U" else bytes)
                   for item in items):  # fmt: skip
            raise damaged("the manifest has a text array that holds something else")
        return np.array(items, dtype=dtype).reshape(_shape(node))

    def _random_state(self, node: Any) -> np.random.RandomState:
        random = np.random.RandomState()
        random.set_state(self.decode(node["$random_state"]))
        check_random(random)
        return random

    def _object(self, node: Any) -> Any:
        name = node["$object"]
        if name not in CLASSES:
            raise damaged(f"the manifest names a class that is not allowed: {name!r}")
        return self.restore(getattr(import_module(CLASSES[name]), name), node["state"])

    def _pipeline(self, node: Any) -> Pipeline:
        steps = self.decode(_listed(node["$pipeline"]))
        return Pipeline(steps, transform_input=node["transform_input"])

    def restore(self, cls: Any, state: Any) -> Any:
        """An object of one of shoal's classes; neither __init__ nor fit is called."""
        self.budget.pay_nodes(LOADING.nodes_per_object)
        values = {key: self.decode(item) for key, item in state.items()}
        check_widths(values)
        check_classes(values)
        one_job(values)
        if not issubclass(cls, BaseEstimator) and dataclasses.is_dataclass(cls):
            return cls(**values)  # type: ignore[operator]
        parameters = set(inspect.signature(cls).parameters)
        absent = sorted(parameters - set(values))
        foreign = [key for key in values if not _may_hold(cls, key, parameters)]
        if foreign or absent:
            raise damaged(
                f"{cls.__name__} in the manifest has the wrong attributes "
                f"({', '.join((foreign or absent)[:3])})"
            )
        value = cls.__new__(cls)
        value.__dict__.update(values)
        return value


def check_random(random: Any) -> None:
    """Raise for a place in a random stream that lies outside of it: C reads there."""
    state = random._bit_generator.state
    place = state.get("state", {})
    if not 0 <= place.get("pos", 0) <= 624 or not 0 <= state.get("buffer_pos", 0) <= 4:
        raise damaged("the model has a random state that points outside of itself")


def _may_hold(cls: type, key: str, parameters: set[str]) -> bool:
    """A parameter, or a fitted attribute; never something that hides a method."""
    fitted = key.isidentifier() and key.endswith("_") and not key.startswith("_")
    return key in parameters or (fitted and not hasattr(cls, key))


def _element_dtype(name: Any) -> np.dtype[Any]:
    """A type of number, date or text, of a size that is not absurd."""
    dtype = np.dtype(name) if isinstance(name, str) else np.dtype(object)
    longest = LONGEST_TEXT if dtype.kind in "US" else 8
    if dtype.kind not in "biufMUS" or dtype.itemsize > longest or dtype.shape:
        raise damaged(f"the manifest names a type that is none: {name!r}")
    return dtype


def _plain_dtype(name: Any) -> np.dtype[Any]:
    dtype = _element_dtype(name)
    if dtype.kind in "US":
        raise damaged(f"the manifest has text where numbers belong: {name!r}")
    return dtype


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise damaged("the manifest has something else where a list belongs")
    return value


def _shape(node: Any) -> tuple[int, ...]:
    shape = _listed(node["shape"])
    if not all(type(size) is int and size >= 0 for size in shape):
        raise damaged("the manifest has a shape that is none")
    return tuple(shape)
