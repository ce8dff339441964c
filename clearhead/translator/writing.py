"""Where translations go: standard output, or a file that appears complete or not at all.

Until it is complete a file is `out.partial`, and `out.journal` says which work it belongs to and how far it is, so that
a killed run can go on: faults F26-F28 of the fault matrix.
"""

import contextlib
import fcntl
import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from clearhead.checkpoint.disk import sync_folder
from clearhead.errors import BAD_DATA, DISK, TRY_AGAIN, USAGE, UserError
from clearhead.failpoint import failpoint

PARTIAL, JOURNAL = ".partial", ".journal"


@dataclass(frozen=True)
class Work:
    """What is translated with what: a partial output of other work is not gone on with. Hashes, but for the words."""

    input: str
    model: str
    options: dict[str, Any]


@dataclass
class Reached:
    """How far an output is."""

    lines: int = 0
    bytes: int = 0
    warnings: Counter[str] = field(default_factory=Counter)


class Output(Protocol):
    """Lines go in; `reached` counts them."""

    reached: Reached

    def write(self, data: bytes, lines: int, warnings: Mapping[str, int]) -> None: ...
    def finish(self) -> None:
        """All lines are there."""
        ...

    def close(self) -> None:
        """Whether they are there or not."""
        ...


class Stream:
    """Standard output, or a pipe or device that has a name: nothing can be taken back."""

    def __init__(self, output: Path) -> None:
        self.reached = Reached()
        self._name = "standard output" if str(output) == "-" else str(output)
        with write_errors(self._name, 0, ""):
            self._file: BinaryIO = _standard_output() if str(output) == "-" else output.open("wb")

    def write(self, data: bytes, lines: int, warnings: Mapping[str, int]) -> None:
        with write_errors(self._name, self.reached.lines, ""):
            self._file.write(data)
            self._file.flush()
        self.reached.lines += lines
        self.reached.warnings.update(warnings)

    def finish(self) -> None:
        with write_errors(self._name, self.reached.lines, ""):
            self._file.flush()

    def close(self) -> None:
        if self._name != "standard output":
            with write_errors(self._name, self.reached.lines, ""):  # what could not be written is tried once more
                self._file.close()


class PartialFile:
    """A file under another name until it is complete; with `work`, a journal is kept beside it."""

    def __init__(self, output: Path, work: Work | None, resume: bool) -> None:
        self._output, self._work = output, work
        self.partial, self._journal = (output.with_name(output.name + ending) for ending in (PARTIAL, JOURNAL))
        self._packs = output.suffix.lower() == ".gz"
        self.reached = Reached()
        with write_errors(str(output), 0, ""):
            self._file = _open_locked(self.partial)
        try:
            if resume and work is not None:
                self.reached = self._resumed(work)
            with write_errors(str(output), 0, ""):
                self._file.truncate(self.reached.bytes)
                self._file.seek(self.reached.bytes)
                if not self.reached.lines:
                    self._journal.unlink(missing_ok=True)
        except BaseException:
            self._file.close()
            raise

    def write(self, data: bytes, lines: int, warnings: Mapping[str, int]) -> None:
        packed = gzip.compress(data, mtime=0) if self._packs else data
        kept = f" {self.reached.lines:,} lines are kept in {self.partial}, and --resume goes on after them."
        with write_errors(str(self._output), self.reached.lines, kept if self._work else ""):
            self._file.seek(self.reached.bytes)  # an interrupted writing may have left more
            self._file.truncate()
            self._file.write(packed)
            self._file.flush()
            os.fsync(self._file.fileno())
            failpoint("translate.after_write")
            new = Reached(
                self.reached.lines + lines, self.reached.bytes + len(packed), self.reached.warnings + Counter(warnings)
            )
            if self._work is not None:
                reached = {"lines": new.lines, "bytes": new.bytes, "warnings": dict(new.warnings)}
                replace_file(self._journal, json.dumps({"work": asdict(self._work), "reached": reached}).encode())
        self.reached = new
        failpoint("translate.after_journal")

    def finish(self) -> None:
        with write_errors(str(self._output), self.reached.lines, ""):
            if self._packs and not self.reached.bytes:
                self._file.write(gzip.compress(b"", mtime=0))
            self._file.flush()
            os.fsync(self._file.fileno())
            self.partial.rename(self._output)
            sync_folder(self._output.parent)
            failpoint("translate.after_rename")
            self._journal.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()

    def _resumed(self, work: Work) -> Reached:
        """How far the journal says it is; nowhere if there is none, or if it says more than there is."""
        try:
            saved = json.loads(self._journal.read_bytes())
            found, reached = Work(**saved["work"]), Reached(**saved["reached"])
        except FileNotFoundError:
            return Reached()
        except (ValueError, KeyError, TypeError) as error:
            message = f"{self._journal} is no journal of ours ({error}); remove it, and the run begins anew"
            raise UserError("JOURNAL", message, BAD_DATA) from error
        if found != work:
            raise _other_work(self.partial, found, work)
        size = os.fstat(self._file.fileno()).st_size
        reached.warnings = Counter(reached.warnings)
        return reached if reached.bytes <= size else Reached()


