"""What loading a model may take: one account for memory, values, depth and files.

A folder of a hundred kilobytes can ask for gigabytes: by zeros that unpack, by one
array that is named a thousand times, by brackets. What is decoded is paid for first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.exceptions import ModelFileError
from shoal.io._files import GIB, available_memory
from shoal.io._settings import LOADING, READING
from shoal.io._shown import visible


def damaged(text: str) -> ModelFileError:
    """The error of a model file that is not what it claims to be, in one line."""
    hint = "restore the model from a copy, or fit again"
    return ModelFileError("E135", visible(text), hint)


def most_bytes(on_disk: float) -> float:
    """Memory that a folder of so many bytes may take, and that there is."""
    allowed = LOADING.more_bytes + LOADING.bytes_per_byte * on_disk
    free = available_memory()
    return allowed if free is None else min(allowed, READING.room * free)


@dataclass
class Budget:
    """What is left for one load; whoever decodes something pays first."""

    n_bytes: float = field(default_factory=lambda: most_bytes(0))
    nodes: int = LOADING.nodes
    files: int = LOADING.files

    def pay_bytes(self, n_bytes: float) -> None:
        """Memory that is about to be taken."""
        self.n_bytes -= n_bytes
        if self.n_bytes < 0:
            raise damaged(
                "the model asks for more memory than its files can be worth or the "
                f"machine has free ({n_bytes / GIB:.2g} GiB in one piece)"
            )

    def pay_nodes(self, nodes: int) -> None:
        """Values and objects that are about to be made."""
        self.nodes -= nodes
        if self.nodes < 0:
            raise damaged(f"the model holds more than {LOADING.nodes:,} values")

    def pay_file(self, n_bytes: float) -> None:
        """A file that is about to be read."""
        self.files -= 1
        if self.files < 0:
            raise damaged(f"the model has more than {LOADING.files:,} files")
        self.pay_bytes(n_bytes)

    def pay_json(self, text: bytes) -> None:
        """What a JSON text becomes, judged before it is parsed."""
        parts = [each * text.count(sign) for sign, each in LOADING.json_bytes]
        self.pay_bytes(len(text) + sum(parts))

    def pay_array(self, shape: Iterable[int], itemsize: int) -> None:
        """An array; what has no length in one direction is paid by the others.

        A product with an array of 0 x 2^40 numbers has 2^40 of them.
        """
        sizes = [max(int(size), 1) for size in shape]
        n_bytes = float(itemsize)
        for size in sizes:
            n_bytes *= size
        self.pay_bytes(n_bytes)

    def pay_tree(self, tree: Any) -> int:
        """The values of a JSON tree, level by level; their number."""
        level, depth, total = [tree], 0, 0
        while level:
            depth, total = depth + 1, total + len(level)
            self.pay_nodes(len(level))
            if depth > LOADING.nesting:
                raise damaged(f"the model nests more than {LOADING.nesting} levels")
            level = [child for one in level for child in _children(one)]
        return total


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def check_widths(values: dict[str, Any]) -> None:
    """Raise where fitted attributes claim a width that nobody has computed with.

    scikit-learn makes room for ``n_classes_`` columns before it looks at any array.
    """
    for name, value in values.items():
        if not name.lstrip("_").startswith(("n_", "degree", "max_degree")):
            continue
        if "samples" in name or "iter" in name and "iteration" not in name:
            continue  # of rows and steps there may be any number
        kind = np.asarray(value).dtype.kind if not isinstance(value, str) else "U"
        if kind in "iu" and np.size(value) and np.max(value) > LOADING.widest:
            raise damaged(f"the model says that {name} is {np.max(value)}")
        if kind == "O" and isinstance(value, int):  # beyond 64 bits
            raise damaged(f"the model says that {name} has {len(str(value))} digits")


def check_classes(values: dict[str, Any]) -> None:
    """Raise for more classes than can be computed with, in one of shoal's objects."""
    for name, value in values.items():
        n_classes = _n_classes(name, value)
        if n_classes > LOADING.classes:
            raise damaged(f"the model has {n_classes:,} classes ({name})")


def _n_classes(name: str, value: Any) -> int:
    """How many classes an attribute speaks of; 0 if of none."""
    plain, shape = name.strip("_"), getattr(value, "shape", ())
    if plain == "n_classes" and isinstance(value, int):
        return value
    if shape and plain.endswith("given_class"):
        return int(shape[0])
    if shape and (plain.startswith("class_given") or plain == "prevalence"):
        return int(shape[-1])
    return 0


def one_job(values: dict[str, Any]) -> None:
    """Set ``n_jobs`` to one: a file does not decide how many processes start."""
    if values.get("n_jobs") is not None:
        values["n_jobs"] = 1
