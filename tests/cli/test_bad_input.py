"""Bad input of every kind: an exit code, one line that names it, a fix, no harm.

Every case writes its files into an empty folder (or into a copy of one with a fitted
run), runs one command, and looks at how it ended and that the folder is as it was.
"""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.data import site_table

Files = Callable[[Path], object]

DOMAIN = "--domain site"


@dataclass(frozen=True)
class Case:
    """Files, a command, and how it must end."""

    files: Files
    command: str
    code: str
    exit_code: int
    named: str
    hint: str = ""


def table(change: Callable[[pd.DataFrame], pd.DataFrame] = lambda t: t) -> Files:
    """x.csv with a changed table."""
    return lambda folder: change(site_table()).to_csv(folder / "x.csv", index=False)


def text(name: str, content: str, encoding: str = "utf-8") -> Files:
    return lambda folder: (folder / name).write_text(content, encoding=encoding)


def array(values: object, domains: int = 60) -> Files:
    """x.npy and its domains, one a line."""

    def write(folder: Path) -> None:
        np.save(folder / "x.npy", np.asarray(values), allow_pickle=True)
        lines = "\n".join(str(number % 3) for number in range(domains))
        (folder / "d.txt").write_text(lines + "\n")

    return write


def both(*parts: Files) -> Files:
    return lambda folder: [part(folder) for part in parts]


def with_cell(column: str, row: int, value: object) -> Callable[..., pd.DataFrame]:
    def change(good: pd.DataFrame) -> pd.DataFrame:
        cells = good[column].astype(object)
        cells[row] = value
        return good.assign(**{column: cells})

    return change


def image_folder(folder: Path) -> None:
    from PIL import Image

    for site in ("a", "b"):
        (folder / "photos" / site).mkdir(parents=True)
        for number in range(3):
            image = Image.new("RGB", (8, 8), (number * 40, 0, 0))
            image.save(folder / "photos" / site / f"{number}.png")


def broken_images(folder: Path) -> None:
    image_folder(folder)
    (folder / "photos" / "a" / "0.png").write_bytes(b"no picture")


def loose_image(folder: Path) -> None:
    image_folder(folder)
    (folder / "photos" / "a" / "0.png").rename(folder / "photos" / "loose.png")


def huge_array(folder: Path) -> None:
    """A file whose header claims more numbers than any memory holds; it is sparse."""
    shape = (4_000_000, 30_000)
    header = np.lib.format.header_data_from_array_1_0(np.zeros((1, 1)))
    with (folder / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header | {"shape": shape})
        file.truncate(file.tell() + 8 * shape[0] * shape[1])
    (folder / "d.txt").write_text("a\n")


def noise(folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(300, 2)), columns=["size", "mass"])
    rows.insert(0, "site", rng.choice(["a", "b", "c"], size=300))
    rows.to_csv(folder / "x.csv", index=False)


def nested(folder: Path) -> None:
    rows = site_table().assign(size=[[1.0, 2.0]] * 60)
    rows.to_parquet(folder / "x.parquet")


GOOD = table()
FIT = f"fit x.csv {DOMAIN} --k 2 --out out"

