"""What is no file, folders of strange things, options and files of options."""

import io
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from tests.attack import bad_files
from tests.attack.bad_files import CHECK, Drawn, Make, Words, good_csv, written


@dataclass(frozen=True)
class BadFile:
    """One attack: its family and name, and what writes it and gives the command."""

    family: str
    name: str
    make: Make

    def __str__(self) -> str:
        return f"{self.family}/{self.name}"


# ---- places that are no files --------------------------------------------------------


def _fifo(folder: Path) -> Words:
    os.mkfifo(folder / "a.csv")
    return ["check", "a.csv", "--domain", "site"]


def _socket(folder: Path) -> Words:
    before = os.getcwd()
    os.chdir(folder)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("a.csv")
    finally:
        os.chdir(before)
    return ["check", "a.csv", "--domain", "site"]


def _linked(target: str, name: str, folder: Path, *, words: Words = CHECK) -> Words:
    (folder / name).symlink_to(target)
    return [words[0], name, *words[1:]]


DEVICES = (
    "/dev/zero",
    "/dev/null",
    "/dev/full",
    "/dev/random",
    "/dev/tty",
)
PROC = ("/proc/self/mem", "/proc/self/environ", "/proc/self/maps", "/proc/kmsg",
        "/proc/self/pagemap", "/proc/version", "/proc/self/fd", "/sys/kernel/notes",
        "/proc/self/task", "/proc/sys/kernel/hostname")  # fmt: skip
ENDINGS = ("csv", "csv.gz", "parquet", "feather", "npy", "npz", "h5ad", "mtx")
WITH_MODEL = ("predict", "run")


def places() -> Iterator[Drawn]:
    yield "fifo", _fifo
    yield "socket", _socket
    for place in (*DEVICES, *PROC):
        short = place.strip("/").replace("/", "-")
        yield (
            short,
            lambda _, place=place: [
                *("check", place, "--format", "csv", "--domain", "site")
            ],
        )
        yield f"{short}-link", partial(_linked, place, "a.csv")
    for ending in ENDINGS:
        yield f"zero.{ending}", partial(_linked, "/dev/zero", f"a.{ending}")
        yield f"mem.{ending}", partial(_linked, "/proc/self/mem", f"a.{ending}")
        yield f"folder.{ending}", partial(_folder_called, f"a.{ending}")
    for option in ("--domain-file", "--config"):
        for place in ("/dev/zero", "/dev/null", "/proc/self/mem", "."):
            words = (*CHECK, option, place)
            name = f"{option[2:]}-{place.strip('/').replace('/', '-') or 'dot'}"
            yield name, partial(written, "a.csv", good_csv(), words=words)
    yield "loop", partial(_linked, "a.csv", "a.csv")
    yield "nowhere", partial(_linked, "absent", "a.csv")
    yield "long-name", lambda _: ["check", "x" * 5_000, "--domain", "site"]
    yield "nul-name", lambda _: ["check", "a\0b.csv", "--domain", "site"]
    yield "surrogate-name", lambda _: ["check", "a\udcff.csv", "--domain", "site"]
    yield "escape-name", lambda _: ["check", "\x1b[2J\x1b]0;x\x07.csv", "--domain", "s"]


def _folder_called(name: str, folder: Path) -> Words:
    (folder / name).mkdir()
    return ["check", name, "--domain", "site"]


# ---- images --------------------------------------------------------------------------

EPS = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    b"(owned) (w) file closefile showpage\n%%EOF\n"
)


@cache
def _png() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(256, size=(24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@cache
def _saved(format: str, mode: str = "RGB") -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(_png()), formats=["PNG"]) as picture:
        picture.convert(mode).save(buffer, format)
    return buffer.getvalue()


def _huge_png(wide: int, high: int) -> bytes:
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        checked = kind + body
        code = struct.pack(">I", zlib.crc32(checked))
        return struct.pack(">I", len(body)) + checked + code

    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body)


def _images(content: bytes, name: str, folder: Path) -> Words:
    for domain in ("a", "b"):
        for number in range(3):
            place = folder / "photos" / domain / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(_png())
    (folder / "photos" / "a" / name).write_bytes(content)
    return ["check", "photos"]


DISGUISED = (
    "EPS", "PDF", "PCX", "SGI", "TGA", "MSP", "ICO", "DDS", "XBM", "SPIDER",
    "BLP", "ICNS", "JPEG2000", "PPM", "BMP", "GIF", "TIFF",
)  # fmt: skip


