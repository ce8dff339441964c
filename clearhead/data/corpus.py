"""Text files -> clean pairs of strings, in one stream, with counts of what was dropped and why.

Only `\\n` ends a line, because a reader that also splits at U+2028 or a lone CR shifts every later pair. NFC is the
tokenizer's. Faults F21-F25 of the fault matrix are handled here.
"""

import gzip
import hashlib
import json
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import BinaryIO

import zstandard

from clearhead.errors import BAD_DATA, DISK, MISSING, USAGE, UserError

BLOCK = 1 << 18  # bytes read at once; must not exceed MAX_LINE
MAX_LINE = 1 << 20  # bytes; no sentence is this long, but a file without line ends is
FIRST_LINES = 5  # line numbers kept for each reason

DROPS = {  # reason -> what the user reads; later stages drop for the last three
    "empty": "one side is empty",
    "invalid_utf8": "not valid UTF-8",
    "columns": "not two columns with one tab between them",
    "json": 'no JSON object with the strings "source" and "target"',
    "too_long": "more tokens than data.max_tokens",
    "length_ratio": "one side has over data.max_ratio times the other's tokens",
    "too_many_steps": "more steps than data.max_steps",
}
NOTES = {
    "control": "control characters replaced by spaces",
    "carriage_return": "Windows line ends (CR LF) read as line ends",
    "bom": "byte order mark at the start removed",
    "no_final_newline": "last line without a line end",
    "skipped_line": "lines that are not valid UTF-8 left out",
}


@dataclass(frozen=True, slots=True)
class Pair:
    line: int  # counted from 1
    source: str
    target: str


@dataclass
class Tally:
    count: int = 0
    lines: list[int] = field(default_factory=list)  # the first few
    last: int = 0

    def add(self, line: int) -> None:
        self.count, self.last = self.count + 1, line
        if len(self.lines) < FIRST_LINES:
            self.lines.append(line)


@dataclass
class Report:
    """How many pairs were read, dropped for which reason, and changed in which way."""

    read: int = 0
    dropped: dict[str, Tally] = field(default_factory=dict)
    notes: dict[str, Tally] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        return self.read - sum(tally.count for tally in self.dropped.values())

    def drop(self, reason: str, line: int) -> None:
        """Once per pair, for a reason of `DROPS`."""
        assert reason in DROPS, reason
        self.dropped.setdefault(reason, Tally()).add(line)

    def note(self, reason: str, line: int) -> None:
        """For what does not cost the pair; both sides of one line count once."""
        assert reason in NOTES, reason
        tally = self.notes.setdefault(reason, Tally())
        if tally.last != line:
            tally.add(line)

    def to_dict(self) -> dict[str, object]:
        def plain(tallies: dict[str, Tally]) -> dict[str, object]:
            return {reason: {"count": tally.count, "lines": tally.lines} for reason, tally in tallies.items()}

        return {"read": self.read, "kept": self.kept, "dropped": plain(self.dropped), "notes": plain(self.notes)}

    def lines(self) -> list[str]:
        rows = [("dropped", DROPS[reason], tally) for reason, tally in self.dropped.items()]
        rows += [("noted", NOTES[reason], tally) for reason, tally in self.notes.items()]
        return [f"{self.kept:,} of {self.read:,} pairs kept"] + [
            f"  {what} {tally.count:,}: {words} ({line_numbers(tally.lines, tally.count)})"
            for what, words, tally in rows
        ]


def line_numbers(lines: Sequence[int], count: int) -> str:
    """`line 3`, `lines 3, 5` or, if there are more than are listed, `lines 3, 5, …`."""
    return f"line{'s' * (count > 1)} {', '.join(map(str, lines))}{', …' * (count > len(lines))}"


# ---------------------------------------------------------------------------------------------- files -> lines