READING = {
    "absent file": Case(GOOD, f"fit y.cvs {DOMAIN}", "E101", 3, "y.cvs"),
    "misspelt file": Case(
        text("penguins.csv", "a\n1\n"),
        f"fit penguin.cvs {DOMAIN}", "E101", 3, "penguin.cvs", "penguins.csv",
    ),
    "absent second file": Case(GOOD, "fit x.csv y.csv", "E101", 3, "y.csv"),
    "unknown format": Case(
        text("x.dat", "a,b\n1,2\n"), f"fit x.dat {DOMAIN}", "E102", 3, "x.dat",
        "--format",
    ),
    "unknown format asked for": Case(
        GOOD, f"{FIT} --format docx", "E102", 3, "docx"
    ),
    "header only": Case(text("x.csv", "site,size\n"), FIT, "E114", 3, "x.csv"),
    "empty file": Case(text("x.csv", ""), FIT, "E114", 3, "x.csv"),
    "semicolons": Case(
        text("x.csv", "site;size;mass\na;1;2\nb;3;4\n"), f"{FIT} --sep ,", "E143", 3,
        "semicolons", "--sep",
    ),
    "not UTF-8": Case(
        text("x.csv", "site,size\nЖук,1\nb,2\n", "cp1251"), FIT, "E143", 3, "0xC6",
        "--encoding",
    ),
    "unknown encoding": Case(GOOD, f"{FIT} --encoding utf-99", "E143", 3, "utf-99"),
    "no domain": Case(
        GOOD, "fit x.csv --out out", "E106", 2, "where a row comes from", "site"
    ),
    "misspelt domain": Case(
        GOOD, "fit x.csv --domain Site --out out", "E107", 3, "Site", "site"
    ),
    "fewer words than classes": Case(
        text("x.csv", "site,note\n" + "a,sea\nb,reef\nc,sea\nc,reef\n" * 20),
        f"{FIT} --text note --k 3",
        "E164", 4, "words", "fewer classes",
    ),
    "features after a space": Case(
        GOOD, f"{FIT} --features size mass", "E002", 2, '"mass"', "size,mass"
    ),
    "a feature that is the domain": Case(
        GOOD, f"{FIT} --features site,size", "E002", 2,
        '"site" is named by --domain and by --features',
    ),
    "a feature that is the label": Case(
        GOOD, f"{FIT} --features mass --label mass", "E002", 2,
        '"mass" is named by --label and by --features',
    ),
    "parts of a CSV file to keep": Case(
        GOOD, f"{FIT} --checkpoint kept", "E002", 2, "--checkpoint is for data read in",
    ),
    "parts of a CSV file at a time": Case(
        GOOD, f"{FIT} --workers 2", "E002", 2, "--workers is for data read in parts",
    ),
    "parts in memory": Case(
        GOOD, f"{FIT} --workers 2 --engine memory", "E002", 2, "not for --engine",
    ),
    "a network to tune that is not there": Case(
        GOOD, f"{FIT} --fine-tune", "E002", 2, "--fine-tune is for the network",
    ),
    "pixels without a network": Case(
        GOOD, "choose x.csv --domain site --size 8", "E002", 2, "--size is for the net",
    ),
    "a device without a network": Case(
        GOOD, f"diagnose x.csv {DOMAIN} --device cuda", "E002", 2, "--device is for",
    ),
    "domains from the names of no images": Case(
        GOOD, f"{FIT} --domain-from (.)", "E002", 2, "--domain-from is for a folder of",
    ),
    "bad images of a table": Case(
        GOOD, f"check x.csv {DOMAIN} --skip-bad", "E002", 2, "--skip-bad is for",
    ),
    "dropped columns after a space": Case(
        GOOD, f"{FIT} --drop size mass", "E002", 2, '"mass"', "--drop size,mass"
    ),
    "numbers too large to square": Case(
        table(lambda t: t.assign(mass=t["mass"] * 1e300)), FIT, "E115", 3, '"mass"',
        "rescale",
    ),
    "places before years": Case(
        table(lambda t: t.assign(year=np.resize([1, 2, 3], 60))[
            ["year", "size", "mass", "site"]]),
        "fit x.csv --out out", "E106", 2, "where a row", "candidates: site (3 values)",
    ),
    "absent feature": Case(GOOD, f"{FIT} --features size,weight", "E107", 3, "weight"),
    "absent column to drop": Case(GOOD, f"{FIT} --drop colour", "E107", 3, "colour"),
    "absent id": Case(GOOD, f"{FIT} --id name", "E107", 3, "name"),
    "absent label": Case(GOOD, f"{FIT} --label species", "E107", 3, "species"),
    "absent text": Case(GOOD, f"{FIT} --text notes", "E107", 3, "notes"),
    "one domain": Case(
        table(lambda t: t.assign(site="a")), FIT, "E112", 4, "one domain"
    ),
    "a domain per row": Case(
        table(lambda t: t.assign(site=[f"s{n}" for n in range(len(t))])),
        FIT, "E109", 3, "site", "--domain-bins",
    ),
    "a measurement as domain": Case(
        table(lambda t: t.assign(site=t["mass"])), FIT, "E109", 3, "site"
    ),
    "words cannot be cut": Case(GOOD, f"{FIT} --domain-bins 3", "E109", 3, "site"),
    "a missing domain": Case(
        table(with_cell("site", 6, None)), FIT, "E115", 3, "row 7",
        "--drop-missing-domain",
    ),
    "no domain anywhere": Case(
        table(lambda t: t.assign(site=None)), FIT, "E115", 3, "no row"
    ),
    "all columns constant": Case(
        table(lambda t: t.assign(size=1, mass=2)), FIT, "E114", 3, "constant"
    ),
    "all columns dropped": Case(
        GOOD, f"{FIT} --drop size,mass", "E114", 3, "dropped"
    ),
    "missing values": Case(
        table(with_cell("mass", 4, None)), f"{FIT} --impute stop", "E115", 3, "mass",
        "--impute",
    ),
    "infinite values": Case(
        table(with_cell("mass", 4, np.inf)), FIT, "E115", 3, "mass"
    ),
    "free text": Case(
        table(lambda t: t.assign(notes=[f"was seen near tree {n}" for n in t.index])),
        FIT, "E116", 3, "notes", "--text",
    ),
    "a word among numbers": Case(
        table(with_cell("mass", 17, "heavy")), FIT, "E119", 3, "heavy", "--na"
    ),
    "decimal commas": Case(
        table(lambda t: t.assign(mass=t["mass"].astype(str).str.replace(".", ","))),
        f"{FIT} --decimal .", "E119", 3, "mass", "--decimal ,",
    ),
    "the answer among the columns": Case(
        table(lambda t: t.assign(species=np.resize(["x", "y"], len(t)))),
        FIT, "E120", 3, "species", "--label",
    ),
    "lengths differ": Case(
        array(np.eye(60), domains=58), "fit x.npy --domain-file d.txt", "E124", 3, "58"
    ),
    "four dimensions": Case(
        array(np.zeros((60, 3, 2, 2))), "fit x.npy --domain-file d.txt", "E124", 3,
        "(60, 3, 2, 2)",
    ),
    "one dimension": Case(
        array(np.arange(60.0)), "fit x.npy --domain-file d.txt", "E124", 3, "(60,)"
    ),
    "objects": Case(
        array(np.array([{"a": 1}] * 60, dtype=object)),
        "fit x.npy --domain-file d.txt", "E102", 3, "pickle",
    ),
    "equal vectors": Case(
        array(np.ones((60, 4))), "fit x.npy --domain-file d.txt", "E124", 3, "identical"
    ),
    "no domains for an array": Case(
        array(np.eye(60)), "fit x.npy", "E106", 2, "where a row comes from",
        "--domain-file",
    ),
    "absent file of domains": Case(
        array(np.eye(60)), "fit x.npy --domain-file e.txt", "E101", 3, "e.txt"
    ),
    "images outside their folders": Case(
        loose_image, "check photos", "E109", 3, "loose.png"
    ),
    "broken images": Case(broken_images, "check photos", "E143", 3, "a/0.png"),
    "images instead of columns": Case(
        image_folder, "fit photos --k 2", "E124", 3, "photos", "encoder"
    ),
    "an empty folder": Case(
        lambda folder: (folder / "empty").mkdir(), "fit empty", "E101", 3, "empty"
    ),
    "negative counts": Case(
        table(lambda t: t.assign(size=-t.index, mass=t.index)), f"{FIT} --counts",
        "E130", 3, "size",
    ),
    "fractional counts": Case(GOOD, f"{FIT} --counts", "E130", 3, "size"),
    "a huge array": Case(
        huge_array, "fit x.npy --domain-file d.txt", "E137", 3, "GiB", "--sample"
    ),
    "columns of the same name": Case(
        text("x.csv", "site,size,size\na,1,2\nb,3,4\n"), FIT, "E107", 3, "size"
    ),
    "a line with too many cells": Case(
        text("x.csv", "site,size\na,1\nb,2,3,4\n"), FIT, "E143", 3, "3"
    ),
    "a damaged Parquet file": Case(
        text("x.parquet", "PAR1 not really"), f"fit x.parquet {DOMAIN}", "E143", 3,
        "x.parquet",
    ),
    "a damaged archive": Case(
        text("x.csv.gz", "not compressed"), f"fit x.csv.gz {DOMAIN}", "E143", 3,
        "x.csv.gz",
    ),
    "lists in cells": Case(
        nested, f"fit x.parquet {DOMAIN}", "E124", 3, "size", "one column per number"
    ),
    "an unknown way to impute": Case(
        GOOD, f"{FIT} --impute magic", "E002", 2, "magic", "median"
    ),
    "a separator of two": Case(GOOD, f"{FIT} --sep ::", "E002", 2, "::"),
    "no header": Case(text("x.csv", "1,2,3\n4,5,6\n"), FIT, "E143", 3, "x.csv"),
    "files with different columns": Case(
        both(text("a.csv", "size,mass\n1,2\n3,4\n"), text("b.csv", "size\n1\n2\n")),
        "fit a.csv b.csv", "E107", 3, "mass",
    ),
    "a group that cuts through a domain": Case(
        table(lambda t: t.assign(ill=["yes", "no"] * 30)),
        f"check x.csv {DOMAIN} --group ill", "E109", 3, '"ill"', "whole domains",
    ),
    "a group with gaps": Case(
        table(lambda t: t.assign(ill=t["site"].map({"a": "yes", "b": "no"}))),
        f"check x.csv {DOMAIN} --group ill", "E109", 3, '"c"', "--group",
    ),
    "a group that is not there": Case(
        GOOD, f"check x.csv {DOMAIN} --group il", "E107", 3, '"il"'
    ),
}  # fmt: skip

