"""Fitted models as folders that can be read in ten years and run nothing on loading.

========================  ============================================================
manifest.json             format number, class, parameters, fitted attributes, domains,
                          versions, seed, column schema, training summary, and the size
                          and SHA-256 of every other file
arrays.safetensors        the arrays that the manifest refers to
classes.json              ids, names and colours of the classes, and their history
parts/*.skops             scikit-learn's own objects (``_parts.py``), if any
README.md                 a card for people
signature.json            if somebody with a key has signed the manifest (``_sign.py``)
========================  ============================================================

No row of the training data is stored, with one exception that lies in the method: the
vocabulary of a DiscreteMixture with ``input="rows"`` is the set of distinct rows. The
class and cluster of each training row are stored (``labels_``), q(d|x) of the training
rows is not: ``discriminator_.domain_given_x_`` is the one attribute that a loaded model
lacks. Where rows are few, a centre that describes where they lie (``novelty_``, the
RBF centres of ``expansion="rbf"``) can be the mean of a single one. The network of an
ImageMixture is among the arrays.

A model is loaded again before it takes its name: what is saved can be loaded, and gives
the same probabilities for a few made-up rows, which are stored with it. A later version
of a library that would give others is noticed.
"""

import contextlib
import json
import platform
import warnings
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import numpy as safetensors
from sklearn.utils.validation import check_is_fitted

import shoal
from shoal._palette import class_color
from shoal.exceptions import CodedError, ModelFileError
from shoal.io._files import digest, writable
from shoal.io._swap import whole_folder
from shoal.io.model._card import check_probe, make_probe, write_card
from shoal.io.model._folder import (
    FORMAT,
    Folder,
    canonical_digest,
    check_signature,
    damaged,
    find_model,
    read_key,
    strict_json,
)
from shoal.io.model._parts import dump_part, load_part
from shoal.io.model._values import Reader, Writer

VERSIONED = ("numpy", "scipy", "scikit-learn", "safetensors", "skops")


# ---- saving --------------------------------------------------------------------------


