"""Small pictures inside the page: at most 96 pixels wide and high."""

import base64
import io
from typing import Any

import numpy as np

from shoal.io.images import as_rgb

__all__ = ["PIXELS", "shrink", "thumbnail"]

PIXELS = 96
QUALITY = 80


def thumbnail(image: Any, pixels: int = PIXELS) -> str:
    """An image as a ``data:`` address, without its metadata.

    Parameters
    ----------
    image : bytes or ndarray of uint8
        A PNG, JPEG or WebP file, or pixels of shape (height, width) or (height, width,
        channels).
    pixels : int, default=96
        Most pixels on each side; smaller images are kept as they are.

    Returns
    -------
    str
        ``data:image/webp;base64,...``
    """
    picture = as_rgb(_open(image))
    picture.thumbnail((pixels, pixels))
    buffer = io.BytesIO()
    # Written anew: a camera's place and time do not travel along.
    picture.save(buffer, format="WEBP", quality=QUALITY, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def shrink(address: str, pixels: int) -> str:
    """The same thumbnail with fewer pixels."""
    return thumbnail(base64.b64decode(address.partition(",")[2]), pixels)


def _open(image: Any) -> Any:
    from PIL import Image

    if isinstance(image, (bytes, bytearray, memoryview)):
        return Image.open(io.BytesIO(bytes(image)))
    values = np.asarray(image)
    if values.dtype != np.uint8:
        raise TypeError(
            f"images must give bytes or arrays of uint8, got an array of {values.dtype}"
        )
    return Image.fromarray(values.squeeze(-1) if values.shape[-1] == 1 else values)
