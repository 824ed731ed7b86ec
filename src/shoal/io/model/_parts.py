"""Parts of a model that belong to scikit-learn, as skops files.

skops persists them; what it would load is compared with a list of classes first, in the
JSON tree of the file, paid for, and compared with what a decision tree may point to
afterwards.
"""

import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.io._settings import LOADING
from shoal.io.model._folder import Budget, check_widths, damaged, one_job
from shoal.io.model._values import check_random

Array = np.ndarray[Any, Any]

_ESTIMATORS = """
sklearn._loss.link.Interval
sklearn._loss.link.LogitLink
sklearn._loss.link.MultinomialLogit
sklearn._loss.loss.HalfBinomialLoss
sklearn._loss.loss.HalfMultinomialLoss
sklearn.calibration.CalibratedClassifierCV
sklearn.calibration._CalibratedClassifier
sklearn.calibration._SigmoidCalibration
sklearn.compose._column_transformer.ColumnTransformer
sklearn.decomposition._fastica.FastICA
sklearn.decomposition._pca.PCA
sklearn.decomposition._truncated_svd.TruncatedSVD
sklearn.discriminant_analysis.LinearDiscriminantAnalysis
sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis
sklearn.dummy.DummyClassifier
sklearn.ensemble._forest.ExtraTreesClassifier
sklearn.ensemble._forest.RandomForestClassifier
sklearn.ensemble._hist_gradient_boosting.binning._BinMapper
sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier
sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor
sklearn.feature_selection._variance_threshold.VarianceThreshold
sklearn.frozen._frozen.FrozenEstimator
sklearn.impute._base.SimpleImputer
sklearn.kernel_approximation.Nystroem
sklearn.kernel_approximation.RBFSampler
sklearn.linear_model._logistic.LogisticRegression
sklearn.linear_model._logistic.LogisticRegressionCV
sklearn.naive_bayes.BernoulliNB
sklearn.naive_bayes.GaussianNB
sklearn.naive_bayes.MultinomialNB
sklearn.neural_network._multilayer_perceptron.MLPClassifier
sklearn.neural_network._stochastic_optimizers.AdamOptimizer
sklearn.pipeline.FeatureUnion
sklearn.pipeline.Pipeline
sklearn.preprocessing._data.MaxAbsScaler
sklearn.preprocessing._data.MinMaxScaler
sklearn.preprocessing._data.Normalizer
sklearn.preprocessing._data.PowerTransformer
sklearn.preprocessing._data.QuantileTransformer
sklearn.preprocessing._data.RobustScaler
sklearn.preprocessing._data.StandardScaler
sklearn.preprocessing._discretization.KBinsDiscretizer
sklearn.preprocessing._encoders.OneHotEncoder
sklearn.preprocessing._encoders.OrdinalEncoder
sklearn.preprocessing._label.LabelBinarizer
sklearn.preprocessing._label.LabelEncoder
sklearn.preprocessing._polynomial.PolynomialFeatures
sklearn.svm._classes.LinearSVC
sklearn.tree._classes.DecisionTreeClassifier
sklearn.tree._classes.ExtraTreeClassifier
""".split()

