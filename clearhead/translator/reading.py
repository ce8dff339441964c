"""Files of any kind to lines, in constant memory: plain, .gz or .zst, standard input, a terminal, a pipe.

Only `\\n` ends a line and the CR before it goes; what is no UTF-8 becomes U+FFFD, and is counted.
"""

import hashlib
import io
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from clearhead.data.corpus import BLOCK, blocks_of_file, require_text
from clearhead.errors import MISSING, USAGE, UserError

LINES = 4096  # in a chunk, at most
SIZE = 1 << 22  # bytes in a chunk, if its lines are long
MARK = b"\xef\xbb\xbf"  # the byte order mark, which may come first
NOW = b""  # among blocks and lines: no more at the moment, so what is there should not wait
PROMPT = "> "


@dataclass(frozen=True)
class Chunk:
    """Lines as text; `replaced` are the places of those that had bytes which are no UTF-8."""

    lines: list[str]
    replaced: set[int]
    ends_with_newline: bool  # False can only be the last line of all


@dataclass(frozen=True)
class Survey:
    """What a file holds, unpacked."""

    lines: int
    sha256: str


def require_input(source: Path) -> None:
    if str(source) == "-":
        return
    if not source.exists():
        raise UserError("NO_INPUT", f"there is no file {source}; expected a text file to translate, or -", MISSING)
    if source.is_dir():
        raise UserError("DIRECTORY", f"{source} is a folder; expected a text file to translate, or -", USAGE)


def survey(blocks: Iterable[bytes]) -> Survey:
    digest, lines, last = hashlib.sha256(), 0, b"\n"
    for block in blocks:
        digest.update(block)
        lines, last = lines + block.count(b"\n"), block[-1:]
    return Survey(lines + (last != b"\n"), digest.hexdigest())


def blocks_of(source: Path) -> Iterator[bytes]:
    """`-` is standard input."""
    return input_blocks(sys.stdin.buffer) if str(source) == "-" else file_blocks(source)


def file_blocks(path: Path) -> Iterator[bytes]:
    """Unpacked, and without the byte order mark."""
    return _without_mark(_checked(path))


def unpacked(path: Path) -> Iterator[bytes]:
    """As it is, for what we wrote ourselves."""
    return blocks_of_file(path)


def _checked(path: Path) -> Iterator[bytes]:
    is_first = True
    for block in blocks_of_file(path):
        if is_first and 0 in block:  # as in everything that is packed or UTF-16, but in no text
            require_text(path, block)
        is_first = False
        yield block


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(MARK) or not MARK.startswith(start):
            break
    if start.removeprefix(MARK):
        yield start.removeprefix(MARK)
    yield from blocks


def input_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """What comes, as it comes: NOW stands where the writer pauses."""
    return _without_mark(_as_it_comes(stream))


def _as_it_comes(stream: BinaryIO) -> Iterator[bytes]:
    read = stream.read1 if isinstance(stream, io.BufferedIOBase) else stream.read
    is_terminal = stream.isatty()
    while True:
        if is_terminal:
            print(PROMPT, end="", file=sys.stderr, flush=True)
        block = read(BLOCK)
        if not block:
            break
        yield block
        if not _has_more(stream):
            yield NOW
    if is_terminal:
        print(file=sys.stderr)


def raw_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """With their `\\n`, which only the last may lack."""
    tail: list[bytes] = []
    for block in blocks:
        if block == NOW:
            yield NOW
            continue
        *whole, rest = block.split(b"\n")
        for line in whole:
            yield b"".join([*tail, line, b"\n"])
            tail = []
        if rest:
            tail.append(rest)
    if tail:
        yield b"".join(tail)


def chunked(lines: Iterable[bytes], most: Callable[[], int] = lambda: LINES) -> Iterator[Chunk]:
    """Of so many lines as `most` says when a chunk is complete or not; fewer at NOW, and if they are long."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        if line:
            waiting.append(line)
            size += len(line)
        if waiting and (not line or len(waiting) >= min(LINES, most()) or size >= SIZE):
            yield _decoded(waiting)
            waiting, size = [], 0
    if waiting:
        yield _decoded(waiting)


def _decoded(raw: list[bytes]) -> Chunk:
    lines, replaced = [], set()
    for place, line in enumerate(raw):
        line = line.removesuffix(b"\r\n").removesuffix(b"\n")
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            lines.append(line.decode(errors="replace"))
            replaced.add(place)
    return Chunk(lines, replaced, raw[-1].endswith(b"\n"))


def _has_more(stream: BinaryIO) -> bool:
    try:
        return bool(select.select([stream.fileno()], [], [], 0)[0])
    except io.UnsupportedOperation:  # no real file behind it, so nothing to wait for
        return True
