"""Fitted models as folders that can be read in ten years and run nothing on loading.

========================  ============================================================
manifest.json             format number, class, parameters, fitted attributes, domains,
                          versions, seed, column schema, training summary, and the size
                          and SHA-256 of every other file
arrays.safetensors        the arrays that the manifest refers to
classes.json              ids, names and colours of the classes, and their history
parts/*.skops             scikit-learn's own objects (``_parts.py``), if any
README.md                 a card for people
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
import re
import stat
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
from shoal.io._files import digest, digest_json, whole_folder, writable
from shoal.io.model._card import check_probe, make_probe, write_card
from shoal.io.model._parts import dump_part, load_part
from shoal.io.model._values import Reader, Writer, damaged

FORMAT = 1

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
        **writer.parts,
    }
    manifest["files"] = {
        name: {"bytes": len(content), "sha256": digest(content)}
        for name, content in files.items()
    }
    manifest["digest"] = canonical_digest(manifest)
    files["README.md"] = write_card(estimator, manifest).encode()
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


# ---- the folder, of which nothing is believed ----------------------------------------

KNOWN_NAME = re.compile(r"arrays\.safetensors|classes\.json|parts/\d{1,6}\.skops")
MIB = 2**20
# The most that a file of each kind may hold, checked before it is read.
LIMITS = {".json": 256 * MIB, ".safetensors": 8192 * MIB, ".skops": 2048 * MIB}


class Folder:
    """Files of one folder, each read once, none larger than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expected: dict[str, Any] = {}

    def expect(self, files: Any) -> None:
        """Remember size and fingerprint of each file, as the manifest has them."""
        for name, facts in files.items():
            if not KNOWN_NAME.fullmatch(name):
                raise damaged(f"the manifest names a file that is not allowed: {name}")
            self._expected[name] = (facts["bytes"], facts["sha256"])

    def read(self, name: str) -> bytes:
        """Content of a file; an error unless it is what the manifest says."""
        expected = self._expected.get(name)
        if expected is None and name != "manifest.json":
            raise damaged(f"the manifest does not list {name}")
        path = self.path / name
        try:
            facts = path.stat()
        except OSError as error:
            raise damaged(f'"{self.path}" lacks {name}') from error
        # A pipe or a device could be read for ever.
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LIMITS[path.suffix]:
            raise damaged(f"{name} is not a file of a sensible size")
        if expected is not None and facts.st_size != expected[0]:
            raise damaged(f"{name} has {facts.st_size} bytes instead of {expected[0]}")
        content = path.read_bytes()
        if expected and digest(content) != expected[1]:
            raise damaged(f"{name} was changed after it was saved")
        return content


def find_model(path: Path) -> Path:
    """The model's folder: the path itself, or ``model/`` of a run."""
    for folder in (path, path / "model"):
        if (folder / "manifest.json").is_file():
            return folder
    what = "is not a shoal model" if path.exists() else "does not exist"
    raise ModelFileError(
        "E135", f'"{path}" {what}', "pass the folder that `shoal fit` or save wrote"
    )


def strict_json(content: bytes) -> Any:
    """JSON without NaN, without infinity and without a key that occurs twice."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            object_pairs_hook=_no_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(f"a JSON file of the model cannot be read ({error})") from error


def canonical_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its own digest, whatever its white space."""
    return digest_json({key: manifest[key] for key in manifest if key != "digest"})


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


# ---- loading -------------------------------------------------------------------------


def read_manifest(path: Any) -> dict[str, Any]:
    """The manifest of a saved model, a dict, checked to be whole.

    ``path`` is as in :func:`load`.
    """
    return _manifest_of(Folder(find_model(Path(path))))


def load(path: Any) -> Any:
    """Read a model that :func:`save` has written.

    Nothing in the folder can run code. Whatever is wrong with it, damage, another
    format or forgery, is a :class:`~shoal.exceptions.ModelFileError`.

    Parameters
    ----------
    path : path
        The model's folder, or that of the run it belongs to.

    Returns
    -------
    fitted estimator
        With ``schema_`` (a dict) if it was saved with a schema, and ``class_history_``.
    """
    folder = Folder(find_model(Path(path)))
    try:
        with warnings.catch_warnings():
            # Versions that differ, rare words: the stored probabilities are the judge.
            warnings.simplefilter("ignore")
            return _load_folder(folder)
    except ModelFileError:
        raise
    except Exception as error:
        # A forged file can go wrong in any way; this is the door that it stops at.
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise damaged(f'"{folder.path}" is damaged ({reason})') from error


def _load_folder(folder: Folder) -> Any:
    manifest = _manifest_of(folder)
    folder.expect(manifest["files"])
    classes = strict_json(folder.read("classes.json"))
    arrays = safetensors.load(folder.read("arrays.safetensors"))
    reader = Reader(arrays, lambda name: load_part(folder.read(name)))
    estimator = reader.model(manifest["model"])
    _set_classes(estimator, classes)
    check_probe(estimator, reader.decode(manifest["probe"]))
    if manifest["schema"] is not None:
        # below merges as well, where a further merge looks for it
        estimator.schema_ = estimator._origin.schema_ = dict(manifest["schema"])
    return estimator


def _manifest_of(folder: Folder) -> dict[str, Any]:
    manifest = strict_json(folder.read("manifest.json"))
    if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
        raise damaged(f'"{folder.path}" is not a shoal model')
    if manifest["format"] > FORMAT:
        raise ModelFileError(
            "E135",
            f'"{folder.path}" was made by a newer format '
            f"({manifest['format']} > {FORMAT})",
            "upgrade shoal",
        )
    if manifest.get("digest") != canonical_digest(manifest):
        raise damaged(f'"{folder.path}" was changed after it was saved (manifest.json)')
    return manifest


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
