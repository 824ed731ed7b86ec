"""More than three hundred bad files, and the commands that are made to read them.

Every case writes its files into an empty folder and gives the words of a command that
must end by itself, soon, in little memory, in a coded line or well: a few of the files
turn out to be good ones, which is the reader's affair.
"""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Words = Sequence[str]
Make = Callable[[Path], Words]
Drawn = tuple[str, Make]


CHECK = ("check", "--domain", "site")


def written(name: str, content: bytes, folder: Path, *, words: Words = CHECK) -> Words:
    """Write one file, and check it."""
    (folder / name).write_bytes(content)
    return [words[0], name, *words[1:]]


# ---- good files, to be spoiled -------------------------------------------------------


@cache
def good_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    site = np.array(["north", "south", "east"])[np.arange(90) % 3]
    # two classes, whose mix differs between the sites
    first = rng.random(90) < np.array([0.95, 0.05, 0.5])[np.arange(90) % 3]
    columns = {f"x{place}": rng.normal(size=90).round(3) for place in range(4)}
    columns["x0"] = (columns["x0"] + np.where(first, 4, -4)).round(3)
    return pd.DataFrame({"site": site, **columns})


def good_csv() -> bytes:
    return good_frame().to_csv(index=False).encode()


@cache
def good_files() -> dict[str, tuple[bytes, Words]]:
    """A small good file of every format, and the command that reads it."""
    frame = good_frame()
    matrix = frame.drop(columns="site").to_numpy()
    parquet, feather = io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet, index=False)
    frame.to_feather(feather)
    npy, npz, xlsx = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.to_excel(xlsx, index=False)
    np.save(npy, matrix)
    np.savez_compressed(npz, X=matrix, site=frame["site"].to_numpy(dtype=str))
    sizes = f"90 4 {matrix.size}"
    entries = [f"{i + 1} {j + 1} {i + j}" for i in range(90) for j in range(4)]
    banner = "%%MatrixMarket matrix coordinate integer general"
    mtx = "\n".join([banner, sizes, *entries]).encode() + b"\n"
    beside = ("check", "--domain-file", "domains.txt")
    return {
        "a.csv": (good_csv(), CHECK),
        "a.tsv": (frame.to_csv(index=False, sep="\t").encode(), CHECK),
        "a.csv.gz": (gzip.compress(good_csv(), mtime=0), CHECK),
        "a.parquet": (parquet.getvalue(), CHECK),
        "a.feather": (feather.getvalue(), CHECK),
        "a.xlsx": (xlsx.getvalue(), CHECK),
        "a.npy": (npy.getvalue(), beside),
        "a.npz": (npz.getvalue(), CHECK),
        "a.mtx": (mtx, beside),
        "a.mtx.gz": (gzip.compress(mtx, mtime=0), beside),
    }