ASKING = {
    "no time to choose": Case(
        GOOD, f"choose x.csv {DOMAIN} --time-limit 0", "E002", 2, "--time-limit"
    ),
    "more classes than domains": Case(
        GOOD, f"fit x.csv {DOMAIN} --k 7", "E112", 4, "7 classes", "--k 3"
    ),
    "one class": Case(GOOD, f"fit x.csv {DOMAIN} --k 1", "E002", 2, '"1"', "choose"),
    "k is a word": Case(GOOD, f"fit x.csv {DOMAIN} --k many", "E002", 2, "many"),
    "k is a fraction": Case(GOOD, f"diagnose x.csv {DOMAIN} --k 2.5", "E002", 2, "2.5"),
    "a range upside down": Case(
        GOOD, f"choose x.csv {DOMAIN} --k 5:2", "E002", 2, "5:2", "2:8"
    ),
    "a range of words": Case(GOOD, f"choose x.csv {DOMAIN} --k a:b", "E002", 2, "a:b"),
    "nothing to choose": Case(noise, f"choose x.csv {DOMAIN}", "E138", 4, "gain"),
    "a file where the folder goes": Case(
        both(GOOD, text("out", "mine")), FIT, "E140", 3, '"out"', "--out"
    ),
    "a file above the folder": Case(
        both(GOOD, text("up", "mine")), f"fit x.csv {DOMAIN} --out up/out", "E140", 3,
        '"up"',
    ),
    "a file of the same name": Case(
        both(GOOD, lambda f: (f / "out").mkdir(), text("out/report.html", "mine")),
        FIT, "E136", 2, "report.html", "--force",
    ),
    "a check in the way": Case(
        both(GOOD, text("check.json", "mine")), f"check x.csv {DOMAIN} --out .",
        "E136", 2, "check.json",
    ),
    "a level above 1": Case(GOOD, f"{FIT} --level 2", "E002", 2, "--level"),
    "one resample": Case(GOOD, f"{FIT} --bootstrap 1", "E002", 2, "--bootstrap"),
    "no threads": Case(GOOD, f"{FIT} --threads 0", "E002", 2, "--threads"),
    "a sample of one": Case(GOOD, f"{FIT} --sample 1", "E002", 2, "--sample"),
    "an unknown option": Case(GOOD, f"{FIT} --clases 3", "E002", 2, "--clases"),
    "names that are no JSON": Case(
        both(GOOD, text("n.json", "Adelie")), f"{FIT} --names n.json", "E002", 2,
        "n.json",
    ),
    "absent names": Case(GOOD, f"{FIT} --names n.json", "E101", 3, "n.json"),
    "a configuration with a typo": Case(
        both(GOOD, text("c.toml", "kk = 3")), f"{FIT} --config c.toml", "E002", 2, "kk"
    ),
}  # fmt: skip

