"""The disk: files that are on it when a call returns, room checked beforehand, errors that say what was kept."""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from clearhead.errors import DISK, UserError

TEMPORARY = ".tmp-clearhead-"  # what a killed writer may leave begins with this

Content = bytes | Sequence[bytes | memoryview]


@contextlib.contextmanager
def disk_errors(what: str, folder: Path, needed: int | None, kept: str) -> Iterator[None]:
    """Turns the system's errors into ours: what could not be done, how much room there is, what was kept."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        room = ""
        with contextlib.suppress(OSError):
            if needed is not None:
                room = f" (need {_mib(needed)}, free {_mib(shutil.disk_usage(folder).free)})"
        cause = f"{error.strerror or error}{room}"
        next_step = "free some space" if full else "check that the folder can be written"
        message = f"{what}: {cause}. Kept: {kept}. Next: {next_step}, then give the same command again"
        raise UserError("DISK_FULL" if full else "DISK", message, DISK) from error


def require_space(folder: Path, needed: int) -> None:
    """An error before the work begins if `folder` cannot be made or written, or has no room for `needed` bytes."""
    with disk_errors(f"cannot write to {folder}", folder, needed, "all that was there before"):
        make_folder(folder)
        probe = folder / f"{TEMPORARY}probe-{secrets.token_hex(4)}"
        try:
            write_file(probe, b"?")
        finally:
            probe.unlink(missing_ok=True)
        if shutil.disk_usage(folder).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_file(path: Path, content: Content) -> str:
    """A new file, on the disk when this returns; the SHA-256 of what was to be written."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for part in _parts(content):
            digest.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def make_folder(folder: Path) -> None:
    """With its parents, each on the disk when this returns."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mib(size: int) -> str:
    return f"{size / 2**20:.{0 if size >= 10 * 2**20 else 1}f} MiB"


def _parts(content: Content) -> Sequence[bytes | memoryview]:
    return [content] if isinstance(content, bytes) else content


def content_size(content: Content) -> int:
    """In bytes."""
    return sum(memoryview(part).nbytes for part in _parts(content))
