"""A manifest, lines of path, tab, text -> pairs whose source is a file; paths are relative to the manifest.

A first line `path<TAB>text` is a heading. What is wrong in a line is an error that names it: whoever lists files knows
them. Paths stay inside the manifest's folder, so that a corpus that was downloaded reads nothing else.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from clearhead.errors import BAD_DATA, DISK, USAGE, UserError

from .corpus import Pair, Report, clean_lines, fingerprint

HEADING = ("path", "text")


def read_manifest(files: Sequence[Path], report: Report) -> Iterator[Pair]:
    """Each line's path, as it is written there, and its text."""
    for _, found in read_what_is_right(files, report):
        if isinstance(found, UserError):
            raise found
        report.read += 1
        yield found


def read_what_is_right(files: Sequence[Path], report: Report) -> "Iterator[tuple[int, Pair | UserError]]":
    """Each line's number, and its pair or what is wrong with it."""
    manifest = only_one(files)
    for line, text in enumerate(clean_lines(manifest, report), 1):
        columns = () if text is None else tuple(text.split("\t"))
        if (line == 1 and columns == HEADING) or (text is not None and not text.strip()):
            continue
        try:
            if text is None:
                raise _wrong(manifest, line, "is no UTF-8", "expected path, tab, text; convert the file with iconv")
            yield line, _pair(manifest, line, columns)
        except UserError as error:
            yield line, error


def only_one(files: Sequence[Path]) -> Path:
    if len(files) != 1:
        names = ", ".join(map(str, files)) or "none"
        message = f"found files: {names}; expected one manifest, a text file with lines of path, tab, text"
        raise UserError("FILES", message, USAGE)
    return files[0]


def file_of(manifest: Path, source: str) -> Path:
    return manifest.parent / source


def manifest_fingerprint(files: Sequence[Path]) -> str:
    """SHA-256 (hex) of the manifest and of every file that it names."""
    manifest = only_one(files)
    digest = hashlib.sha256(fingerprint(files).encode())
    for pair in read_manifest(files, Report()):
        path = file_of(manifest, pair.source)
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except FileNotFoundError:
            continue  # said with its line when it is to be read
        except OSError as error:
            message = f"cannot read {path} (line {pair.line} of {manifest}): {error.strerror}; check its permissions"
            raise UserError("UNREADABLE", message, DISK) from error
    return digest.hexdigest()


def _pair(manifest: Path, line: int, columns: tuple[str, ...]) -> Pair:
    if len(columns) != 2:
        raise _wrong(manifest, line, f"has {len(columns)} columns", "expected two: path, tab, text; correct it")
    source, target = (column.strip() for column in columns)
    if not source or not target:
        missing = "path" if not source else "text"
        raise _wrong(manifest, line, f"has no {missing}", "expected path, tab, text; complete the line or remove it")
    if PurePosixPath(source).is_absolute() or ".." in PurePosixPath(source).parts:
        inside = f"expected a path inside {manifest.parent}; put the manifest into a folder above its files"
        raise _wrong(manifest, line, f"names {source}", inside)
    return Pair(line, source, target)


def _wrong(manifest: Path, line: int, found: str, expected: str) -> UserError:
    return UserError("MANIFEST", f"line {line} of {manifest} {found}; {expected}", BAD_DATA)