MODEL = {
    "no model": Case(GOOD, "predict nowhere x.csv", "E135", 6, "nowhere"),
    "not a model": Case(GOOD, "predict . x.csv", "E135", 6, "not a shoal model"),
    "a manifest cut short": Case(
        text("run/model/manifest.json", '{"format": 1'),
        "predict run penguins.csv", "E135", 6, "not of the run in run.json",
    ),
    "a manifest changed": Case(
        lambda f: _edit(f, "seed", 9), "name run --list", "E135", 6, "manifest.json"
    ),
    "a newer format": Case(
        lambda f: _edit(f, "format", 99), "report run", "E135", 6, "manifest.json"
    ),
    "damaged arrays": Case(
        text("run/model/arrays.safetensors", "oh"), "predict run penguins.csv", "E135",
        6, "arrays.safetensors",
    ),
    "classes changed by hand": Case(
        text("run/model/classes.json", "{}"), "name run --list", "E135", 6,
        "classes.json",
    ),
    "a column missing": Case(
        lambda f: _penguins(f, lambda t: t.drop(columns="bill_depth_mm")),
        "predict run new.csv", "E133", 6, "bill_depth_mm",
    ),
    "the domain missing": Case(
        lambda f: _penguins(f, lambda t: t.drop(columns="island")),
        "predict run new.csv", "E133", 6, "island", "--pooled",
    ),
    "an unknown domain": Case(
        lambda f: _penguins(f, lambda t: t.assign(island="Site9")),
        "predict run new.csv", "E134", 6, "Site9", "shoal adapt",
    ),
    "an unknown domain to judge": Case(
        lambda f: _penguins(f, lambda t: t.assign(island="Site9")),
        "diagnose new.csv --model run", "E134", 6, "Site9",
    ),
    "no rows to class": Case(
        lambda f: _penguins(f, lambda t: t.head(0)), "predict run new.csv", "E114", 3,
        "new.csv",
    ),
    "no rows to adapt to": Case(
        lambda f: _penguins(f, lambda t: t.head(0)),
        "adapt run new.csv --domain-name S", "E114", 3, "new.csv",
    ),
    "a word in a column of numbers": Case(
        lambda f: _penguins(f, with_cell("body_mass_g", 3, "heavy")),
        "predict run new.csv", "E119", 3, "body_mass_g",
    ),
    "an infinite value to class": Case(
        lambda f: _penguins(f, with_cell("body_mass_g", 3, np.inf)),
        "predict run new.csv", "E115", 3, "body_mass_g",
    ),
    "a missing domain to class": Case(
        lambda f: _penguins(f, with_cell("island", 3, None)),
        "predict run new.csv", "E115", 3, "island", "--pooled",
    ),
    "an array for a model of columns": Case(
        array(np.eye(60)), "predict run x.npy --pooled", "E133", 6, "bill_length_mm"
    ),
    "assignments in the way": Case(
        text("rows.csv", "mine"), "predict run penguins.csv --out rows.csv", "E136", 2,
        "rows.csv", "--force",
    ),
    "assignments of unknown format": Case(
        GOOD, "predict run penguins.csv --out rows.xls", "E102", 3, "rows.xls", ".csv"
    ),
    "a confidence above 1": Case(
        GOOD, "predict run penguins.csv --min-confidence 1.5", "E002", 2,
        "--min-confidence",
    ),
    "an absent mix": Case(
        GOOD, "predict run penguins.csv --prevalence m.json", "E101", 3, "m.json"
    ),
    "a mix that does not add up": Case(
        text("m.json", '{"c0": 0.5, "c1": 0.6, "c2": 0.1}'),
        "predict run penguins.csv --prevalence m.json", "E143", 3, "add to 1.2",
    ),
    "a mix of unknown classes": Case(
        text("m.json", '{"c0": 0.5, "c7": 0.5}'),
        "predict run penguins.csv --prevalence m.json", "E143", 3, "c7",
    ),
    "a mix without a class": Case(
        text("m.json", '{"c0": 0.5, "c1": 0.5}'),
        "predict run penguins.csv --prevalence m.json", "E143", 3, '"c2"',
    ),
    "a mix of words": Case(
        text("m.json", '{"c0": "half"}'),
        "predict run penguins.csv --prevalence m.json", "E143", 3, "half",
    ),
    "a mix of several domains": Case(
        GOOD, "predict run penguins.csv --prevalence run/prevalence.csv", "E143", 3,
        "has the mixes of 3 domains: Biscoe, Dream, Torgersen", "keep the rows of one",
    ),
    "a mix that is a list": Case(
        text("m.json", "[1, 2]"), "predict run penguins.csv --prevalence m.json",
        "E143", 3, "m.json",
    ),
    "adapting in place": Case(
        GOOD, "adapt run penguins.csv --domain-name S --out run --force", "E136", 2,
        "run",
    ),
    "adapting to a known domain": Case(
        GOOD, "adapt run penguins.csv --domain-name Dream", "E002", 2, "Dream"
    ),
    "adapting without a name": Case(
        GOOD, "adapt run penguins.csv", "E002", 2, "--domain-name"
    ),
    "naming nothing": Case(GOOD, "name run", "E002", 2, "--set"),
    "naming and merging at once": Case(
        GOOD, "name run --set c0=A --merge c1,c2=B", "E002", 2, "--merge"
    ),
    "naming an unknown class": Case(
        GOOD, "name run --set c9=Adelie", "E002", 2, "c9"
    ),
    "two classes of one name": Case(
        GOOD, "name run --set c0=Adelie --set c1=Adelie", "E002", 2, "Adelie"
    ),
    "a name without a class": Case(
        GOOD, "name run --set Adelie", "E002", 2, "Adelie", "c0=Adelie"
    ),
    "merging one class": Case(
        GOOD, "name run --merge c0=Adelie", "E002", 2, "c0", "c2,c5=Gentoo"
    ),
    "merging all classes": Case(
        GOOD, "name run --merge c0,c1,c2=All", "E002", 2, "one class"
    ),
    "nothing to undo": Case(GOOD, "name run --undo", "E002", 2, "undo"),
    "names that are a list": Case(
        text("n.json", '["Adelie"]'), "name run --from n.json", "E002", 2, "n.json"
    ),
    "no summary": Case(
        lambda f: (f / "run" / "summary.json").unlink(), "report run --out r.html",
        "E135", 6, "summary.json",
    ),
    "a summary cut short": Case(
        text("run/summary.json", '{"schema"'), "report run --out r.html", "E135", 6,
        "summary.json",
    ),
    "a summary of something else": Case(
        text("run/summary.json", '{"schema": "other/1", "classes": []}'),
        "report run --out r.html", "E135", 6, "summary",
    ),
    "an unknown section": Case(
        GOOD, "report run --sections where,when", "E002", 2, "when", "trust"
    ),
    "a page of no size": Case(
        GOOD, "report run --max-mb 0", "E002", 2,
        "--max-mb must be a number from 0.1 to 15, got 0", "--max-mb 5",
    ),
    "two mixes": Case(
        text("m.json", '{"c0": 0.2, "c2": 0.5, "c1": 0.3}'),
        "predict run penguins.csv --prevalence m.json --pooled", "E002", 2,
        "--pooled and --prevalence exclude each other",
    ),
    "a device for a model of columns": Case(
        GOOD, "predict run penguins.csv --device cuda", "E002", 2, "--device is for",
    ),
    **{
        f"{option} beside a model": Case(
            GOOD, f"diagnose penguins.csv --model run {option} {value}", "E002", 2,
            f"{option} is for a new fit",
        )
        for option, value in (
            ("--domain", "nonsense"), ("--features", "nope"), ("--label", "xx"),
            ("--sample", "50"), ("--k", "2"), ("--size", "8"),
        )
    },
    "a run in the folder of its own model": Case(
        GOOD, f"fit x.csv {DOMAIN} --k 2 --out run/model", "E136", 2,
        '"run/model" already holds a saved model', "--force",
    ),
    "an adapted run in the folder of a model": Case(
        lambda f: shutil.copytree(f / "run" / "model", f / "alone"),
        "adapt run penguins.csv --domain-name New --out alone", "E136", 2,
        '"alone" already holds a saved model', "--force",
    ),
}  # fmt: skip