def images() -> Iterator[Drawn]:
    for format in DISGUISED:
        yield f"{format}.png", partial(_disguised, format)
    pictures = {
        "eps.png": EPS,
        "dos-eps.png": b"\xc5\xd0\xd3\xc6" + EPS,
        "eps.jpg": EPS,
        "wmf.png": b"\xd7\xcd\xc6\x9a\0\0" + bytes(200),
        "emf.png": b"\x01\0\0\0" + bytes(36) + b" EMF" + bytes(100),
        "svg.png": b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
        "text.png": b"not a picture",
        "empty.png": b"",
        "cut.png": _png()[:60],
        "huge.png": _huge_png(60_000, 60_000),
        "large.png": _huge_png(12_000, 12_000),
        "no-side.png": _huge_png(0, 9),
        "fli.png": bytes(4) + b"\x11\xaf" + bytes(200),
        "fits.png": b"SIMPLE  =                    T" + b" " * 2_850,
        "hdf5.png": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "grib.png": b"GRIB" + bytes(100),
        "psd.png": b"8BPS\0\x01" + bytes(200),
        "gbr.png": b"\0\0\0\x1c\0\0\0\x02" + bytes(60),
        "mpo.jpg": b"\xff\xd8\xff\xe2" + bytes(60),
    }
    for name, content in pictures.items():
        yield name, partial(_images, content, f"x.{name.rpartition('.')[2]}")
    for seed in range(20):
        format = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")[seed % 7]
        yield f"spoiled-{format}-{seed}", partial(_spoiled_image, format, seed)


def _disguised(format: str, folder: Path) -> Words:
    """A good picture of another format; its name where pillow cannot write it."""
    mode = {"MSP": "1", "XBM": "1", "SPIDER": "F", "BLP": "P"}.get(format, "RGB")
    try:
        content = _saved(format, mode)
    except (OSError, KeyError, ValueError):
        content = format.encode()
    return _images(content, "x.png", folder)


def _spoiled_image(format: str, seed: int, folder: Path) -> Words:
    spoiled = bad_files.spoil(_saved(format), np.random.default_rng(seed))
    return _images(spoiled, "x.png", folder)


# ---- files of options, names and shares ----------------------------------------------

DEEP = 100_000
JSONS = {
    "deep-lists": "[" * DEEP + "]" * DEEP,
    "deep-objects": '{"c0":' * DEEP + "1" + "}" * DEEP,
    "open": "[" * DEEP,
    "digits": '{"c0": ' + "9" * 6_000 + "}",
    "nan": '{"c0": NaN, "c1": NaN}',
    "infinite": '{"c0": 1e999, "c1": 0}',
    "list": "[1, 2]",
    "number": "7",
    "text": '"c0"',
    "null": "null",
    "twice": '{"c0": 1, "c0": 1}',
    "nested": '{"c0": {"c0": 1}}',
    "odd": '{"c0": "\\u0000\\u001b[31m", "c1": "\\ud800"}',
    "names": '{"names": {"names": {"c0": "a"}}}',
    "key": '{"\\u001b]0;x\\u0007": 1}',
    "empty": "",
    "bytes": "\ufeff\x00",
}
TOMLS = {
    "deep": "features = " + "[" * 20_000 + "]" * 20_000,
    "tables": "[a" + ".a" * 20_000 + "]",
    "inline": "domain = " + "{a = " * 5_000 + "1" + "}" * 5_000,
    "digits": "seed = " + "9" * 6_000,
    "dates": "domain = 1979-05-27T07:32:00Z",
    "escape": 'domain = "\\u001b[31m"',
    "unknown": '"\\u001b]0;x\\u0007" = 1',
    "nan": "seed = nan",
    "empty": "",
    "not": "{{{{",
    "number": "domain = 7",
    "list": "domain = [1]",
}


