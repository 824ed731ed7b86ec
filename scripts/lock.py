"""Lock files with hashes for ``make demo`` and ``make test``, and their SBOM.

    python scripts/lock.py                  # writes locks/
    python scripts/lock.py --install test   # or demo

Writing: pip resolves, and every wheel of the versions it finds is listed by its sha256,
of all platforms and of the Pythons that we test, as the package index that pip is set
up with tells them. No host stands in a lock. Installing: files whose hash differs are
never installed. Where a lock cannot serve (a platform whose packages need others, such
as torch with CUDA; a pyproject.toml that asks for more) this is said in a line, and
constraints.txt takes its place. With LOCKED=1 there is no such fallback.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "locks"
SBOM = LOCKS / "sbom.cdx.json"
WANTED = {"demo": ".", "test": ".[dev]"}
# What builds the package itself, beside what it needs.
BUILDER = "setuptools>=77"
PYTHONS = ("cp311", "cp312", "cp313")
HEADER = (
    "# Written by scripts/lock.py (make lock). Wheels only: a source would be built\n"
    "# with packages that no hash holds.\n--only-binary :all:\n"
)
DIFFERS = "DO NOT MATCH THE HASHES"
# Of these the lock holds one build, for processors alone; elsewhere there are others.
BUILDS = {"torch"}


def main() -> int:
    """Write the locks, or install one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--install", choices=WANTED)
    args = parser.parse_args()
    if args.install:
        return install(args.install)
    LOCKS.mkdir(exist_ok=True)
    known = hashes_known()
    found = {}
    for name, wanted in WANTED.items():
        found = resolve(wanted)
        text = HEADER + "".join(lock_lines(found, known))
        (LOCKS / f"{name}.txt").write_text(text)
    SBOM.write_text(json.dumps(bill(found), indent=1) + "\n")
    return 0


# ---- installing ----------------------------------------------------------------------


def install(name: str) -> int:
    """Install by the lock, and the package; 1 where a lock was to hold and did not."""
    lock, strict = f"locks/{name}.txt", bool(os.environ.get("LOCKED"))
    got = pip("install", "--require-hashes", "-r", lock)
    differing = set(re.findall(r"(?m)^ +([\w.-]+)==\S* from ", got.stderr))
    forged = DIFFERS in got.stderr and not differing <= BUILDS
    if forged or (got.returncode and strict):
        print(got.stderr, f"{lock} was not installed", file=sys.stderr)
        return 1
    package = ["install", "-c", "constraints.txt", "-e", WANTED[name]]
    if got.returncode:
        said = [line for line in got.stderr.splitlines() if "ERROR" in line]
        reason = said[-1].strip() if said else "pip failed"
        note(f"{lock} does not serve this machine ({reason})")
    else:
        lacking = missing(package)
        if lacking and strict:
            print(f"{lock} lacks {lacking}; make lock", file=sys.stderr)
            return 1
        if lacking:
            note(f"{lock} lacks {lacking}, which pyproject.toml asks for (make lock)")
        package.append("--no-build-isolation")
    got = pip(*package)
    print(got.stderr, end="", file=sys.stderr)
    return got.returncode


def missing(package: list[str]) -> str:
    """What installing the package would bring beside itself."""
    asked = [*package, "--no-build-isolation", "--dry-run", "--report", "-"]
    listed = json.loads(pip(*asked).stdout)["install"]
    names = (one["metadata"]["name"] for one in listed)
    return ", ".join(sorted(name for name in names if name != "shoal"))


def note(why: str) -> None:
    """Say that something comes without hashes."""
    print(f"note: {why}: constraints.txt decides, without hashes", file=sys.stderr)


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What pip of this Python says and returns."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


# ---- writing -------------------------------------------------------------------------


def resolve(wanted: str) -> dict[str, dict]:
    """What pip would install, by name: its part of pip's report."""
    options = "install --dry-run --ignore-installed --report - -c constraints.txt"
    got = pip(*options.split(), BUILDER, wanted)
    if got.returncode:
        raise SystemExit(got.stderr)
    listed = json.loads(got.stdout)["install"]
    found = {normal(one["metadata"]["name"]): one for one in listed}
    del found["shoal"]
    return dict(sorted(found.items()))


def hashes_known() -> dict[str, list[str]]:
    """Hashes by name and version in the locks there are: those of a version stay."""
    known: dict[str, list[str]] = {}
    for lock in LOCKS.glob("*.txt"):
        for entry in re.findall(r"(?m)^\S+==.*(?:\n    .*)*", lock.read_text()):
            known[entry.split()[0]] = re.findall(r"sha256:(\w+)", entry)
    return known


def lock_lines(found: dict[str, dict], known: dict[str, list[str]]) -> Iterator[str]:
    """Name, version and hashes of each, as pip reads them."""
    for name, one in found.items():
        pinned = f"{name}=={public(one)}"
        known[pinned] = known.get(pinned) or hashes_of(name, one)
        hashes = (f"--hash=sha256:{digest}" for digest in known[pinned])
        yield f"{pinned} \\\n    " + " \\\n    ".join(hashes) + "\n"


def hashes_of(name: str, one: dict) -> list[str]:
    """Of the wheel that pip took, and of all others of that version that we test on."""
    own = one["download_info"]["archive_info"]["hashes"]["sha256"]
    if "+" in one["metadata"]["version"]:  # others of that version are other builds
        return [own]
    pattern = r'/([^/"]+\.whl)#sha256=([0-9a-f]{64})"'
    fit = [
        digest
        for file, digest in re.findall(pattern, index_page(name))
        if serves(file, public(one))
    ]
    return sorted({own, *fit})


def serves(file: str, version: str) -> bool:
    """Whether a wheel is of this version, and for a Python that we test."""
    _, of, *_, python, abi, _ = file.split("-")
    return of == version and (
        python.startswith("py") or python in PYTHONS or abi == "abi3"
    )


def index_page(name: str) -> str:
    """What pip's own index lists of a package."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
    )
    index = os.environ.get("PIP_INDEX_URL") or told.stdout.strip()
    index = (index or "https://pypi.org/simple").rstrip("/")
    request = Request(f"{index}/{name}/", headers={"Accept": "text/html"})
    with urlopen(request, timeout=120) as page:
        return page.read().decode()


def bill(found: dict[str, dict]) -> dict:
    """Software bill of materials of the test lock, in CycloneDX."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": public(one),
            "purl": f"pkg:pypi/{name}@{public(one)}",
            "licenses": [{"license": {"name": license_of(one["metadata"])}}],
        }
        for name, one in found.items()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "shoal"}},
        "components": components,
    }


def license_of(metadata: dict) -> str:
    """As its authors say it: an expression, a classifier, or the first line of text."""
    if metadata.get("license_expression"):
        return metadata["license_expression"]
    kinds = [one for one in metadata.get("classifier", []) if "License ::" in one]
    if kinds:
        return kinds[-1].rpartition(":: ")[2]
    return (metadata.get("license") or "not stated").partition("\n")[0][:80]


def public(one: dict) -> str:
    """The version without the name of a local build, such as +cpu."""
    return one["metadata"]["version"].partition("+")[0]


def normal(name: str) -> str:
    """A name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