def _edit(folder: Path, key: str, value: object) -> None:
    path = folder / "run" / "model" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))


def _penguins(folder: Path, change: Callable[..., pd.DataFrame]) -> None:
    good = pd.read_csv(folder / "penguins.csv")
    change(good).to_csv(folder / "new.csv", index=False)


def snapshot(folder: Path) -> dict[str, str]:
    """Fingerprint of every file, also of hidden ones."""
    return {
        path.relative_to(folder).as_posix(): _digest(path)
        for path in sorted(folder.rglob("*"))
    }


def _digest(path: Path) -> str:
    if path.is_dir() or path.stat().st_size > 10**9:
        return "large or a folder"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(cli, folder: Path, case: Case):
    """How a command ended: it said one error and one hint, and touched no file."""
    case.files(folder)
    before = snapshot(folder)
    ended = cli(*case.command.split())
    assert ended.stdout == ""
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("[")]
    error, hint = [line for line in lines if not _is_warning(line, lines)]
    assert error.startswith(f"error[{case.code}] ")
    assert case.named in error
    assert re.match(r"hint: \S", hint)
    assert case.hint in hint
    assert "Traceback" not in ended.stderr
    assert snapshot(folder) == before
    return ended


def _is_warning(line: str, lines: list[str]) -> bool:
    """A warning, or the hint right below it."""
    above = lines[lines.index(line) - 1] if lines.index(line) else ""
    return line.startswith("warning[") or above.startswith("warning[")