def save(
    estimator: Any,
    path: Any,
    *,
    schema: Any = None,
    summary: dict[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write a fitted model to a folder.

    Parameters
    ----------
    estimator : fitted DomainMixture, DDFA, DiscreteMixture or ImageMixture
        Also merged or named.
    path : path
        The folder; it appears when it is whole.
    schema : Schema or dict, default=None
        How columns become X, so that predict can read files
        (:func:`shoal.io.read` gives it as ``table.schema``).
    summary : dict, default=None
        JSON-able facts about the training, for people and programs.
    force : bool, default=False
        Replace a model that is already there. Other folders are never replaced.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, shoal
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     400, n_classes=2, n_domains=3, separation=4.0, random_state=1)
    >>> model = shoal.DomainMixture(2, search=False, random_state=0).fit(X, domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = shoal.load(shoal.save(model, f"{folder}/model"))
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    check_is_fitted(estimator)
    path = Path(path)
    _refuse_to_replace(path, force)
    writer = Writer(dump_part)
    manifest = _manifest(estimator, writer, schema, summary)
    files = {
        "arrays.safetensors": safetensors.save(writer.arrays),
        "classes.json": _json(_classes(estimator)),
        "README.md": write_card(estimator, manifest).encode(),
        **writer.parts,
    }
    manifest["files"] = {
        name: {"bytes": len(content), "sha256": digest(content)}
        for name, content in files.items()
    }
    manifest["digest"] = canonical_digest(manifest)
    files["manifest.json"] = _json(manifest)
    with writable(path), whole_folder(path) as folder:
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        load(folder)
    return path


def _manifest(
    estimator: Any, writer: Writer, schema: Any, summary: Any
) -> dict[str, Any]:
    model = writer.model(estimator)
    schema = _inherited(estimator, "schema_") if schema is None else schema
    seed = _inherited(estimator, "random_state")
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "class": type(estimator).__name__,
        "n_classes": int(estimator.n_classes_),
        "n_features": int(estimator.n_features_in_),
        "domains": _readable_domains(estimator.domains_, writer),
        "versions": _versions(),
        "seed": seed if isinstance(seed, int) else None,
        "schema": schema.to_dict() if hasattr(schema, "to_dict") else schema,
        "summary": summary,
        "model": model,
        "probe": writer.encode(make_probe(estimator), "probe"),
    }


def _versions() -> dict[str, str]:
    found = {"shoal": shoal.__version__, "python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _readable_domains(domains: Any, writer: Writer) -> Any:
    """Domains for people and programs; the model has its own, with their exact type."""
    plain = domains.astype(str) if domains.dtype.kind == "M" else domains
    return writer.encode(plain.tolist(), "domains_")


def _classes(estimator: Any) -> dict[str, Any]:
    n_classes = estimator.n_classes_
    return {
        "format": FORMAT,
        "classes": [
            {"id": f"c{index}", "name": name, "colour": class_color(index, n_classes)}
            for index, name in enumerate(estimator.class_names_)
        ],
        "history": list(getattr(estimator, "class_history_", [])),
    }


def _inherited(estimator: Any, name: str) -> Any:
    """An attribute of a model, or of the one that it was merged from."""
    return getattr(estimator, name, getattr(estimator._origin, name, None))


def _json(content: Any) -> bytes:
    try:
        return json.dumps(content, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"schema and summary must be plain JSON without NaN: {error}"
        ) from error


def _refuse_to_replace(path: Path, force: bool) -> None:
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    is_model = path.is_dir() and (path / "manifest.json").is_file()
    if not is_model:
        raise CodedError(
            "E136",
            f'"{path}" exists and is not a shoal model',
            "choose another path; only models are replaced",
        )
    if not force:
        raise CodedError(
            "E136",
            f'"{path}" already holds a model',
            "force=True (--force) to replace it, or another path",
        )


# ---- loading -------------------------------------------------------------------------


def read_manifest(path: Any) -> dict[str, Any]:
    """The manifest of a saved model, a dict, checked to be whole.

    ``path`` is as in :func:`load`.
    """
    return Folder(find_model(Path(path))).manifest()


def load(path: Any, *, key: Any = None) -> Any:
    """Read a model that :func:`save` has written.

    Damage is found: every file is under a digest. Forgery is not, since whoever writes
    the digests anew can make another model, and this one loads; a model from a stranger
    can answer wrongly. It can neither run code, nor start a process, nor take more
    memory than a multiple of its size and half a GiB. To know whose it is, sign it
    (:func:`shoal.io.sign`, ``shoal sign``) and give the key here. Whatever is wrong is
    a :class:`~shoal.exceptions.ModelFileError` of one line.

    Parameters
    ----------
    path : path
        The model's folder, or that of the run it belongs to.
    key : bytes or path, default=None
        The key that the model was signed with, or the file that holds it. The signature
        is checked before anything is read that it does not cover.

    Returns
    -------
    fitted estimator
        With ``schema_`` (a dict) if it was saved with a schema, and ``class_history_``.
    """
    folder = Folder(find_model(Path(path)))
    secret = None if key is None else read_key(key)
    try:
        if secret is not None:
            check_signature(folder, secret)
        with warnings.catch_warnings():
            # Versions that differ, rare words: the stored probabilities are the judge.
            warnings.simplefilter("ignore")
            return _load_folder(folder)
    except ModelFileError:
        raise
    except Exception as error:
        # A forged file can go wrong in any way; this is the door that it stops at.
        raise damaged(f'"{folder.path}" is damaged ({_reason(error)})') from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def _load_folder(folder: Folder) -> Any:
    manifest = folder.manifest()
    folder.expect(manifest["files"])
    budget = folder.budget
    if "README.md" in manifest["files"]:  # the first models did not list it
        folder.read("README.md")
    classes = strict_json(folder.read("classes.json"), budget)
    content = folder.read("arrays.safetensors")
    budget.pay_bytes(len(content))
    reader = Reader(safetensors.load(content), LoadedParts(folder), budget)
    del content  # the arrays are copies
    estimator = reader.model(manifest["model"])
    _set_classes(estimator, classes)
    check_probe(estimator, reader.decode(manifest["probe"]))
    if manifest["schema"] is not None:
        # below merges as well, where a further merge looks for it
        estimator.schema_ = estimator._origin.schema_ = dict(manifest["schema"])
    return estimator


class LoadedParts:
    """The parts of a model by name, each read once and paid for at every use."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Any, int]] = {}

    def __call__(self, name: str) -> Any:
        """One of them."""
        budget = self._folder.budget
        if name not in self._known:
            self._known[name] = load_part(self._folder.read(name), budget)
        part, nodes = self._known[name]
        budget.pay_nodes(nodes)
        return part


def _set_classes(estimator: Any, content: Any) -> None:
    classes, history = content["classes"], content["history"]
    names = [one["name"] for one in classes]
    right = (
        [one["id"] for one in classes] == [f"c{index}" for index in range(len(names))]
        and len(names) == estimator.n_classes_ == len(set(names))
        and all(isinstance(name, str) for name in names)
        and isinstance(history, list)
        and all(isinstance(step, dict) for step in history)
    )
    if not right:
        raise damaged("classes.json does not fit the model")
    estimator.class_names_ = names
    estimator.class_history_ = history
    shape = len(estimator.domains_), estimator.n_classes_
    if np.shape(estimator.prevalence_) != shape:
        raise damaged("the prevalence does not fit domains and classes")
