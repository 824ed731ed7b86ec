"""FCS files of flow and mass cytometry: a row for each cell, a column for each marker.

The layout is public (J. Spidlen et al. (2010), Data file standard for flow cytometry,
version FCS 3.1, Cytometry A 77): a header with places in the file, a text of keywords,
and the events as one block of numbers. Markers are freed of spillover where the file
has its matrix, and go through arcsinh, which is linear around zero and a logarithm
beyond.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_memory
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, readable

Array = np.ndarray[Any, Any]
Keywords = dict[str, str]

# Channels that say when and how large, not what is on a cell: of light, and of mass.
LIGHT = re.compile(r"(fsc|ssc|fs\b|ss\b)", re.IGNORECASE)
ASIDE = re.compile(
    r"(time\b|event|cell_length|width|center|offset|residual|bead|file)", re.IGNORECASE
)


def read_fcs(path: Path, options: SourceOptions) -> Content:
    """The markers of all events of a file."""
    broken = (ValueError, KeyError, IndexError, OverflowError, TypeError)
    # numbers of a damaged file may be too large: they are refused when all are read
    with readable(path, broken, "fcs"), np.errstate(all="ignore"):
        keywords, events = read_events(path)
        if not len(events):
            raise InputError("E114", f'"{path}" has no events', "leave it out")
        return Content(frame=markers(keywords, events))


def read_events(path: Path) -> tuple[Keywords, Array]:
    """Keywords, without their $ and in capitals, and events of channels, linear."""
    with path.open("rb") as file:
        header = file.read(58)
        if header[:3] != b"FCS":
            raise ValueError("it does not begin with FCS")
        text, data = _span(header, 10), _span(header, 26)
        size = path.stat().st_size
        keywords = _keywords(_bytes(file, text, size))
        if data[1] == 0:  # too far in the file for eight digits
            data = int(keywords["BEGINDATA"]), int(keywords["ENDDATA"])
        if keywords.get("MODE", "L") != "L":
            raise ValueError("it holds histograms, not events")
        row = _row(keywords)
        n_channels = len(row.names or ())
        n_rows = (data[1] - data[0] + 1) // row.itemsize
        check_memory(n_rows * n_channels, f'"{path}"')
        block = _bytes(file, data, size)
    n_events = min(int(keywords["TOT"]), len(block) // row.itemsize)
    table = np.frombuffer(block, row, count=n_events)
    channels = [_linear(table[name], keywords, name) for name in row.names or ()]
    return keywords, np.column_stack(channels)


def markers(keywords: Keywords, events: Array) -> pd.DataFrame:
    """Arcsinh of the markers, freed of spillover, by their names.

    Markers are the channels with a stain, where two or more have one; else all but
    scatter, time and the like. Files without scatter are of mass cytometry, whose
    numbers are smaller.
    """
    channels = [keywords[f"P{n + 1}N"].strip() for n in range(events.shape[1])]
    stains = [keywords.get(f"P{n + 1}S", "").strip() for n in range(len(channels))]
    mass = not any(map(LIGHT.match, channels))
    told = [
        not LIGHT.match(one) and not ASIDE.match(one) and not ASIDE.match(stain)
        for one, stain in zip(channels, stains, strict=True)
    ]
    stained = [one and bool(stain) for one, stain in zip(told, stains, strict=True)]
    kept = np.flatnonzero(stained if sum(stained) > 1 else told)
    if not len(kept):
        raise ValueError("no channel but scatter and time")
    cofactor = READING.cofactor_mass if mass else READING.cofactor_light
    values = np.arcsinh(_compensated(keywords, channels, events)[:, kept] / cofactor)
    names = [stains[n] or channels[n] for n in kept]
    twice = {name for name in names if names.count(name) > 1}
    shown = [
        f"{name} ({channels[n]})" if name in twice else name
        for name, n in zip(names, kept, strict=True)
    ]
    return pd.DataFrame(values, columns=shown)


# ---- the parts of a file -------------------------------------------------------------


def _span(header: bytes, start: int) -> tuple[int, int]:
    """First and last byte of a part, as the header tells them."""
    return int(header[start : start + 8]), int(header[start + 8 : start + 16])


def _bytes(file: Any, span: tuple[int, int], size: int) -> bytes:
    first, last = span
    if not 0 <= first <= last < size:
        raise ValueError(f"bytes {first} to {last} of {size}")
    file.seek(first)
    return bytes(file.read(last - first + 1))


def _keywords(block: bytes) -> Keywords:
    """Pairs between delimiters; a doubled delimiter belongs to a value."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        text = block.decode("latin-1")
    mark, stand_in = text[0], "\0"
    parts = text[1:].replace(2 * mark, stand_in).split(mark)
    parts = [part.replace(stand_in, mark) for part in parts]
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return {name.strip().lstrip("$").upper(): value for name, value in pairs}


def _row(keywords: Keywords) -> np.dtype[Any]:
    """How one event is laid out."""
    order = ">" if keywords["BYTEORD"].startswith(("4", "2")) else "<"
    kind = keywords["DATATYPE"].strip().upper()
    n_channels = int(keywords["PAR"])
    if kind not in ("F", "D", "I") or not 0 < n_channels <= len(keywords):
        raise ValueError(f"{n_channels} channels of the type {kind}")
    fields = []
    for n in range(1, n_channels + 1):
        n_bits = {"F": 32, "D": 64}.get(kind) or int(keywords[f"P{n}B"])
        if n_bits not in (8, 16, 32, 64):
            raise ValueError(f"numbers of {n_bits} bits")
        letter = "u" if kind == "I" else "f"
        fields.append((str(n), f"{order}{letter}{n_bits // 8}"))
    return np.dtype(fields)


def _linear(values: Array, keywords: Keywords, n: str) -> Array:
    """A channel without the amplifier: of a logarithmic one, and of its gain."""
    limit = float(keywords.get(f"P{n}R", "0"))
    if values.dtype.kind == "u" and limit >= 1:  # higher bits are not the event's
        values = values & values.dtype.type(2 ** int(np.ceil(np.log2(limit))) - 1)
    numbers = values.astype(float)
    decades, lowest = map(float, keywords.get(f"P{n}E", "0,0").split(","))
    if decades > 0:
        return np.asarray((lowest or 1.0) * 10 ** (decades * numbers / limit))
    return numbers / (float(keywords.get(f"P{n}G", "1")) or 1.0)


def _compensated(keywords: Keywords, channels: list[str], events: Array) -> Array:
    """Events without what each dye sheds into the channels of others."""
    told = keywords.get("SPILLOVER") or keywords.get("SPILL") or keywords.get("COMP")
    if not told:
        return events
    parts = [part.strip() for part in told.split(",")]
    n_dyes = int(parts[0])
    names, numbers = parts[1 : n_dyes + 1], parts[n_dyes + 1 :]
    matrix = np.array(numbers, dtype=float).reshape(n_dyes, n_dyes)
    places = [channels.index(name) for name in names]
    freed = events.copy()
    freed[:, places] = np.linalg.solve(matrix.T, events[:, places].T).T
    return freed


FCS = Format("fcs", (".fcs",), read=read_fcs)
