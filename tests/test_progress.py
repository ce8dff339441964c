"""What long work shows: nothing at first, then a line now and then in a pipe, a bar on a terminal."""

import io
from types import SimpleNamespace

import pytest

from clearhead.progress import duration, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A time that the test sets itself."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("clearhead.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_short_work_is_silent(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as bar:
        clock.now += 1.9
        bar.update(5, 10, "lines")
    assert capsys.readouterr() == ("", "")


def test_a_line_every_ten_seconds(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as bar:
        for second in range(1, 26):
            clock.now = 100.0 + second
            bar.update(second * 1000, 100_000, "lines")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "reading: 2,000 of 100,000 lines, 1,000/s, 1:38 left",
        "reading: 12,000 of 100,000 lines, 1,000/s, 1:28 left",
        "reading: 22,000 of 100,000 lines, 1,000/s, 1:18 left",
    ]


def test_the_next_part_of_the_work_is_told_and_counts_anew(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("preparing") as bar:
        bar.update(2, None, "pairs, looking")
        bar.update(1, None, "pairs, finding")
        clock.now += 100
        bar.update(100_000, None, "pairs, reading")
        clock.now += 1
        bar.update(20_000, None, "pairs, tokenizing")
        clock.now += 9
        bar.update(40_000, None, "pairs, tokenizing")
        clock.now += 1
        bar.update(60_000, None, "pairs, tokenizing")
    assert capsys.readouterr().err.splitlines() == [
        "preparing: 100,000 pairs, reading, 1,000/s",
        "preparing: 20,000 pairs, tokenizing",
        "preparing: 60,000 pairs, tokenizing, 6,000/s",
    ]


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("reading") as bar:
        bar.update(3, 7, "lines")
    assert "reading lines" in terminal.getvalue()
    assert "3/7" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (89, "89 s"), (720, "12 min"), (12240, "3.4 h")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
