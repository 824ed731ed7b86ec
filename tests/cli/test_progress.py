"""Stages: announced before they begin, with the time gone and left."""

import io
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal._work import counted
from shoal.cli._options import Speech
from shoal.cli._output import Output
from shoal.cli._stages import PlainLines, Stages, clock

PLAN = {"read": "reading", "fit": "fitting"}


class Clock:
    """A clock that tests set."""

    time = 0.0

    def __call__(self) -> float:
        return self.time


def test_time_left_is_that_of_the_counted_work():
    now = Clock()
    stages = Stages(PLAN, lambda stages: None, now)
    stages.begin("read")
    assert stages.left is None
    assert stages.done == 0
    now.time = 50.0
    stages.begin("fit")
    assert stages.done == 0.5
    assert stages.left is None  # how long reading took says nothing of fitting
    now.time = 90.0
    assert stages.left is None
    stages.advance(0.25)
    assert stages.left is None  # one piece of work tells no pace
    now.time = 130.0
    stages.advance(0.5)
    assert_allclose(stages.done, 0.75)
    assert_allclose(stages.left, 80.0)  # half of the stage took 80 seconds
    now.time = 140.0
    assert_allclose(stages.left, 70.0)  # a guess does not stand still
    stages.advance(7)
    assert stages.done == 1
    assert stages.left == 0


#: Seconds that each of 100 pieces of work takes.
COSTS = {
    "even": lambda step: 1.0,
    "quick": lambda step: 0.08,
    "uneven": lambda step: 1.0 + 0.4 * (-1) ** step,
    "ever slower": lambda step: 0.01 * step**2,
    "ever faster": lambda step: 100 / (1 + step),
    "a long first piece": lambda step: 60.0 if step == 0 else 0.5,
    "slower by and by": lambda step: 1.0 + step / 50,
}


@pytest.mark.parametrize("name", COSTS)
def test_time_left_holds_within_a_factor_of_two_or_is_not_shown(name: str):
    """Of work that changes its pace it is not."""
    now = Clock()
    stages = Stages(PLAN, lambda stages: None, now)
    stages.begin("fit")
    costs = np.array([COSTS[name](step) for step in range(100)])
    end, shown = costs.sum(), 0
    for step, cost in enumerate(costs):
        for _ in range(10):  # looked at in the midst of a piece as well
            now.time += cost / 10
            if stages.left is not None and end - now.time > 2 * cost:
                shown += 1
                assert 0.5 < stages.left / (end - now.time) < 2
        stages.advance((step + 1) / 100)
    unsteady = ("ever slower", "ever faster", "a long first piece")
    assert (shown > 0) == (name not in unsteady)


def test_a_silence_ends_the_guess():
    """Seconds left of work that stands still are no seconds left."""
    now = Clock()
    stages = Stages(PLAN, lambda stages: None, now)
    stages.begin("fit")
    for step in range(1, 51):
        now.time += 1.0
        stages.advance(step / 100)
    assert_allclose(stages.left, 50.0)
    now.time += 1.9
    assert stages.left is not None
    now.time += 200.0
    assert stages.left is None


def test_each_pass_over_the_data_has_its_own_time(capsys):
    now = Clock()
    stages = Stages(PLAN, PlainLines(), now)
    stages.begin("fit")
    for number, seconds in ((1, 1.0), (2, 4.0)):
        for step in range(1, 21):
            now.time += seconds
            stages.advance(step / 20, f"pass {number}")
            if step == 10:
                assert_allclose(stages.left, 10 * seconds)
    assert "left of pass 2)" in capsys.readouterr().err
    stages.advance(0.5, "pass 3")  # half was there already, from an earlier run
    for step in range(11, 16):
        now.time += 2.0
        stages.advance(step / 20, "pass 3")
    assert_allclose(stages.left, 10.0)


@pytest.mark.parametrize(("seconds", "share"), [(2.0, 0.5), (100.0, 0.01)])
def test_no_guess_at_the_time_left_from_little_work(seconds: float, share: float):
    now = Clock()
    stages = Stages(PLAN, lambda stages: None, now)
    stages.begin("read")
    now.time = seconds
    stages.advance(share)
    assert stages.left is None


def test_counted_work_moves_its_stage_on(capsys):
    """And the time left that follows is right, once there is one."""
    now, told = Clock(), []
    with Output("toy").stages(PLAN) as stages:
        stages.now, stages.begun = now, 0.0
        stages.begin("read")
        for _ in counted(range(50), 50):
            now.time += 1.0
            if stages.left is not None and now.time < 50:
                told.append(stages.left / (51.0 - now.time))
        assert stages.share == 1
    assert len(told) > 40
    assert 0.5 < min(told)
    assert max(told) < 2
    assert list(counted("ab", 2)) == ["a", "b"]  # nobody listens any more
    assert stages.share == 1
    assert "[1/2] reading" in capsys.readouterr().err


def test_an_unknown_stage_is_a_mistake():
    with pytest.raises(KeyError, match="no stage 'write'"):
        Stages(PLAN, lambda stages: None).begin("write")


def test_plain_lines(capsys):
    now = Clock()
    stages = Stages(PLAN, PlainLines(), now)
    stages.begin("read")
    now.time = 75.0
    stages.begin("fit")
    now.time = 83.0
    stages.advance(0.25)  # too soon for another line
    now.time = 91.0
    stages.advance(0.5)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] reading",
        "[2/2] fitting (1:15 gone)",
        "[2/2] fitting, 50% of it done (1:31 gone, about 0:16 left of this step)",
    ]


def test_verbose_lines_tell_the_memory(capsys):
    with Output("toy", Speech(verbose=True)).stages(PLAN) as stages:
        stages.begin("read")
    assert re.fullmatch(r"\[1/2\] reading \[[\d,]+ MB\]\n", capsys.readouterr().err)


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Output("toy").stages(PLAN) as stages:
        stages.begin("read")
        stages.begin("fit")
        stages.advance(0.5)
    seen = terminal.getvalue()
    assert "\x1b[" in seen
    assert "reading" in seen
    assert "1/2" in seen
    assert "[1/2]" not in seen


def test_quiet_says_nothing(capsys):
    with Output("toy", Speech(quiet=True)).stages(PLAN) as stages:
        stages.begin("fit")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01")],
)
def test_clock(seconds: float, text: str):
    assert clock(seconds) == text
