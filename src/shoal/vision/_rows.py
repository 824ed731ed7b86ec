"""Images as rows of an estimator: the one door through which they enter."""

import warnings
from typing import Any, cast

import numpy as np

from shoal.datasets._folders import lone_images
from shoal.exceptions import DomainMissingError, IdentifiabilityWarning
from shoal.io._files import digest
from shoal.validation import check_domains, encode_domains, is_scalar, is_whole
from shoal.vision._data import check_images

Array = np.ndarray[Any, Any]

# Pixels that a table has kept as floats are whole to within this.
ROUNDING = 1e-3
ROWS_OF_FIT = "pass the rows of fit, and the domain of each"


def as_images(X: Any, image_shape: tuple[int, ...] | None = None) -> Array:
    """Images of shape (n, height, width, 3) from images or flattened rows.

    Parameters
    ----------
    X : array-like of shape (n, h, w), (n, h, w, 3) or (n, h * w * channels)
        uint8. Flattened rows may be whole floats from 0 to 255, as tables make them.
    image_shape : tuple of int, default=None
        (h, w) or (h, w, 3) of flattened rows.

    Returns
    -------
    ndarray of shape (n, h, w, 3), dtype uint8
    """
    # numpy refuses lists of images of several sizes; check_images says what they are
    n_axes = np.ndim(X[0]) + 1 if isinstance(X, list) and X else np.ndim(X)
    if n_axes != 2:
        return check_images(X)
    rows = np.asarray(X)
    if image_shape is None:
        raise ValueError(
            f"X has shape {rows.shape}; pass images of shape (n, height, width, 3), or "
            "say image_shape=(height, width, 3) of flattened rows"
        )
    _check_shape(image_shape)
    if rows.shape[1] != np.prod(image_shape):
        raise ValueError(
            f"X has {rows.shape[1]} columns, image_shape={tuple(image_shape)} needs "
            f"{np.prod(image_shape)}; pass every pixel of every channel"
        )
    return check_images(_as_bytes(rows).reshape(-1, *image_shape))


def _check_shape(image_shape: Any) -> None:
    sizes = image_shape if isinstance(image_shape, (tuple, list)) else ()
    if len(sizes) not in (2, 3) or not all(is_whole(n) and n > 0 for n in sizes):
        raise ValueError(
            "image_shape must be (height, width) or (height, width, 3), got "
            f"{image_shape!r}"
        )


def _as_bytes(rows: Array) -> Array:
    if rows.dtype == np.uint8:
        return rows
    values = rows.astype(float)
    if not (np.isfinite(values).all() and 0 <= values.min() <= values.max() <= 255):
        raise ValueError(
            "X must hold pixels from 0 to 255, all finite, got "
            f"{np.min(values):g} to {np.max(values):g}"
        )
    whole = np.rint(values)
    broken = np.abs(values - whole) > ROUNDING
    if broken.any():
        # rounded in silence, pixels from 0 to 1 would be black or white
        raise ValueError(
            f"X must hold whole pixels from 0 to 255, got {values[broken][0]:g}; scale "
            "and round them, e.g. (255 * images).round().astype('uint8') for values "
            "from 0 to 1"
        )
    return whole.astype(np.uint8)


def check_image_rows(estimator: Any, X: Any, *, reset: bool = False) -> Array:
    """Images of an estimator, of one size in fit and in predict.

    At fit (``reset=True``), ``image_shape_`` and ``n_features_in_`` are set.
    """
    images = as_images(X, getattr(estimator, "image_shape", None))
    if reset:
        if len(images) < 2:
            raise ValueError(f"X has {len(images)} image; fit needs more")
        estimator.image_shape_ = images.shape[1:]
        estimator.n_features_in_ = int(np.prod(np.shape(X)[1:]))
    elif images.shape[1:] != tuple(estimator.image_shape_):
        got, seen = ("{} x {}".format(*shape[:2]) for shape in
                     (images.shape[1:], estimator.image_shape_))  # fmt: skip
        raise ValueError(f"X has images of {got} pixels, fit has seen {seen}; resize")
    return images


def check_images_domains(
    estimator: Any, X: Any, domains: Any
) -> tuple[Array, Array, Array]:
    """Images of a fit, the code of each one's domain, and the domains' names."""
    if domains is None:
        raise DomainMissingError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None: pass domains=..., one entry per image, that says "
            "where each image comes from"
        )
    images = check_image_rows(estimator, X, reset=True)
    codes, names = check_domains(domains, n_samples=len(images))
    text, hint = lone_images(names[codes])
    if text:
        warnings.warn(f"{text}; {hint}", IdentifiabilityWarning, stacklevel=3)
    return images, codes, names


def check_rows_of_fit(estimator: Any, X: Any, domains: Any) -> tuple[Array, Array]:
    """The images of a fitted estimator's own fit, and the code of each one's domain.

    ``estimator._counts`` are the rows of each domain in fit; where it is None, all that
    is known is that there were some of each.
    """
    images = check_image_rows(estimator, X)
    if len(images) != len(estimator.labels_):
        raise ValueError(
            f"X has {len(images)} rows, fit had {len(estimator.labels_)}; {ROWS_OF_FIT}"
        )
    if is_scalar(domains):
        raise ValueError(
            f"domains must have one entry per row, got the single value {domains!r}; "
            f"{ROWS_OF_FIT}"
        )
    names, counts = estimator.domains_, estimator._counts
    codes = cast(Array, encode_domains(domains, names, n_samples=len(images)))
    found = np.bincount(codes, minlength=len(names))
    wanted = np.maximum(found, 1) if counts is None else counts
    for name, got, had in zip(names.tolist(), found, wanted, strict=False):
        if got != had:
            raise ValueError(
                f"domains has {got} rows of {name!r}, fit had "
                f"{'some' if counts is None else had}; {ROWS_OF_FIT}"
            )
    return images, codes


def digest_rows(*parts: Array | str) -> str:
    """A name that these arrays and texts have and no others."""
    arrays = [np.asarray(part) for part in parts]
    return digest(
        piece
        for array in arrays
        for piece in (f"{array.dtype.str}{array.shape}", array.tobytes())
    )
