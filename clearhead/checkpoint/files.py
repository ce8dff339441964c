"""Folders that appear complete or not at all, and that prove it: each file's SHA-256 stands in MANIFEST.json.

Writing: a new folder `.tmp-clearhead-…` beside the final one, every file and then the manifest written and
fsynced, the folder fsynced, one rename, the parent fsynced. The writer holds an flock on its temporary folder,
so that `clean` can tell a dead writer's leftovers from a living writer's work, whatever their process ids.

Replacing NAME: NAME is renamed `.old-clearhead-NAME`, the new folder is renamed NAME, the parent is fsynced, the
old one is removed. A crash between the two renames leaves no NAME but a complete `.old-clearhead-NAME`; readers
use that one (`present`), and the next writer renames it back (`clean`). If NAME exists, it is complete.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from clearhead.errors import DISK, UserError
from clearhead.failpoint import failpoint

from .disk import TEMPORARY, Content, content_size, disk_errors, make_folder, sync_folder, write_file
from .manifest import MANIFEST, Entry, is_plain_name, manifest_bytes, read_manifest

OLD = ".old-clearhead-"


def write_folder(
    final: Path, files: Mapping[str, Content], kept: str = "all that was there before", point: str = "folder"
) -> None:
    """Make `final` a folder of these files and their manifest, in place of what we wrote there before.

    On any failure the temporary folder is removed and `final` is as it was; `kept` is what the error says of that.
    """
    for name in files:
        if not is_plain_name(name):
            raise ValueError(f"{name!r} cannot be the name of a file in {final}")
    needed = sum(content_size(content) for content in files.values())
    with disk_errors(f"cannot write {final}", final.parent, needed, kept):
        make_folder(final.parent)
        _require_ours(final)
        clean(final.parent)
        with _temporary_folder(final) as temporary:
            _fill(temporary, files, point)
            failpoint(f"{point}.before_rename")
            _replace(final, temporary, point)


def drop_file(folder: Path, name: str) -> None:
    """Remove a file from a written folder. The manifest is replaced first, so the folder verifies at every moment."""
    with disk_errors(f"cannot remove {name} from {folder}", folder, None, "all files"):
        entries = read_manifest(folder)
        if entries.pop(name, None) is not None:
            temporary = folder / f"{TEMPORARY}{MANIFEST}"
            temporary.unlink(missing_ok=True)
            write_file(temporary, manifest_bytes(entries))
            temporary.rename(folder / MANIFEST)
            sync_folder(folder)
        (folder / name).unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Renamed first, so that a crash leaves no folder that looks like a damaged one."""
    with disk_errors(f"cannot remove {folder}", folder.parent, None, "what is left of it"):
        going = folder.parent / f"{TEMPORARY}{folder.name}-{secrets.token_hex(4)}"
        folder.rename(going)
        shutil.rmtree(going)


def clean(folder: Path) -> None:
    """Remove what dead writers left in `folder`; a folder that was being replaced gets its name back."""
    if not folder.is_dir():
        return
    with disk_errors(f"cannot clean {folder}", folder, None, "all that was there before"):
        for path in sorted(folder.iterdir()):
            if path.name.startswith(TEMPORARY):
                _remove_if_dead(path)
            elif path.name.startswith(OLD):
                replaced = folder / path.name.removeprefix(OLD)
                if replaced.exists():
                    shutil.rmtree(path)
                else:
                    path.rename(replaced)
                    sync_folder(folder)


def present(final: Path) -> Path:
    """`final`, or the complete one before it if a crash came while it was being replaced. Changes nothing."""
    old = final.parent / f"{OLD}{final.name}"
    return old if not final.exists() and old.exists() else final


def _fill(folder: Path, files: Mapping[str, Content], point: str) -> None:
    entries = {}
    for name, content in files.items():
        entries[name] = Entry(write_file(folder / name, content), content_size(content))
        failpoint(f"{point}.after_{name.partition('.')[0]}")
    write_file(folder / MANIFEST, manifest_bytes(entries))
    sync_folder(folder)


def _replace(final: Path, temporary: Path, point: str) -> None:
    old = final.parent / f"{OLD}{final.name}"
    if final.exists():
        final.rename(old)
        failpoint(f"{point}.between_renames")
    try:
        temporary.rename(final)
    except OSError:
        if old.exists():
            old.rename(final)
        raise
    sync_folder(final.parent)
    failpoint(f"{point}.after_rename")
    if old.exists():
        shutil.rmtree(old)


def _require_ours(final: Path) -> None:
    if final.is_symlink() or (final.exists() and not final.is_dir()):
        raise UserError("EXISTS", f"{final} exists and is no folder; remove it or give another name", DISK)
    if final.exists() and any(final.iterdir()) and not (final / MANIFEST).exists():
        message = f"{final} holds other files and no {MANIFEST}; it is not replaced: give another name"
        raise UserError("EXISTS", message, DISK)


@contextlib.contextmanager
def _temporary_folder(final: Path) -> Iterator[Path]:
    """Removed at the end unless it was renamed."""
    while True:
        temporary = final.parent / f"{TEMPORARY}{final.name}-{secrets.token_hex(4)}"
        temporary.mkdir()
        handle = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # where folders cannot be locked, the lock of the run must do
            fcntl.flock(handle, fcntl.LOCK_EX)
        if temporary.exists():
            break
        os.close(handle)  # a cleaner was faster than our flock
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def _remove_if_dead(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return  # its writer was faster
    try:
        if _is_held(handle):
            return
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # as in _temporary_folder
    return False