def options() -> Iterator[Drawn]:
    def make(name: str, text: str, words: Words, folder: Path) -> Words:
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        return written("a.csv", good_csv(), folder, words=words)

    for name, text in TOMLS.items():
        words = (*CHECK, "--config", "x.toml")
        yield f"config-{name}", partial(make, "x.toml", text, words)
    typed = {
        "features": ("", ",", ",,,", '"', "\0", "x1,x1", "absent", "\x1b[31m", "site"),
        "drop": ("", ",", '"', "absent", "x0,x1,x2,x3"),
        "domain": ("", "absent", "\x1b[31m", "x0", "\n"),
        "id": ("", "absent", "x0"),
        "label": ("", "absent"),
        "group": ("", "absent", "x0"),
        "text": ("", "absent", "x0"),
        "na": ("", "\x1b", "0"),
        "impute": ("", "\x1b[31m", "zero"),
        "format": ("", "\x1b[31m", "parquet", "h5ad", "npz", "mtx"),
        "layer": ("x",),
        "domain-from": ("(", "((((" * 500, "(a+)+$"),
        "domain-file": ("absent", ""),
        "seed": ("-1", "x", str(10**400)),
        "merge-small": ("", "\x1b[31m"),
    }
    for option, values in typed.items():
        for place, value in enumerate(values):
            words = (*CHECK, f"--{option}", value)
            name = f"{option}-{place}"
            yield name, partial(written, "a.csv", good_csv(), words=words)


def sides() -> Iterator[Drawn]:
    """Bad files with domains, beside a good matrix."""
    matrix = io.BytesIO()
    np.save(matrix, np.random.default_rng(0).normal(size=(9, 3)))
    contents = {
        "few.txt": b"a\nb\n",
        "many.txt": b"a\n" * 50_000,
        "latin.txt": b"\xe9\n" * 9,
        "nul.txt": b"\0\n" * 9,
        "escape.txt": b"\x1b[31m\n" * 9,
        "empty.txt": b"",
        "blank.txt": b"\n" * 9,
        "object.npy": bad_files.npy_bytes((9,), "|O", b"\x80\x04K\x01."),
        "claims.npy": bad_files.npy_bytes((10**12,)),
        "text.npy": bad_files.npy_bytes((9,), "<U999999999"),
        "void.npy": bad_files.npy_bytes((9,), "|V8", bytes(72)),
        "inf.npy": bad_files.npy_bytes((9,), "<f8", np.full(9, np.inf).tobytes()),
        "cut.npy": b"\x93NUMPY\x01",
        "npz.npy": b"PK\x03\x04",
    }

    def make(name: str, content: bytes, folder: Path) -> Words:
        (folder / name).write_bytes(content)
        words = ("check", "--domain-file", name)
        return written("a.npy", matrix.getvalue(), folder, words=words)

    for name, content in contents.items():
        yield name, partial(make, name, content)


# ---- folders -------------------------------------------------------------------------


def _parts(frames: list[pd.DataFrame], folder: Path, *, spoil: bool = False) -> Words:
    (folder / "rows").mkdir()
    for place, frame in enumerate(frames):
        frame.to_parquet(folder / "rows" / f"{place}.parquet", index=False)
    if spoil:
        (folder / "rows" / "1.parquet").write_bytes(b"PAR1" + bytes(99) + b"PAR1")
    return ["fit", "rows", "--domain", "site", "--engine", "local", "--out", "run",
            "--k", "2", "--workers", "1", "--no-report"]  # fmt: skip


def folders() -> Iterator[Drawn]:
    frame = bad_files.good_frame()
    text = frame.assign(x0=frame["x0"].astype(str) + "a")
    others = {
        "numbers-and-text": [frame, text],
        "text-and-numbers": [text, frame],
        "sites-as-numbers": [frame, frame.assign(site=7)],
        "dates": [frame, frame.assign(x0=pd.Timestamp("2020-01-01"))],
        "lists": [frame, frame.assign(x0=[[1.0, 2.0]] * len(frame))],
        "truth": [frame, frame.assign(x0=True)],
        "nothing": [frame, frame.assign(x0=None)],
        "fewer-columns": [frame, frame.drop(columns="x1")],
        "more-columns": [frame, frame.assign(x9=1.0)],
        "other-order": [frame, frame[list(frame.columns[::-1])]],
        "no-rows": [frame, frame.iloc[:0]],
        "whole-numbers": [frame, frame.assign(x0=10**15)],
        "bytes": [frame, frame.assign(x0=b"abc")],
    }
    for name, frames in others.items():
        yield f"parts-{name}", partial(_parts, frames)
    yield "parts-spoiled", partial(_parts, [frame] * 2, spoil=True)
    for name, content in {"latin": b"\xe9", "nul": b"\0" * 99, "empty": b""}.items():
        yield f"texts-{name}", partial(_texts, content)
    yield "several-other", partial(_several, b"a,b\n1,2\n")
    yield "several-npy", partial(_several, bad_files.npy_bytes((3, 3)))
    yield "several-empty", partial(_several, b"")


