"""Each class of model as JSON, with its arrays and parts elsewhere, and back again."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shoal.io.values import Reader, Writer, damaged

__all__ = ["MODELS", "dump_model", "load_model"]


def _dump_plain(estimator: Any, writer: Writer) -> dict[str, Any]:
    parameters = set(estimator.get_params(deep=False))
    state = writer.state(estimator)
    return {
        "params": {key: state[key] for key in state if key in parameters},
        "state": {key: state[key] for key in state if key not in parameters},
    }


def _plain_loader(home: str, name: str) -> Callable[[Any, Reader], Any]:
    def load_plain(content: Any, reader: Reader) -> Any:
        cls = getattr(import_module(home), name)
        return reader.restore(cls, {**content["params"], **content["state"]})

    return load_plain


def _dump_merged(estimator: Any, writer: Writer) -> dict[str, Any]:
    return {
        "groups": [[int(index) for index in group] for group in estimator.groups],
        "names": list(estimator.class_names_),
        "estimator": dump_model(estimator.estimator, writer),
    }


def _load_merged(content: Any, reader: Reader) -> Any:
    from shoal.merged import MergedClasses

    origin = load_model(content["estimator"], reader)
    groups = [[int(index) for index in group] for group in content["groups"]]
    if sorted(sum(groups, [])) != list(range(origin.n_classes_)) or [] in groups:
        raise damaged("the merged classes do not add up")
    names = [str(name) for name in content["names"]]
    return MergedClasses(origin, groups)._see_through(names)


Dump = Callable[[Any, Writer], dict[str, Any]]
Load = Callable[[Any, Reader], Any]

#: How each class of model is written and read, by its name. A class that needs more
#: than this package stands here as the module that puts its pair of functions in place
#: when it is imported.
MODELS: dict[str, tuple[Dump, Load] | str] = {
    "DDFA": (_dump_plain, _plain_loader("shoal.ddfa", "DDFA")),
    "DiscreteMixture": (
        _dump_plain,
        _plain_loader("shoal.discrete", "DiscreteMixture"),
    ),
    "DomainMixture": (_dump_plain, _plain_loader("shoal.mixture", "DomainMixture")),
    "ImageMixture": "shoal.io.image_models",
    "MergedClasses": (_dump_merged, _load_merged),
}


def dump_model(estimator: Any, writer: Writer) -> dict[str, Any]:
    """A fitted estimator as JSON; its arrays and parts go to the writer."""
    name = type(estimator).__name__
    if name not in MODELS:
        raise TypeError(
            f"estimator must be one of {', '.join(MODELS)}, got {name} (a Pipeline or "
            "search: save the model inside it)"
        )
    return {"class": name, **_functions(name)[0](estimator, writer)}


def load_model(content: Any, reader: Reader) -> Any:
    """The estimator of :func:`dump_model`."""
    name = content["class"]
    if name not in MODELS:
        raise damaged(f"the manifest names a class of model that shoal has not: {name}")
    return _functions(name)[1](content, reader)


def _functions(name: str) -> tuple[Dump, Load]:
    entry = MODELS[name]
    if isinstance(entry, str):
        import_module(entry)
        entry = MODELS[name]
    assert not isinstance(entry, str), f"{entry} must set MODELS[{name!r}]"
    return entry