@pytest.mark.parametrize("case", READING.values(), ids=READING)
def test_reading(cli, tmp_path: Path, case: Case):
    ended = refused(cli, tmp_path, case)
    assert ended.code == case.exit_code, ended.stderr


@pytest.mark.parametrize("case", ASKING.values(), ids=ASKING)
def test_asking(cli, tmp_path: Path, case: Case):
    ended = refused(cli, tmp_path, case)
    assert ended.code == case.exit_code, ended.stderr


@pytest.mark.parametrize("case", MODEL.values(), ids=MODEL)
def test_models(cli, fitted: Path, tmp_path: Path, case: Case):
    ended = refused(cli, tmp_path, case)
    assert ended.code == case.exit_code, ended.stderr


def test_there_are_more_than_a_hundred():
    assert len({**READING, **ASKING, **MODEL}) >= 100


@pytest.mark.parametrize("name", ["missing values", "unknown format", "one domain"])
def test_errors_are_one_document_with_json(cli, tmp_path: Path, name: str):
    case = READING[name]
    case.files(tmp_path)
    ended = cli(*case.command.split(), "--json", "--quiet")
    document = json.loads(ended.stdout)
    assert ended.code == case.exit_code
    assert document["status"] == "error"
    assert document["files"] == []
    assert document["messages"][-1]["code"] == case.code