PACKINGS = {".gz": "gzip", ".zst": "zstd"}
FORMATS = (".tsv", ".jsonl")
MAGIC = {  # how a file that is not text starts -> what it is, and what to do with it
    b"\x1f\x8b": ("gzip", "rename it to {path}.gz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "rename it to {path}.zst"),
    b"BZh": ("bzip2", "unpack it with bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unpack it with unxz"),
    b"PK\x03\x04": ("a zip or office file", "unpack it, or save it as plain text"),
    b"%PDF-": ("PDF", "save it as plain text"),
    b"\xff\xfe": ("UTF-16", "convert it with iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "convert it with iconv -f UTF-16 -t UTF-8"),
}
CONTROLS = bytes(c for c in range(0x80) if (c < 0x20 or c == 0x7F) and c not in b"\t\n")
C1_BYTES = re.compile(rb"\xc2[\x80-\x9f]")
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
QUOTED = re.compile(r'"(?:[^"]|"")*"')  # a column of CSV
LOOKED_AT, FEWEST = 50, 3  # lines at the start from which the form is told; and how many it takes
SURROGATE = re.compile("[\ud800-\udfff]")


def unpacked_name(path: Path) -> str:
    """`train.de` for `folder/train.de.gz`."""
    return path.stem if path.suffix.lower() in PACKINGS else path.name


def _check(paths: Sequence[Path]) -> str:
    """`.tsv`, `.jsonl` or, for two plain files, nothing; every path is a regular file."""
    formats = [Path(unpacked_name(path)).suffix.lower() for path in paths]
    several = [path for path, format in zip(paths, formats, strict=True) if format in FORMATS]
    if len(paths) == 1 and formats[0] == ".csv":
        message = f"{paths[0]} is CSV; expected two text files, a .tsv without quotation marks, or a .jsonl"
        raise UserError("CSV", f"{message}; save it as one of these", BAD_DATA)
    if len(paths) == 2 and several:
        raise UserError("FILES", f"{several[0]} holds both sides, but a second file is given; give it alone", USAGE)
    if len(paths) != 2 and not (len(paths) == 1 and several):
        names = ", ".join(map(str, paths)) or "none"
        raise UserError("FILES", f"found files: {names}; give two text files, or one .tsv or .jsonl file", USAGE)
    for path in paths:
        _check_regular(path)
    return formats[0] if several else ""


def _check_regular(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError("MISSING", f"there is no file {path}; check the path", MISSING) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        raise UserError("DIRECTORY", f"{path} is a folder; expected a text file; name a file in it", USAGE)
    if not stat.S_ISREG(mode):
        raise UserError(
            "NOT_A_FILE", f"{path} is a pipe or device, but files are read twice; store the text in a file", USAGE
        )


def _unreadable(path: Path, error: OSError) -> UserError:
    why = error.strerror or str(error)
    return UserError("UNREADABLE", f"cannot read {path}: {why}; check its permissions and the disk", DISK)


def _unzstd(file: BinaryIO) -> Iterator[bytes]:
    """128 packed bytes make at most 4 MiB, so memory stays bounded; the library's own stream hides a missing end."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    packed, parts, size = file.read(128), [], 0
    while packed:
        if frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
        part = frame.decompress(packed)
        packed = frame.unused_data or file.read(128)
        parts.append(part)
        size += len(part)
        if size >= BLOCK or not packed:
            data = b"".join(parts)
            yield from (data[start : start + BLOCK] for start in range(0, size, BLOCK))
            parts, size = [], 0
            if not packed and not frame.eof:
                raise EOFError("its end is missing")


def blocks_of_file(path: Path) -> Iterator[bytes]:
    """The file's bytes, unpacked, at most BLOCK at once."""
    packing = PACKINGS.get(path.suffix.lower())
    try:
        with path.open("rb") as file:
            if packing == "zstd":
                yield from _unzstd(file)
            else:
                unpacked = gzip.GzipFile(fileobj=file) if packing else file
                while block := unpacked.read(BLOCK):
                    yield block
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        message = f"{path} is no complete {packing} file ({error}); copy or make it again, or rename it if it is text"
        raise UserError("DAMAGED_ARCHIVE", message, BAD_DATA) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def require_text(path: Path, start: bytes) -> None:
    for magic, (kind, advice) in MAGIC.items():
        if start.startswith(magic):
            if path.suffix.lower() in PACKINGS:
                advice = "unpack it once, and give the text"
            message = f"{path} looks like {kind}; expected UTF-8 text; {advice.format(path=path)}"
            raise UserError("NOT_TEXT", message, BAD_DATA)
    nuls = start[:4096].count(0)
    if nuls >= 16 and nuls > len(start[:4096]) / 10:
        message = f"{path} looks binary: {nuls} of its first {len(start[:4096])} bytes are NUL; expected UTF-8 text"
        raise UserError("NOT_TEXT", f"{message}; save it as plain text", BAD_DATA)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Blocks that end where a line ends; only the file's last may lack its `\\n`. The BOM is still there."""
    tail, lines, offset = b"", 0, 0
    for block in blocks_of_file(path):
        if offset == 0 and not tail:
            require_text(path, block)
        data = tail + block
        end = data.rfind(b"\n") + 1
        whole, tail = data[:end], data[end:]
        first = whole.find(b"\n")  # no other line can be too long: it lies within one block
        if first > MAX_LINE or len(tail) > MAX_LINE:
            line, start = (lines + 1, offset) if first > MAX_LINE else (lines + whole.count(b"\n") + 1, offset + end)
            message = f"{path} line {line}, which starts at byte {start}, is longer than {MAX_LINE} bytes"
            raise UserError("LONG_LINE", f"{message}; expected one sentence per line; split or remove it", BAD_DATA)
        if whole:
            yield whole
            lines, offset = lines + whole.count(b"\n"), offset + end
    if tail:
        yield tail
    elif not lines:
        raise UserError("EMPTY_FILE", f"{path} is empty; expected one sentence per line; check the path", BAD_DATA)


def _lines(path: Path, report: Report) -> Iterator[Sequence[str | bytes]]:
    """Lists of lines: as text where a whole block is clean, else as bytes to be looked at one by one."""
    lines = 0
    for block in _whole_lines(path):
        complete = block.endswith(b"\n")
        if lines == 0 and block.startswith(b"\xef\xbb\xbf"):
            report.note("bom", 1)
            block = block[3:]
        if complete:
            block = block[:-1]
        split = _split(block)
        lines += len(split)
        if not complete:
            report.note("no_final_newline", lines)
        yield split


def _split(block: bytes) -> Sequence[str | bytes]:
    if len(block.translate(None, CONTROLS)) == len(block) and not C1_BYTES.search(block):
        try:
            return block.decode().split("\n")
        except UnicodeDecodeError:
            pass
    return block.split(b"\n")


def count_lines(path: Path) -> int:
    """As `read_pairs` counts them: the number of `\\n`, and one more if text follows the last."""
    _check_regular(path)
    return sum(block.count(b"\n") + (not block.endswith(b"\n")) for block in _whole_lines(path))


def fingerprint(paths: Sequence[Path]) -> str:
    """SHA-256 (hex) of the files' own SHA-256 digests, in order; as they lie on the disk, packed or not."""
    digests = []
    for path in paths:
        _check_regular(path)
        try:
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise _unreadable(path, error) from error
    return hashlib.sha256(b"".join(digests)).hexdigest()


# ---------------------------------------------------------------------------------------------- lines -> pairs


def read_pairs(paths: Sequence[Path], report: Report) -> Iterator[Pair]:
    """Two text files, or one `.tsv` or `.jsonl`, each perhaps `.gz` or `.zst`; what is dropped goes to the report.

    That two files have different numbers of lines is known, and raised, only at the end.
    """
    format = _check(paths)
    rows = _two_columns(paths[0], format, report) if format else _two_files(paths, report)
    for line, (source, target) in enumerate(rows, 1):
        report.read = line
        if source is None or target is None:
            continue
        source, target = source.strip(), target.strip()
        if source and target:
            yield Pair(line, source, target)
        else:
            report.drop("empty", line)


def clean_lines(path: Path, report: Report) -> Iterator[str | None]:
    """The lines of one text file as they are, indentation too; none where a line is no UTF-8, which is counted."""
    _check_regular(path)
    for line, raw in enumerate(chain.from_iterable(_lines(path, report)), 1):
        text = raw if type(raw) is str else _clean(raw, line, report)
        if text is None:
            report.note("skipped_line", line)
        yield text


Row = tuple[str | None, str | None]  # None: dropped and counted already


def _clean(raw: str | bytes, line: int, report: Report) -> str | None:
    """The text of one line without control characters, or None if it is no UTF-8."""
    if isinstance(raw, bytes):
        if raw.endswith(b"\r"):
            raw = raw[:-1]
            report.note("carriage_return", line)
        try:
            raw = raw.decode()
        except UnicodeDecodeError:
            return None
    text = CONTROL.sub(" ", raw)
    if text != raw:
        report.note("control", line)
    return text


def _two_files(paths: Sequence[Path], report: Report) -> Iterator[Row]:
    sources, targets = (chain.from_iterable(_lines(path, report)) for path in paths)
    for line, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            rest = sum(1 for _ in (targets if source is None else sources))
            raise _line_counts(paths, (line - 1, line + rest) if source is None else (line + rest, line - 1))
        if type(source) is not str:
            source = _clean(source, line, report)
        if type(target) is not str:
            target = _clean(target, line, report)
        if source is None or target is None:
            report.drop("invalid_utf8", line)
        yield source, target


def _two_columns(path: Path, format: str, report: Report) -> Iterator[Row]:
    columns = _json_columns if format == ".jsonl" else _tab_columns
    lines = chain.from_iterable(_lines(path, report))
    first = list(islice(lines, LOOKED_AT))
    (_require_plain_json if format == ".jsonl" else _require_unquoted)(path, first)
    for line, raw in enumerate(chain(first, lines), 1):
        text = raw if isinstance(raw, str) else _clean(raw, line, report)
        if text is None:
            report.drop("invalid_utf8", line)
            yield None, None
        elif not text.strip():
            yield "", ""
        else:
            yield columns(text, line, report)


def _require_unquoted(path: Path, first: Sequence[str | bytes]) -> None:
    """Quotation marks around every column are CSV's, and would be learned; a first line of names may have none."""
    rows = [row for row in map(_plain, first) if row.strip()]
    quoted = [all(QUOTED.fullmatch(cell.strip()) for cell in row.split("\t")) for row in rows]
    if len(rows) >= FEWEST and all(quoted[1:]) and (quoted[0] or len(rows) > FEWEST):
        message = f"{path} has quotation marks around every column, as tables that are saved as CSV have"
        expected = "expected the bare text: source, tab, target; save it without quotation marks and without a heading"
        raise UserError("QUOTED", f"{message}; {expected}", BAD_DATA)


def _require_plain_json(path: Path, first: Sequence[str | bytes]) -> None:
    """The other usual form, which some data sets come in, is named: a line by itself only seems to lack something."""
    try:
        row = json.loads(_plain(first[0])) if first else None
    except (ValueError, RecursionError):
        return  # said with its line
    inner = row.get("translation") if isinstance(row, dict) else None
    if isinstance(inner, dict):
        one, other = [*map(str, inner), "en", "fr"][:2] if len(inner) > 1 else ("en", "fr")
        found = f'{{"translation": {{"{one}": …, "{other}": …}}}}'
        message = f'{path} has {found} on its lines; expected {{"source": "…", "target": "…"}}'
        convert = f"jq -c '{{source: .translation.{one}, target: .translation.{other}}}' {path}"
        raise UserError("TRANSLATION", f"{message}; write it so, as by {convert}", BAD_DATA)


def _plain(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode(errors="replace")


def _tab_columns(text: str, line: int, report: Report) -> Row:
    columns = text.split("\t")
    if len(columns) != 2:
        report.drop("columns", line)
        return None, None
    return columns[0], columns[1]


def _json_columns(text: str, line: int, report: Report) -> Row:
    """Escapes can bring back what the file itself must not hold, so the strings are cleaned again."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        row = None
    row = row if isinstance(row, dict) else {}
    source, target = row.get("source", row.get("src")), row.get("target", row.get("tgt"))
    if not isinstance(source, str) or not isinstance(target, str):
        report.drop("json", line)
    elif SURROGATE.search(source + target):
        report.drop("invalid_utf8", line)
    else:
        return _clean(source, line, report), _clean(target, line, report)
    return None, None


def _line_counts(paths: Sequence[Path], counts: tuple[int, int]) -> UserError:
    from .drift import drift_of, line_lengths  # takes numpy along, which reading alone does not need

    source, target = paths
    drift = drift_of(*(line_lengths(_whole_lines(path)) for path in paths)) if max(counts) <= 2_000_000 else None
    longer, extra = (source if counts[0] > counts[1] else target), abs(counts[0] - counts[1])
    place = f"{longer} seems to have {extra} too many near line {drift}" if drift else "look for where they part"
    message = f"{source} has {counts[0]} lines but {target} has {counts[1]}; line by line they must be translations"
    return UserError("LINE_COUNTS", f"{message}; {place}; correct the files and start again", BAD_DATA)