def _texts(content: bytes, folder: Path) -> Words:
    for domain in ("a", "b"):
        for number in range(4):
            place = folder / "texts" / domain / f"{number}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"fish and chips and {domain} salt {number} sea")
    (folder / "texts" / "a" / "x.txt").write_bytes(content)
    return ["check", "texts"]


def _several(content: bytes, folder: Path) -> Words:
    (folder / "a.csv").write_bytes(good_csv())
    (folder / "b.csv").write_bytes(content)
    return ["check", "a.csv", "b.csv"]


# ---- beside a model: shares, names, a summary ----------------------------------------


def beside_model() -> Iterator[Drawn]:
    """Commands that need the run that lies in ``run``."""

    def shares(name: str, content: bytes, folder: Path) -> Words:
        (folder / name).write_bytes(content)
        (folder / "a.csv").write_bytes(good_csv())
        return ["predict", "run", "a.csv", "--prevalence", name, "--out", "out.csv"]

    def names(content: bytes, folder: Path) -> Words:
        (folder / "names.json").write_bytes(content)
        return ["name", "run", "--from", "names.json"]

    def summary(content: bytes, folder: Path) -> Words:
        (folder / "run" / "summary.json").write_bytes(content)
        return ["report", "run", "--out", "page.html"]

    def record(content: bytes, folder: Path) -> Words:
        (folder / "run" / "run.json").write_bytes(content)
        return ["report", "run", "--out", "page.html"]

    for name, text in JSONS.items():
        content = text.encode("utf-8", "surrogatepass")
        yield f"prevalence-{name}", partial(shares, "x.json", content)
        yield f"names-{name}", partial(names, content)
        yield f"summary-{name}", partial(summary, content)
        yield f"record-{name}", partial(record, content)
    tables = {
        "latin": b"class_id,estimate\nc0,0.5\nc\xe9,0.5\n",
        "nul": b"class_id,estimate\nc0,0.5\nc1,0\0.5\n",
        "wide": b"class_id,estimate\n" + b"c0,0.5,7,7\nc1,0.5\n",
        "short": b"class_id,estimate\nc0\nc1\n",
        "long": b"class_id,estimate\nc0," + b"0" * 200_000 + b"\n",
        "digits": b"class_id,estimate\nc0,1e400\nc1,0\n",
        "empty": b"",
        "header": b"class_id,estimate\n",
    }
    for name, content in tables.items():
        yield f"prevalence-csv-{name}", partial(shares, "x.csv", content)
    for place in ("/dev/zero", "/proc/self/mem", ".", "/dev/null"):
        short = place.strip("/").replace("/", "-") or "here"
        yield (
            f"shares-{short}",
            lambda folder, place=place: [*_with_rows(folder, "--prevalence", place)],
        )
        yield f"from-{short}", lambda _, place=place: ["name", "run", "--from", place]
    for name, (content, _) in bad_files.good_files().items():
        for seed in (100, 101):
            rng = np.random.default_rng(seed)
            spoiled = bad_files.spoil(content, rng)
            yield f"predict-{name}-{seed}", partial(_predict, name, spoiled)
    for place in ("/dev/full", "/proc/x.csv", "/dev/null/x.csv", ".", "/dev/full.csv"):
        short = place.strip("/").replace("/", "-") or "here"
        yield f"out-{short}", partial(_out, place)


def _with_rows(folder: Path, *more: str) -> Words:
    (folder / "a.csv").write_bytes(good_csv())
    return ["predict", "run", "a.csv", *more, "--out", "out.csv"]


def _predict(name: str, content: bytes, folder: Path) -> Words:
    (folder / name).write_bytes(content)
    return ["predict", "run", name, "--out", "out.csv"]


def _out(place: str, folder: Path) -> Words:
    (folder / "a.csv").write_bytes(good_csv())
    return ["predict", "run", "a.csv", "--out", place, "--force"]


# ---- all of them ---------------------------------------------------------------------

FAMILIES: dict[str, Callable[[], Iterator[Drawn]]] = {
    "shapes": bad_files.shapes,
    "encodings": bad_files.encodings,
    "separators": bad_files.separators,
    "cells": bad_files.cells,
    "claims": bad_files.claims,
    "bombs": bad_files.bombs,
    "spoiled": bad_files.spoiled_files,
    "places": places,
    "images": images,
    "options": options,
    "sides": sides,
    "folders": folders,
    "model": beside_model,
}


def all_files() -> list[BadFile]:
    """Every case, in a fixed order."""
    return [
        BadFile(family, name, make)
        for family, draw in FAMILIES.items()
        for name, make in draw()
    ]