def spoil(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, insert, swap or blank a piece."""
    spoiled = bytearray(content)
    first, last = sorted(rng.integers(len(content) + 1, size=2).tolist())
    kind = int(rng.integers(5))
    if kind == 0:
        for _ in range(int(rng.integers(1, 9))):
            spoiled[rng.integers(len(spoiled))] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del spoiled[first:]
    elif kind == 2:
        spoiled[first:first] = rng.integers(256, size=9, dtype=np.uint8).tobytes()
    elif kind == 3:
        spoiled = spoiled[last:] + spoiled[first:last] + spoiled[:first]
    else:
        spoiled[first:last] = bytes(last - first)
    return bytes(spoiled)


def spoiled_files(times: int = 8) -> Iterator[Drawn]:
    """Good files of every format, damaged at random."""

    def make(name: str, seed: int, folder: Path) -> Words:
        content, words = good_files()[name]
        (folder / "domains.txt").write_text("\n".join(good_frame()["site"]))
        spoiled = spoil(content, np.random.default_rng(seed))
        return written(name, spoiled, folder, words=words)

    for name in good_files():
        for seed in range(times):
            yield f"{name}-{seed}", partial(make, name, seed)


# ---- text ----------------------------------------------------------------------------

ENCODINGS = (
    "base64", "hex", "zlib", "bz2", "rot13", "uu", "quopri", "punycode", "idna",
    "unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "utf-16", "utf-32",
    "utf-8-sig", "cp037", "ascii", "mbcs", "nonsense", "", "a\0b", "../../x", "utf-8 ",
    "\x1b[31m", "x" * 5_000,
)  # fmt: skip

SEPARATORS = (
    "\n", "\r", '"', " ", "é", "\u2028", "ab", "", "\\", "'", "1", ".", "-", "😀",
    "\x1b", "\x07", "\x7f", "\\t\\t", "s", "\ufeff", "#", "\ud800",
)  # fmt: skip

DIGITS = "9" * 400
NUMBERS = {
    "400-digits": DIGITS,
    "5000-digits": "9" * 5_000,
    "minus-400-digits": f"-{DIGITS}",
    "1e400": "1e400",
    "1e-400": "1e-400",
    "1e308": "1e308",
    "inf": "inf",
    "minus-inf": "-Infinity",
    "hex": "0x1p3",
    "underscores": "1_000",
    "arabic": "٣٤٥",
    "fullwidth": "１２",
    "nul": "1\0",
    "escape": "\x1b[31m1",
    "formula": "=1+1",
    "date": "2020-13-45",
    "complex": "1+2j",
    "int64": str(2**63),
    "uint64": str(2**64),
    "true": "True",
    "list": "[1, 2]",
    "nan-ish": "NaN(0x1)",
    "decimal-comma": "1,5",
    "two-points": "1.2.3",
}


def with_cell(text: str) -> bytes:
    rows = good_csv().decode("utf-8").splitlines()
    rows[5] = ",".join([rows[5].split(",")[0], f'"{text}"', *rows[5].split(",")[2:]])
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def encodings() -> Iterator[Drawn]:
    for place, encoding in enumerate(ENCODINGS):
        words = (*CHECK, "--encoding", encoding)
        yield f"{place}", partial(written, "a.csv", good_csv(), words=words)
    for encoding in ("utf-16", "utf-16-le", "utf-32", "cp037", "latin-1", "shift_jis"):
        text = good_csv().decode().replace("north", "Ängby" if "1" in encoding else "é")
        content = text.encode(encoding, "replace")
        yield f"unsaid-{encoding}", partial(written, "a.csv", content)


def separators() -> Iterator[Drawn]:
    for place, separator in enumerate(SEPARATORS):
        words = (*CHECK, "--sep", separator)
        yield f"{place}", partial(written, "a.csv", good_csv(), words=words)


def cells() -> Iterator[Drawn]:
    for name, text in NUMBERS.items():
        yield name, partial(written, "a.csv", with_cell(text))
        column = [
            "site,x1,x2",
            *(f's{row % 3},"{text}",{row % 7}' for row in range(60)),
        ]
        content = "\n".join(column).encode()
        yield f"column-{name}", partial(written, "a.csv", content)
        domain = [
            "site,x1,x2",
            *(f'"{text}",{row % 11},{row % 7}' for row in range(60)),
        ]
        content = "\n".join([*domain, "other,1,2"] + ["other,3,4"] * 40).encode()
        yield f"domain-{name}", partial(written, "a.csv", content)


SHAPES = {
    "empty": b"",
    "newline": b"\n",
    "spaces": b"   \n  \n",
    "bom": b"\xef\xbb\xbf",
    "header-only": b"site,x1,x2\n",
    "header-cut": b"site,x1,",
    "one-cell": b"site",
    "nul": b"\0" * 1_000,
    "ff": b"\xff" * 1_000,
    "quote": b'"',
    "quotes": b'site,x\n"' * 3,
    "open-quote": b'site,x\na,"1\n' + b"b,2\n" * 50,
    "commas": b"," * 5_000,
    "long-line": b"site,x\n" + b"a" * 3_000_000,
    "long-rows": b"site,x\n" + b"a,1,2,3\n" * 50,
    "short-rows": b"site,x,y,z\n" + b"a\nb\n" * 50,
    "numbers": b"1,2,3\n4,5,6\n" * 9,
    "twice": b"site,x,x\na,1,2\n" * 9,
    "cr": good_csv().replace(b"\n", b"\r"),
    "crcrlf": good_csv().replace(b"\n", b"\r\r\n"),
    "nul-in-header": good_csv().replace(b"x1", b"x\0"),
    "newline-in-header": good_csv().replace(b"x1", b'"x\n1"', 1),
    "escape-in-header": good_csv().replace(b"x1", b"\x1b]0;owned\x07x1", 1),
    "html": b"<html><body>404</body></html>\n" * 20,
    "json": json.dumps([{"site": "a", "x": 1}] * 20).encode(),
    "nested-json": b"[" * 200_000,
    "xml": b"<?xml version='1.0'?>" + b"<a>" * 10_000,
    "pickle": b"\x80\x04\x95" + b"cos\nsystem\n(S'touch owned'\ntR.",
    "python": b"import os\nos.system('touch owned')\n",
    "elf": b"\x7fELF" + bytes(range(256)) * 20,
    "gzip": gzip.compress(good_csv(), mtime=0),
    "xz": b"\xfd7zXZ\0" + bytes(100),
    "zip": b"PK\x03\x04" + bytes(100),
    "excel": b"\xd0\xcf\x11\xe0" + bytes(600),
    "parquet": b"PAR1" + bytes(200) + b"PAR1",
    "pdf": b"%PDF-1.4\n" + b"%%EOF\n" * 50,
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "surrogates": b"site,x\n\xed\xa0\x80,1\n" * 20,
    "overlong": b"site,x\n\xc0\xaf,1\n" * 20,
    "bidi": "site,x\n\u202etxt.exe,1\n".encode() * 20,
}


def shapes() -> Iterator[Drawn]:
    for name, content in SHAPES.items():
        yield name, partial(written, "a.csv", content)
    for ending in ("tsv", "csv.gz", "parquet", "feather", "npy", "npz", "h5ad", "mtx",
                   "mtx.gz", "xyz", "CSV"):  # fmt: skip
        for shape in ("empty", "nul", "html", "pickle"):
            yield f"{shape}.{ending}", partial(written, f"a.{ending}", SHAPES[shape])


# ---- sizes that files only claim -----------------------------------------------------


def npy_bytes(
    shape: Any, descr: Any = "<f8", body: bytes = b"", version: int = 1
) -> bytes:
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 16) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


def mtx_bytes(sizes: str, *entries: str, form: str = "coordinate") -> bytes:
    banner = f"%%MatrixMarket matrix {form} real general"
    return "\n".join([banner, sizes, *entries]).encode() + b"\n"


def sparse_npz(shape: Sequence[int]) -> bytes:
    parts = {
        "data": np.ones(1), "indices": np.zeros(1, np.int32),
        "indptr": np.array([0] + [1] * 3, np.int32), "shape": np.array(shape),
        "format": np.array(b"csr"),
    }  # fmt: skip
    packed = io.BytesIO()
    np.savez_compressed(packed, **parts)
    return packed.getvalue()


BESIDE = ("check", "--domain-file", "domains.txt")
BILLION = 10**9

CLAIMS = {
    "wide.mtx": mtx_bytes(f"3 {BILLION} 1", "1 1 1"),
    "tall.mtx": mtx_bytes(f"{BILLION} 3 1", "1 1 1"),
    "both.mtx": mtx_bytes(f"{BILLION} {BILLION} 1", "1 1 1"),
    "entries.mtx": mtx_bytes(f"3 3 {BILLION}", "1 1 1"),
    "beyond.mtx": mtx_bytes(f"{10**30} 3 1", "1 1 1"),
    "digits.mtx": mtx_bytes(f"{'9' * 900} 3 1", "1 1 1"),
    "array.mtx": mtx_bytes(f"{BILLION} 3", "1", form="array"),
    "two.mtx": mtx_bytes("3 3", "1 1 1"),
    "four.mtx": mtx_bytes("3 3 1 1", "1 1 1"),
    "negative.mtx": mtx_bytes("-3 3 1", "1 1 1"),
    "zero.mtx": mtx_bytes("0 0 0"),
    "outside.mtx": mtx_bytes("3 3 1", "4 1 1"),
    "nan.mtx": mtx_bytes("3 3 1", "nan 1 1"),
    "rows.npy": npy_bytes((10**12, 8)),
    "columns.npy": npy_bytes((3, 10**12)),
    "negative.npy": npy_bytes((-1, 8)),
    "overflow.npy": npy_bytes((2**62, 2**62)),
    "empty.npy": npy_bytes((0, 4)),
    "no-columns.npy": npy_bytes((9, 0)),
    "axes.npy": npy_bytes((1,) * 33, body=bytes(8)),
    "zero-wide.npy": npy_bytes((2**40, 0)),
    "object.npy": npy_bytes((3,), "|O", b"\x80\x04K\x01."),
    "void.npy": npy_bytes((3, 3), "|V99999999"),
    "text.npy": npy_bytes((3, 3), "<U999999999"),
    "fields.npy": npy_bytes((3,), [("a", "<f8")], bytes(24)),
    "dates.npy": npy_bytes((3, 3), "<M8[ns]", bytes(72)),
    "complex.npy": npy_bytes((3, 3), "<c16", bytes(144)),
    "call.npy": npy_bytes("__import__('os').system('touch owned')"),
    "deep.npy": npy_bytes((3, 3)).replace(b"(3, 3)", b"(" * 3_000),
    "version.npy": npy_bytes((3, 3), version=9),
    "claims.npz": zipped({"X.npy": npy_bytes((10**10, 8))}),
    "many.npz": zipped({f"a{place}.npy": npy_bytes((3, 3), body=bytes(72))
                        for place in range(3_000)}),
    "outside.npz": zipped({"../../x.npy": npy_bytes((3, 3), body=bytes(72))}),
    "names.npz": zipped({"X.npy": npy_bytes((3, 3), body=bytes(72)),
                         "site.npy": npy_bytes((9,), "<U3", bytes(108))}),
    "text.npz": zipped({"X": b"not an array"}),
    "wide-sparse.npz": sparse_npz([3, BILLION]),
    "tall-sparse.npz": sparse_npz([BILLION, 3]),
    "beyond-sparse.npz": sparse_npz([2**62, 2**62]),
}  # fmt: skip


def claims() -> Iterator[Drawn]:
    def make(name: str, content: bytes, folder: Path) -> Words:
        (folder / "domains.txt").write_text("a\nb\nc\n")
        return written(name, content, folder, words=BESIDE)

    for name, content in CLAIMS.items():
        yield name, partial(make, name, content)


def bombs() -> Iterator[Drawn]:
    """Megabytes that become gigabytes."""

    def gz(head: bytes, line: bytes, times: int, folder: Path) -> Words:
        with gzip.open(folder / "a.csv.gz", "wb", compresslevel=1) as file:
            file.write(head)
            piece = line * (2**20 // len(line))
            for _ in range(times):
                file.write(piece)
        return ["check", "a.csv.gz", "--domain", "site"]

    def columns(n_columns: int, folder: Path) -> Words:
        names = ",".join(f"x{place}" for place in range(n_columns))
        row = ",".join("1" for _ in range(n_columns))
        rows = "".join(f"{site},{row}\n" for site in "abcabc")
        (folder / "a.csv").write_text(f"site,{names}\n{rows}")
        return ["check", "a.csv", "--domain", "site"]

    yield "rows.csv.gz", partial(gz, b"site,x\n", b"a,1\n", 1_200)
    yield "cell.csv.gz", partial(gz, b"site,x\na,", b"1", 1_200)
    yield "header.csv.gz", partial(gz, b"site,", b"x", 1_200)
    yield "nul.csv.gz", partial(gz, b"", b"\0", 1_200)
    yield "entries.mtx.gz", bomb_mtx
    yield "zeros.npz", bomb_npz
    yield "far-cell.xlsx", far_cell
    yield "200000-columns.csv", partial(columns, 200_000)
    for bins in ("0", "1", "-3", "100000000", str(10**30), "2.5"):
        words = ("check", "--domain", "x0", "--domain-bins", bins)
        yield f"domain-bins-{bins}", partial(written, "a.csv", good_csv(), words=words)
    for rows in ("0", "1", "-1", str(10**12), str(10**400)):
        words = (*CHECK, "--sample", rows)
        yield (
            f"sample-{len(rows)}{rows[:2]}",
            partial(written, "a.csv", good_csv(), words=words),
        )


def bomb_mtx(folder: Path) -> Words:
    with gzip.open(folder / "a.mtx.gz", "wb", compresslevel=1) as file:
        file.write(b"%%MatrixMarket matrix coordinate real general\n3 3 1\n")
        for _ in range(800):
            file.write(b"1 1 1\n" * 174_000)
    (folder / "domains.txt").write_text("a\nb\nc\n")
    return ["check", "a.mtx.gz", "--domain-file", "domains.txt"]


def far_cell(folder: Path) -> Words:
    """Two cells, and all that lies between them."""
    from openpyxl import Workbook

    book = Workbook()
    book.active["A1"] = "site"
    book.active["XFD1048576"] = 1
    book.save(folder / "a.xlsx")
    return ["check", "a.xlsx", "--domain", "site"]


def bomb_npz(folder: Path) -> Words:
    """An honest header of 1.2 GiB, in 5 MB."""
    with zipfile.ZipFile(
        folder / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive, archive.open("X.npy", "w", force_zip64=True) as member:  # fmt: skip
        member.write(npy_bytes((40_000, 3_932)))
        for _ in range(1_200):
            member.write(bytes(2**20))
    (folder / "domains.txt").write_text("a\n" * 40_000)
    return ["check", "a.npz", "--domain-file", "domains.txt"]
