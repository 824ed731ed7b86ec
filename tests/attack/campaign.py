"""Thousands of forged models, each loaded in a process with little memory and a clock.

python -m tests.attack.campaign --worker KIND SEED FIRST LAST FOLDER

loads those numbered FIRST to LAST and prints what came of them as JSON, line by line:
the line of a number is written before its model is loaded, so that whoever started the
process knows which one ended it.
"""

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack.forging import LARGE, PLAIN, WITH_PARTS, Saved, fit, forge

import shoal
from shoal.exceptions import ModelFileError
from shoal.io._notation import UNSEEN

GIB = 2**30
# What the issue allows a load: beside what the process has before the first.
MOST_BYTES = 2 * GIB
MOST_SECONDS = 60
# Starting something, or reading what can: nothing of it has a place in a load.
FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
             "subprocess.Popen", "pickle.find_class", "socket.connect")  # fmt: skip


def shares(n_models: int) -> dict[str, int]:
    """How many models of each kind."""
    weights = {"images": 1} | dict.fromkeys(LARGE[:2], 4)  # the longest first
    weights |= dict.fromkeys(WITH_PARTS, 24) | dict.fromkeys(PLAIN, 120)
    total = sum(weights.values())
    counts = {kind: n_models * one // total for kind, one in weights.items()}
    counts[PLAIN[0]] += n_models - sum(counts.values())
    return counts


# ---- inside the process --------------------------------------------------------------


def watch() -> list[str]:
    """Names of forbidden events from now on, as they happen."""
    seen: list[str] = []

    def hook(event: str, _: Any) -> None:
        if event in FORBIDDEN:
            seen.append(event)

    sys.addaudithook(hook)
    return seen


def bound_memory() -> None:
    """Let the process have as much more address space as a load may take."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def outcome(saved: Saved, number: int, seed: int, events: list[str]) -> tuple[str, str]:
    """The forger, and what came of its model; "bad: ..." if that may not be."""
    forger, files = forge(saved, np.random.default_rng([seed, number]))
    folder = saved.write(files)
    n_threads = threading.active_count()
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # of work; then we are ended
    try:
        found = shoal.load(folder)
    except ModelFileError as error:
        result = "refused"
        if UNSEEN.search(str(error)) or error.code != "E135":
            result = f"bad: not one line: {str(error)!r}"
        elif isinstance(error.__cause__, MemoryError):
            result = f"bad: took all memory: {error}"
    except BaseException as error:
        result = f"bad: {type(error).__name__}: {error}"
    else:
        result = asked(found, saved.rows)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if events:
        result = f"bad: started {events}"
        events.clear()
    elif threading.active_count() > n_threads + 2:
        result = f"bad: {threading.active_count()} threads"
    return forger, result


def asked(model: Any, rows: Any) -> str:
    """What a forged model says of rows: probabilities, or that these do not suit it."""
    try:
        proba = model.predict_proba(rows)
    except MemoryError:
        return "bad: an answer took all memory"
    except Exception as error:
        return f"loaded, {type(error).__name__}"
    right = proba.shape == (len(rows), model.n_classes_)
    return "loaded, answers" if right else "bad: an answer of another shape"


def work(kind: str, seed: int, first: int, last: int, folder: str) -> None:
    """Load models one after the other, and say of each what came of it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    saved = Saved(fit(kind), Path(folder), kind)
    shoal.load(saved.origin).predict_proba(saved.rows)  # all that is needed is imported
    events = watch()
    bound_memory()
    for number in range(first, last):
        print(json.dumps({"begins": number}), flush=True)
        forger, result = outcome(saved, number, seed, events)
        print(json.dumps({"forger": forger, "result": result}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak": peak}))


# ---- around it -----------------------------------------------------------------------


def attack(kind: str, first: int, last: int, seed: int) -> dict[str, Any]:
    """Counts of what came of forged models of a kind, and all that was bad."""
    counts: Counter[tuple[str, str]] = Counter()
    bad: list[str] = []
    peak = 0
    while first < last:
        with tempfile.TemporaryDirectory(dir=_fast()) as folder:
            command = [sys.executable, "-m", "tests.attack.campaign", "--worker", kind]
            command += [str(seed), str(first), str(last), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        begun = first
        for line in done.stdout.splitlines():
            told = json.loads(line)
            begun = told.get("begins", begun)
            peak = max(peak, told.get("peak", 0))
            if "result" in told:
                result = told["result"].partition(":")[0]
                counts[told["forger"], result] += 1
                if result == "bad":
                    bad.append(f"{kind} {begun}: {told['forger']}: {told['result']}")
        if done.returncode == 0:
            break
        if not done.stdout:
            raise RuntimeError(done.stderr)
        hung = done.returncode == -signal.SIGPROF
        end = "hung" if hung else f"ended ({done.returncode})"
        bad.append(f"{kind} {begun}: {end}: {done.stderr[-300:]}")
        counts["?", "bad"] += 1
        first = begun + 1
    return {"counts": counts, "bad": bad, "peak": peak}


def _fast() -> str | None:
    """A folder in memory where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", nargs=5, required=True)
    kind, *numbers, folder = parser.parse_args().worker
    work(kind, *map(int, numbers), folder)