def open_output(output: Path, work: Work | None, resume: bool) -> Output:
    """`work` is known if the input is a file, and `resume` can only be asked for then."""
    is_stream = str(output) == "-" or (output.exists() and not output.is_file() and not output.is_dir())
    if resume and (is_stream or work is None):
        message = "--resume goes on with a file that a killed run has left; it needs an input file and -o with a file"
        raise UserError("RESUME", message, USAGE)
    return Stream(output) if is_stream else PartialFile(output, work, resume)


def drop_journal(output: Path) -> None:
    """Of an output that is complete, unless somebody is at work on it again."""
    if not output.with_name(output.name + PARTIAL).exists():
        output.with_name(output.name + JOURNAL).unlink(missing_ok=True)


def require_output(output: Path) -> None:
    """Before the work, not after it."""
    if str(output) == "-":
        return
    if output.is_dir() or not output.parent.is_dir():
        found = f"{output} is a folder" if output.is_dir() else f"there is no folder {output.parent}"
        raise UserError("OUTPUT", f"{found}; expected a file to write in a folder that exists", DISK)
    if output.suffix.lower() == ".zst":
        raise UserError(
            "OUTPUT", f"{output} would be packed with zstd; name a .gz, or a file that is not packed", USAGE
        )


def replace_file(path: Path, content: bytes) -> None:
    """All of the new one, or all of the old one if the power fails."""
    scratch = path.with_name(f"{path.name}.new")
    with scratch.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.rename(path)


@contextlib.contextmanager
def write_errors(name: str, lines: int, kept: str) -> Iterator[None]:
    """Turns the system's errors into ours; a reader that has enough is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f" at line {lines + 1:,}" if lines or kept else ""
        advice = f"{kept} Free space" if kept else " free space"
        message = f"cannot write {name}{where}: {error.strerror or error};{advice} or name another output"
        raise UserError("OUTPUT", message, DISK) from error


def _standard_output() -> BinaryIO:
    if sys.stdout is None:
        raise OSError("it is closed")
    return sys.stdout.buffer


def _open_locked(path: Path) -> BinaryIO:
    """Made if it is not there; nobody else writes to it as long as it is open."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            message = f"another process is writing {path}; wait for it, or name another output"
            raise UserError("LOCKED", message, TRY_AGAIN) from error
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
        file.close()  # its writer has just given it its real name


def _other_work(partial: Path, found: Work, now: Work) -> UserError:
    same = "; give the same again, or leave out --resume to begin anew"
    if found.input != now.input:
        return UserError("OTHER_INPUT", f"{partial} was made from another input{same}", BAD_DATA)
    if found.model != now.model:
        return UserError("OTHER_MODEL", f"{partial} was made with another model{same}", USAGE)
    keys = sorted(key for key in {*found.options, *now.options} if found.options.get(key) != now.options.get(key))
    changes = ", ".join(f"{key} was {found.options.get(key)}, now {now.options.get(key)}" for key in keys)
    return UserError("OTHER_OPTIONS", f"{partial} was made with other options: {changes}{same}", USAGE)