#: Forms that a node of the JSON tree can have, and the classes that each may make.
ALLOWED: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset({"builtins.str", "numpy.float64", "numpy.float32"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "NdArrayNode": frozenset(
        ["numpy.ndarray", "numpy.bool", "numpy.float32", "numpy.float64"]
        + ["numpy.int32", "numpy.int64", "numpy.uint32", "numpy.uint64"]
    ),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "LossNode": frozenset(
        {"sklearn._loss._loss.CyHalfBinomialLoss"}
        | {"sklearn._loss._loss.CyHalfMultinomialLoss"}
    ),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "ObjectNode": frozenset(_ESTIMATORS),
}

# What skops does not trust by itself although it is on the list.
TRUSTED = [*_ESTIMATORS, "numpy.dtype", "sklearn.tree._tree.Tree"]

MOST_MEMBERS = 100_000
MEMBER_NAME = re.compile(r"schema\.json|[0-9a-f-]+\.npy")
# Bytes of memory that skops takes for a node of its tree, beside the JSON.
NODE_BYTES = 2_000


def dump_part(part: Any) -> bytes:
    """A scikit-learn object as the bytes of a skops file that can be loaded again."""
    import skops.io

    content = skops.io.dumps(part, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        foreign = next(_foreign(json.loads(archive.read("schema.json"))), None)
    if foreign is not None:
        raise TypeError(
            f"cannot save a {type(part).__name__} that holds a {foreign}: it is not "
            "among the classes that can be loaded without risk; use "
            "a logistic regression, a network, a forest or boosted trees"
        )
    return content


def load_part(content: bytes, budget: Budget) -> tuple[Any, int]:
    """The object in a skops file, and the number of values and objects in it.

    No class outside the list is touched.
    """
    import skops.io

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = _check_archive(archive, budget)
        text = archive.read("schema.json")
        budget.pay_json(text)
        schema = json.loads(text)
        nodes = budget.pay_tree(schema)
        for foreign in _foreign(schema):
            raise damaged(f"a part of the model names a class that is not allowed: "
                          f"{foreign}")  # fmt: skip
        _pay_nodes(schema, sizes, budget)
    part = skops.io.loads(content, trusted=TRUSTED)
    nodes += sum(_tamed(part)) * LOADING.nodes_per_object
    _check_trees(part)
    return part, nodes


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON tree."""
    if isinstance(tree, dict):
        yield tree
    items = tree.values() if isinstance(tree, dict) else tree
    if isinstance(tree, (dict, list)):
        for item in items:
            yield from _nodes(item)


def _foreign(tree: Any) -> Iterator[str]:
    """Classes in the JSON tree that are not allowed in the form they have."""
    for node in _nodes(tree):
        if not node.keys().isdisjoint(("__loader__", "__class__", "__module__")):
            name = f"{node.get('__module__')}.{node.get('__class__')}"
            if name not in ALLOWED.get(str(node.get("__loader__")), frozenset()):
                yield name


def _pay_nodes(tree: Any, sizes: dict[str, int], budget: Budget) -> None:
    """What skops makes of a tree: each array as often as it is named."""
    _size(tree, {})
    for node in _nodes(tree):
        loader = node.get("__loader__")
        budget.pay_bytes(NODE_BYTES * (loader is not None))
        if loader == "NdArrayNode" and node.get("type") == "numpy":
            budget.pay_bytes(2 * sizes[node["file"]])  # the file and the array
        elif loader == "JsonNode":
            budget.pay_json(str(node.get("content")).encode())
            budget.pay_tree(json.loads(node["content"]))
        elif loader == "TreeNode":
            _check_outputs(node, sizes)


def _size(tree: Any, known: dict[Any, int]) -> int:
    """Nodes of a JSON tree, if those that pass for one are of one size.

    skops takes nodes of one ``__id__`` for one, whatever else they say: nested often
    enough, a page of JSON would become more than can ever be walked through.
    """
    items = tree.values() if isinstance(tree, dict) else tree
    children = items if isinstance(tree, (dict, list)) else ()
    size = 1 + sum(_size(item, known) for item in children)
    if isinstance(tree, dict) and "__id__" in tree:
        if "__loader__" not in tree or known.setdefault(tree["__id__"], size) != size:
            raise damaged("a part of the model has two objects that pass for one")
    return size


def _check_outputs(node: Any, sizes: dict[str, int]) -> None:
    """A tree of sklearn reads ``n_classes`` for each of its ``n_outputs``, in C."""
    n_features, n_classes, n_outputs = node["__reduce__"]["args"]["content"]
    counts = [json.loads(one["content"]) for one in (n_features, n_outputs)]
    right = all(type(one) is int and 0 < one <= LOADING.widest for one in counts)
    if not right or 8 * counts[1] > sizes[n_classes["file"]]:
        raise damaged("a decision tree of the model has no such outputs")


def _check_archive(archive: zipfile.ZipFile, budget: Budget) -> dict[str, int]:
    """Refuse what would unpack to something else than a tree and its arrays.

    The bytes of each array.
    """
    members = archive.infolist()
    names = {member.filename for member in members}
    plain = all(
        MEMBER_NAME.fullmatch(member.filename)
        and member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        and not member.flag_bits & 1
        for member in members
    )
    if not plain or len(names) != len(members) or len(members) > MOST_MEMBERS:
        raise damaged("a part of the model is not a plain archive")
    budget.pay_bytes(sum(member.file_size for member in members))
    arrays = [one for one in members if one.filename.endswith(".npy")]
    return {one.filename: _check_array(archive, one, budget) for one in arrays}


def _check_array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget
) -> int:
    """Bytes of an npy file: as many as its header announces, and no objects."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        head = file.tell()
    count = math.prod(int(size) for size in shape)
    n_bytes = member.file_size - head
    if dtype.hasobject or count * dtype.itemsize != n_bytes:
        raise damaged("a part of the model has an array that is not what it says")
    budget.pay_array(shape, dtype.itemsize)
    return n_bytes


# ---- what was loaded, before anything is asked of it ---------------------------------


def _tamed(value: Any) -> Iterator[int]:
    """A one for each object; each works alone, and is as wide as can be computed."""
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        check_random(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tamed(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tamed(item)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        for item in value.flat:
            yield from _tamed(item)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield 1
        check_widths(vars(value))
        one_job(vars(value))
        yield from _tamed(vars(value))


# ---- decision trees ------------------------------------------------------------------


def _check_trees(part: Any) -> None:
    """Raise unless every decision tree stays inside its own arrays and ends."""
    for owner, tree in _trees(part, None):
        n_features = int(getattr(owner, "n_features_in_", 0))
        if type(tree).__name__ == "Tree":
            _check_nodes(
                tree.children_left,
                tree.children_right,
                tree.feature,
                tree.children_left == -1,
                n_features,
            )
            if tree.n_features != n_features:
                raise damaged("a decision tree of the model expects other columns")
        else:
            nodes = tree.nodes
            leaf = nodes["is_leaf"] != 0
            _check_nodes(
                nodes["left"], nodes["right"], nodes["feature_idx"], leaf, n_features
            )
            if nodes["is_categorical"].any():
                raise damaged("a decision tree of the model splits categories")


def _check_nodes(
    left: Array, right: Array, feature: Array, leaf: Array, n_features: int
) -> None:
    """Children come after their parent, inside the array; features exist."""
    inner = np.flatnonzero(~leaf)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    parents = np.concatenate([inner, inner])
    used = feature[inner].astype(np.int64)
    if (
        not len(leaf)
        or (children <= parents).any()
        or (children >= len(leaf)).any()
        or (used < 0).any()
        or (used >= n_features).any()
    ):
        raise damaged("a decision tree of the model points outside of itself")


def _trees(value: Any, owner: Any) -> Iterator[tuple[Any, Any]]:
    """Decision trees anywhere below a value, each with the model that uses it."""
    kind = type(value).__name__
    if kind in ("Tree", "TreePredictor"):
        yield owner, value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _trees(item, owner)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _trees(item, owner)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        for item in value.flat:
            yield from _trees(item, owner)
    elif hasattr(value, "__dict__"):
        members = vars(value).get("estimators_", ())
        if any(one.n_features_in_ != value.n_features_in_ for one in members):
            raise damaged("trees of a forest expect other columns than the forest")
        is_model = "n_features_in_" in vars(value)
        yield from _trees(vars(value), value if is_model else owner)
