"""SIGINT and SIGTERM while a file is written: what is finished is written first, and then the work ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clearhead.errors import INTERRUPTED, TERMINATED

CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Signals:
    """Which signal has come. It raises KeyboardInterrupt: at once, or at the end of what must not be torn in two."""

    def __init__(self) -> None:
        self.exit_code = INTERRUPTED  # of the first signal, once there is one
        self._has_come = self._is_held = False

    def receive(self, number: int, _: object) -> None:
        if not self._has_come:
            self.exit_code = CODES[signal.Signals(number)]
        self._has_come = True
        if not self._is_held:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """A signal that comes meanwhile is heard afterwards; one that was heard already is not heard again."""
        came_before, self._is_held = self._has_come, True
        try:
            yield
        finally:
            self._is_held = False
        if self._has_come and not came_before:
            raise KeyboardInterrupt


@contextmanager
def listening() -> Iterator[Signals]:
    """For as long as the block runs. Signals that are ignored, or that somebody else has taken, stay theirs."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():  # where Python takes no signals
        yield signals
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in CODES}
    ours = {number: handler for number, handler in before.items() if handler in usual}
    for number in ours:
        signal.signal(number, signals.receive)
    try:
        yield signals
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
