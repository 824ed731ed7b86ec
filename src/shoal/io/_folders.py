"""Folders of images as tables: which images, and which domain each is from."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._images import inner_folders, list_images
from shoal.io._options import SourceOptions
from shoal.io.table._domains import learn_domains
from shoal.io.table._schema import Schema
from shoal.io.table._table import Column, Table

Array = np.ndarray[Any, Any]


def _folder_labels(names: list[str], label: str | None) -> Array | None:
    """True classes of images: the folder below the domain, where asked for as label."""
    if label is None:
        return None
    found = inner_folders(names) if label == "label" else None
    if found is None:
        raise InputError(
            "E107",
            f'no label "{label}" of the images',
            "--label label takes the folder below the domain, <domain>/<label>/*.jpg",
        )
    return found


def _drawn(frame: pd.DataFrame, options: SourceOptions) -> pd.DataFrame:
    """Some rows at random, where so many were asked for."""
    if options.sample is None or len(frame) <= options.sample:
        return frame
    return frame.sample(options.sample, random_state=options.seed).sort_index()


def read_images(root: Path, options: SourceOptions) -> Table:
    """The list of a folder's images; pixels are for an encoder to read."""
    options.refuse_encoder("images")
    images = list_images(
        root, domain_from=options.domain_from, skip_bad=options.skip_bad
    )
    frame = pd.DataFrame(
        {
            "path": images.names,
            "width": images.sizes[:, 0],
            "height": images.sizes[:, 1],
            "format": images.formats,
            "domain": images.domains,
        }
    )
    frame = _drawn(frame, options)
    domains, _, rule, messages = learn_domains(frame["domain"], options)
    source = {
        "path": str(root),
        "fingerprint": images.fingerprint,
        "rows": len(frame),
        "bytes": sum(path.stat().st_size for path in images.paths),
        "skipped": images.skipped,
    }
    return Table(
        X=None,
        domains=domains,
        ids=frame["path"].to_numpy(dtype=object),
        labels=_folder_labels(frame["path"].tolist(), options.label),
        feature_names=[],
        schema=Schema(kind="images", domain=rule),
        columns=[Column("domain", "domain", "name of the folder")],
        kind="images",
        source=source,
        messages=images.messages + messages,
        frame=frame,
        places=frame.index.to_numpy(),
    )
