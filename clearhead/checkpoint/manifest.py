"""MANIFEST.json: the size and SHA-256 of every file of a folder, and reading what it vouches for."""

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from clearhead.errors import DAMAGED, DISK, UserError

FORMAT = 1  # of MANIFEST.json, state.json and config.json
MANIFEST = "MANIFEST.json"
JSON_LIMIT = 1 << 26  # bytes; the largest JSON file that we read


ENTRY = {"sha256": str, "size": int}
UNREADABLE = {
    errno.ENOENT: "it is missing",
    errno.ENOTDIR: "it is missing",
    errno.EISDIR: "it is no regular file",
    errno.ELOOP: "it is a symbolic link, and links are not followed",
    errno.EIO: "the disk cannot read it",
}


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a file."""

    sha256: str
    size: int


def verify(folder: Path, required: Iterable[str] = ()) -> dict[str, Entry]:
    """The manifest, after every file in it was found to have its size and hash; files not in it don't count."""
    entries = read_manifest(folder)
    for name in required:
        if name not in entries:
            raise damaged(folder, f"{MANIFEST} does not list {name}")
    for name, entry in entries.items():
        with open_regular(folder / name) as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.size:
                raise damaged(folder / name, f"its size is {size} bytes, expected {entry.size}")
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != entry.sha256:
            raise damaged(folder / name, f"its SHA-256 is {found}, expected {entry.sha256}")
    return entries


def read_manifest(folder: Path) -> dict[str, Entry]:
    """What MANIFEST.json lists, file by file; the files themselves are not looked at."""
    path = folder / MANIFEST
    with open_regular(path) as file:
        manifest = parse_json(path, file.read(JSON_LIMIT + 1))
    require_format(path, manifest)
    files = manifest.get("files")
    if set(manifest) != {"format", "files"} or not isinstance(files, dict):
        raise damaged(path, f"it has the keys {', '.join(sorted(manifest))}; expected format and files")
    entries = {}
    for name, entry in files.items():
        if not is_plain_name(name):
            raise damaged(path, f"it lists {name!r}, which is no plain file name")
        if not isinstance(entry, dict) or {key: type(value) for key, value in entry.items()} != ENTRY:
            raise damaged(path, f"its entry for {name} is no SHA-256 and size")
        entries[name] = Entry(entry["sha256"], entry["size"])
    return entries


def read_file(folder: Path, name: str) -> bytes:
    """The bytes of one file of the manifest: what is returned is what was hashed."""
    entry = read_manifest(folder).get(name)
    if entry is None:
        raise damaged(folder, f"{MANIFEST} does not list {name}")
    with open_regular(folder / name) as file:
        content = file.read(entry.size + 1)
    if len(content) != entry.size:
        raise damaged(folder / name, f"its size is not the expected {entry.size} bytes")
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise damaged(folder / name, f"its SHA-256 is {found}, expected {entry.sha256}")
    return content


def damaged(path: Path, found: str) -> UserError:
    """For the caller to raise; says what is wrong with a file or folder that we wrote."""
    return UserError("DAMAGED", f"{path} is damaged: {found}; copy it anew or use another one", DAMAGED)


def require_format(path: Path, values: Mapping[str, Any]) -> None:
    """Only the format that we write; a newer one is an error of its own, since nothing is damaged then."""
    found = values.get("format")
    if type(found) is not int or found < 1:
        raise damaged(path, f"its format is {found!r}, expected {FORMAT}")
    if found > FORMAT:
        message = f"{path} has format {found}, but this Clearhead knows formats up to {FORMAT}; use a newer Clearhead"
        raise UserError("FORMAT", message, DAMAGED)


def parse_json(path: Path, content: bytes) -> dict[str, Any]:
    """One JSON object, of finite numbers."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")

    if len(content) > JSON_LIMIT:
        raise damaged(path, f"it is larger than {JSON_LIMIT} bytes")
    try:
        values = json.loads(content.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is no JSON ({error})") from error
    if not isinstance(values, dict):
        raise damaged(path, "it is no JSON object")
    return values


def json_bytes(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def is_plain_name(name: str) -> bool:
    """A visible file directly in the folder, the manifest itself excepted."""
    return name not in ("", MANIFEST) and not name.startswith(".") and not set(name) & set("/\\\0")


def manifest_bytes(entries: Mapping[str, Entry]) -> bytes:
    return json_bytes({"format": FORMAT, "files": {name: asdict(entry) for name, entry in entries.items()}})


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Links are not followed, and pipes and devices not waited for."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise damaged(path, "it is no regular file")
            yield file
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise UserError("DISK", f"cannot read {path}: {error.strerror}; check its permissions", DISK) from error
        raise damaged(path, UNREADABLE[error.errno]) from error
