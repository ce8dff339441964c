"""One trainer per run folder: an flock on RUN/lock, which the system releases when the process dies, however it dies.

The file says who holds it, for people; what counts is the flock. It stays when the lock is released, empty:
removing it would let two trainers lock two files of one name.

An flock belongs to the open file and not to the process, so a forked child would hold it too and keep it when its
parent dies. The file is closed on exec (Python's default, PEP 446) and, by `_let_go`, after every fork that Python
makes. Only the process that took the lock releases it: unlocking in a child would unlock the parent.
"""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from clearhead.errors import TRY_AGAIN, UserError

from .disk import disk_errors, make_folder

_held: set[int] = set()


@contextlib.contextmanager
def lock(run: Path) -> Iterator[None]:
    """Held inside the with block; an error if another process holds it."""
    path = run / "lock"
    with disk_errors(f"cannot lock {run}", run, None, "all that was there before"):
        make_folder(run)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read(handle)
            os.close(handle)
            raise UserError("LOCKED", f"{run} is locked by {holder}; wait for it or stop it", TRY_AGAIN) from None
        except OSError:
            os.close(handle)
            raise
    _held.add(handle)
    _write(handle)
    try:
        yield
    finally:
        if handle in _held:  # in a forked child it is not
            _held.remove(handle)
            os.ftruncate(handle, 0)
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _write(handle: int) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    with contextlib.suppress(OSError):  # a full disk is reported where it matters; the lock holds without the text
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode() + b"\n", 0)


def _read(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"pid {holder['pid']} on host {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _let_go() -> None:
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
