"""What long work shows on stderr: on a terminal a bar with rate and time left, in a pipe plain lines."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    def update(self, done: int, total: int | None, text: str) -> None:
        """How far the work is, and a few words on it."""
        ...


class _Lines:
    """At most one line every few seconds; the first one after two, so that short work stays silent."""

    def __init__(self, title: str, every: float = 10.0) -> None:
        self._title, self._every = title, every
        self._started = time.monotonic()
        self._silent_until = self._next = self._started + 2.0
        self._done = 0

    def update(self, done: int, total: int | None, text: str) -> None:
        now = time.monotonic()
        if done < self._done:  # another part of the work begins, which may be long: say so, and count anew
            self._started, self._next = now, max(now, self._silent_until)
        self._done = done
        if now < self._next:
            return
        self._next = now + self._every
        of = f" of {total:,}" if total else ""
        print(f"{self._title}: {done:,}{of} {text}{self._speed(done, total, now)}", file=sys.stderr, flush=True)

    def _speed(self, done: int, total: int | None, now: float) -> str:
        """Nothing in the first second, when nothing can be said."""
        if now < self._started + 1.0 or not done:
            return ""
        rate = done / (now - self._started)
        left = f", {_clock((total - done) / rate)} left" if total else ""
        return f", {rate:,.0f}/s{left}"


@contextmanager
def progress(title: str) -> Iterator[Bar]:
    """A bar for as long as the block runs."""
    if not sys.stderr.isatty():
        yield _Lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=None, rate="")

        class _Bar:
            def update(self, done: int, total: int | None, text: str) -> None:
                speed = bars.tasks[0].speed
                rate = f"{speed:,.0f}/s" if speed else ""
                bars.update(task, completed=done, total=total, description=f"{title} {text}".strip(), rate=rate)

        yield _Bar()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float) -> str:
    """For people: 45 s, 12 min, 3.4 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
