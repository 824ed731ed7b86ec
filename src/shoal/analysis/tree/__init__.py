"""One tree from two classes to all: which class splits into which."""

from shoal.analysis.tree._result import ClassSplit, ClassTree
from shoal.analysis.tree._tree import class_tree

__all__ = ["ClassSplit", "ClassTree", "class_tree"]
