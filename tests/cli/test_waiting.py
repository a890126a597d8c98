"""Progress of long work: how far, how fast, how long still; lines where there is no terminal."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from coinhaze.cli import waiting
from coinhaze.cli.waiting import RECENT, Pace
from coinhaze.errors import InputError, ResourceError

Note = Callable[[int, int], None]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class TestPace:
    def test_nothing_is_promised_before_a_few_are_done(self) -> None:
        clock = Clock()
        pace = Pace(clock=clock)
        assert pace.rate() is None
        clock.now += 1
        pace.note(2, 1000)
        assert (pace.rate(), pace.seconds_left()) == (None, None)
        assert pace.words("blocks") == "2 of 1,000 blocks (0%)"
        clock.now += 1
        pace.note(4, 1000)
        assert (pace.rate(), pace.seconds_left()) == (2.0, 498.0)
        assert pace.words("blocks") == "4 of 1,000 blocks (0%), 2 blocks/s, 8 min left"

    def test_the_rate_is_that_of_the_recent_past(self) -> None:
        clock = Clock()
        pace = Pace(clock=clock)
        done = 0
        for speed, seconds in ((1000, 60), (10, int(RECENT) + 2)):
            for _ in range(seconds):
                clock.now += 1
                done += speed
                pace.note(done, 100_000)
        assert pace.rate() == pytest.approx(10)
        assert pace.seconds_left() == pytest.approx((100_000 - done) / 10)

    def test_notes_far_apart_give_a_rate_too(self) -> None:
        clock = Clock()
        pace = Pace(clock=clock)
        for done in (50, 100, 150):
            clock.now += 4 * RECENT
            pace.note(done, 300)
        assert pace.rate() == pytest.approx(50 / (4 * RECENT))

    def test_silence_slows_it_down(self) -> None:
        clock = Clock()
        pace = Pace(clock=clock)
        clock.now += 10
        pace.note(100, 1000)
        assert pace.rate() == pytest.approx(10)
        clock.now += 990
        assert pace.rate() == pytest.approx(0.1)

    def test_memory_does_not_grow_with_the_work(self) -> None:
        clock = Clock()
        pace = Pace(clock=clock)
        for done in range(20_000):
            clock.now += 1
            pace.note(done, 20_000)
        assert len(pace._notes) < 2 * RECENT


def steps(count: int, moment: float) -> Callable[[Note], str]:
    """Work that notes so many steps, with a pause after each."""
    pause = threading.Event()

    def work(note: Note) -> str:
        for done in range(count):
            note(done + 1, 40)
            pause.wait(moment)
        return "done"

    return work


def test_lines_tell_of_it_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "BETWEEN_LINES", 0.25)
    assert waiting.wait_counting("reading blocks", "blocks", steps(20, 0.05)) == "done"
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert lines
    form = r"reading blocks: \d+ of 40 blocks \(\d+%\)(, [\d.]+ blocks/s, \d+ s left)?"
    assert all(re.fullmatch(form, line) for line in lines)
    assert "blocks/s" in lines[-1]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert waiting.wait_counting("reading blocks", "blocks", steps(5, 0.0)) == "done"
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    waiting.wait_counting("reading blocks", "blocks", steps(20, 0.05))
    assert re.search(r"reading blocks.*of 40 blocks.*blocks/s.*left", screen.getvalue())


def test_a_terminal_shows_the_workers_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Three:
        def in_words(self) -> str:
            return "3 workers"

    def work(note: Callable[[float], None]) -> None:
        for k in range(20):
            note(k / 20)
            time.sleep(0.05)

    screen, three = Terminal(), Three()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    cluster: Any = three
    waiting.wait_for("scoring", work, by=cluster)
    assert re.search(r"scoring, 3 workers.*%.*left", screen.getvalue())


def test_what_goes_wrong_in_the_work_comes_out_of_the_waiting() -> None:
    def work(note: Note) -> None:
        raise InputError("the line went dead")

    with pytest.raises(InputError, match="went dead"):
        waiting.wait_counting("reading blocks", "blocks", work)


def test_a_thread_that_cannot_be_had_is_a_limit_met(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(ResourceError, match="can't start new thread: out of memory"):
        waiting.wait_for("scoring", lambda note: 1)