def test_nothing_to_find_is_an_error_with_a_report(cli, tmp_path: Path):
    """What was seen is written; the verdict forbids its use, and the error says why."""
    noise(tmp_path)
    ended = cli(*f"fit x.csv {DOMAIN} --k 2 --bootstrap 2 --out out".split())
    assert ended.code == 4
    error, hint = ended.stderr.splitlines()[-2:]
    assert error.startswith("error[E138] domains cannot be told apart on held-out rows")
    assert "gain" in error
    assert re.match(r"hint: \S", hint)
    assert "Verdict: ✗ do not use" in ended.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["verdict"]["word"] == "do not use"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Domains cannot be told apart" in page


def test_a_missing_package_is_exit_5(cli, tmp_path: Path, monkeypatch):
    """Without pyarrow: parquet cannot be read, and assignments become CSV."""
    (tmp_path / "x.parquet").write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = cli("check", "x.parquet", "--domain", "site")
    assert ended.code == 5
    assert "error[E132]" in ended.stderr
    assert 'pip install "shoal[parquet]"' in ended.stderr


def test_a_key_that_an_h5ad_file_lacks(cli, tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = np.eye(6, dtype=np.float32)
        for group, column in (("obs", "sample"), ("var", "gene")):
            names = file.create_group(group)
            names.attrs["_index"] = "index"
            names.attrs["column-order"] = [column]
            names["index"] = [f"{group}{number}" for number in range(6)]
            names[column] = ["a", "b"] * 3
    ended = cli("check", "cells.h5ad", "--domain", "donor")
    assert ended.code == 3
    error, hint = ended.stderr.splitlines()[-2:]
    assert error == 'error[E107] no "donor" in obs'
    assert "sample" in hint
