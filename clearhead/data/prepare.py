"""A corpus, cleaned, tokenized and on disk: what training reads, memory-mapped, however large it is.

The work is done once and kept in a cache folder named after the content of the files and the options that matter.
"""

import array
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import BAD_DATA, UserError

from .corpus import Pair, Report, fingerprint, languages, looks_swapped, read_pairs
from .options import DataOptions
from .tokenizer import Tokenizer, load, train, vocabulary_for

FORMAT = 1
CHUNK = 20_000  # pairs tokenized at a time
SAMPLE_PAIRS = 500_000  # pairs, a million lines, that the tokenizer learns from
HELD_OUT = 0.01, 50, 2000  # share of the corpus for validation, at least, at most

Progress = Callable[[str, int], None]  # (what is being done, pairs so far)


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one flat file."""

    flat: np.ndarray
    offsets: np.ndarray  # (rows + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets).astype(np.int32)


@dataclass(frozen=True)
class Side:
    """One language of a set of pairs: ids, and the text they come from."""

    ids: Ragged
    text: Ragged  # UTF-8 bytes

    def string(self, row: int) -> str:
        return self.text[row].tobytes().decode()


@dataclass(frozen=True)
class Prepared:
    """Training pairs and validation pairs, and the tokenizers that made ids of them."""

    source: Side
    target: Side
    lines: np.ndarray  # each training pair's line in the files
    valid_source: Side
    valid_target: Side
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    facts: dict[str, Any]  # fingerprints, languages, counts, the report of what was dropped

    def __len__(self) -> int:
        return len(self.lines)


def prepare(
    files: Sequence[Path],
    valid_files: Sequence[Path],
    options: DataOptions,
    seed: int,
    cache: Path,
    progress: Progress,
    tokenizers_of: Path | None = None,
) -> Prepared:
    """Clean, hold out, learn the vocabulary or take that of a model folder, and encode; or find it in the cache."""
    prints = {"train": fingerprint(files), "valid": fingerprint(valid_files) if valid_files else ""}
    key = [FORMAT, prints, asdict(options), seed, [f.name for f in files], [f.name for f in valid_files]]
    inherited = [] if tokenizers_of is None else [_digest(file) for file in tokenizer_files(tokenizers_of)]
    name = hashlib.sha256(json.dumps([*key, inherited]).encode()).hexdigest()[:24]
    folder = cache / name
    if not (folder / "facts.json").exists():
        cache.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".tmp-", dir=cache))
        try:
            _Preparation(scratch, files, valid_files, options, seed, progress, tokenizers_of).run(prints)
            _settle(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return open_prepared(folder)


def open_prepared(folder: Path) -> Prepared:
    """What `prepare` left in a cache folder."""
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return Prepared(
        _open_side(folder, "source"),
        _open_side(folder, "target"),
        np.load(folder / "lines.npy", mmap_mode="r"),
        _open_side(folder, "valid-source"),
        _open_side(folder, "valid-target"),
        *load_tokenizers(folder),
        {**facts, "folder": str(folder)},
    )


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Of source and target; the same one if the vocabulary is joint."""
    source = load(folder, "source")
    return source, load(folder, "target") if _file_of(folder, "target") else source


def tokenizer_files(folder: Path) -> list[Path]:
    """One file for a joint vocabulary, two for separate ones."""
    return [file for side in ("source", "target") if (file := _file_of(folder, side))]


def _file_of(folder: Path, side: str) -> Path | None:
    return next((file for ending in ("model", "json") if (file := folder / f"{side}.{ending}").exists()), None)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def default_cache() -> Path:
    """CLEARHEAD_CACHE, else the user's cache folder."""
    base = os.environ.get("CLEARHEAD_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearhead"


class _Preparation:
    """The steps of `prepare`, which share their input and the folder they write to."""

    def __init__(
        self,
        folder: Path,
        files: Sequence[Path],
        valid_files: Sequence[Path],
        options: DataOptions,
        seed: int,
        progress: Progress,
        tokenizers_of: Path | None,
    ) -> None:
        self.folder, self.files, self.valid_files, self.options = folder, files, valid_files, options
        self.seed, self.progress = seed, progress
        self.tokenizers = None if tokenizers_of is None else load_tokenizers(tokenizers_of)
        self.report = Report()
        self.valid_report = Report()

    def run(self, prints: dict[str, str]) -> None:
        hashes, sample = self._scan()
        spoken = languages(self.files, self.options, sample)
        swapped = looks_swapped(self.files, self.options, sample)
        if swapped:
            raise UserError("SWAPPED", swapped, BAD_DATA)
        held_out = _held_out(hashes) if not self.valid_files else np.uint64(0)
        if self.tokenizers is None:
            self.tokenizers = self._learn(sample, len(hashes))
        source, target = self.tokenizers
        source.save(self.folder, "source")
        if target is not source:
            target.save(self.folder, "target")
        self._encode(held_out)
        if fingerprint(self.files) != prints["train"]:
            raise UserError(
                "FILES_CHANGED",
                f"{_names(self.files)} changed while being read; expected files that stay as they are. "
                "Start again when they are complete",
                BAD_DATA,
            )
        facts = {
            "format": FORMAT,
            "prints": prints,
            "languages": spoken,
            "vocabularies": [len(source), len(target)],
            "report": self.report.to_dict(),
            "report_lines": self.report.lines(),
            "valid_report": self.valid_report.to_dict() if self.valid_files else None,
        }
        (self.folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    def _scan(self) -> tuple[np.ndarray, list[Pair]]:
        """A hash of every source, and a sample of the pairs (all of them if they are few)."""
        hashes = array.array("Q")
        sample: list[Pair] = []
        rng = random.Random(self.seed)
        for pair in read_pairs(self.files, self.report):
            hashes.append(_hash(pair.source))
            if len(sample) < SAMPLE_PAIRS:
                sample.append(pair)
            elif (place := rng.randrange(len(hashes))) < SAMPLE_PAIRS:
                sample[place] = pair
            if len(hashes) % CHUNK == 0:
                self.progress("reading", len(hashes))
        if not hashes:
            raise _nothing_left(self.files, self.report)
        return np.frombuffer(hashes, dtype=np.uint64), sample

    def _learn(self, sample: list[Pair], pairs: int) -> tuple[Tokenizer, Tokenizer]:
        self.progress("learning the vocabulary", len(sample))
        size = self.options.vocabulary or vocabulary_for(pairs)
        if self.options.joint:
            both = (text for pair in sample for text in (pair.source, pair.target))
            tokenizer = train(both, self.options, self.seed, size)
            return tokenizer, tokenizer
        source = train((pair.source for pair in sample), self.options, self.seed, size)
        return source, train((pair.target for pair in sample), self.options, self.seed, size)

    def _encode(self, held_out: np.uint64) -> None:
        training, validation = _Writer(self.folder, "", lines=True), _Writer(self.folder, "valid-", lines=False)
        seen = Report()  # what is dropped while reading was counted by _scan
        for chunk in _chunks(read_pairs(self.files, seen)):
            hidden = [_hash(pair.source) <= held_out for pair in chunk] if held_out else [False] * len(chunk)
            for to, keeps in ((training, False), (validation, True)):
                self._write(to, [p for p, h in zip(chunk, hidden, strict=True) if h == keeps], self.report)
            self.progress("tokenizing", seen.kept)
        for chunk in _chunks(read_pairs(self.valid_files, self.valid_report)) if self.valid_files else ():
            self._write(validation, chunk, self.valid_report)
        training.close()
        validation.close()
        if not training.rows:
            raise _nothing_left(self.files, self.report)
        if not validation.rows:
            raise _nothing_left(self.valid_files or self.files, self.valid_report)
        dropped = 1 - self.report.kept / self.report.read
        if dropped > self.options.max_dropped:
            raise UserError(
                "TOO_MANY_DROPPED",
                f"{dropped:.0%} of the pairs in {_names(self.files)} cannot be used "
                f"({'; '.join(self.report.lines())}); expected at most {self.options.max_dropped:.0%}. "
                "Look at them with 'clearhead check', or raise data.max_dropped",
                BAD_DATA,
            )

    def _write(self, writer: "_Writer", pairs: list[Pair], report: Report) -> None:
        assert self.tokenizers is not None
        sources = self.tokenizers[0].encode_many([pair.source for pair in pairs])
        targets = self.tokenizers[1].encode_many([pair.target for pair in pairs])
        for pair, source, target in zip(pairs, sources, targets, strict=True):
            long, short = max(len(source), len(target)), max(1, min(len(source), len(target)))
            if long + 1 > self.options.max_tokens:
                report.drop("too_long", pair.line)
            elif long > self.options.max_ratio * (short + 1):
                report.drop("length_ratio", pair.line)
            else:
                writer.add(pair, source, target)


class _Writer:
    """Appends pairs to flat files; nothing but the offsets stays in memory."""

    def __init__(self, folder: Path, prefix: str, lines: bool) -> None:
        self.rows = 0
        self._parts = {
            name: _FlatFile(folder / f"{prefix}{name}", dtype)
            for name, dtype in (
                ("source.ids", "uint32"),
                ("target.ids", "uint32"),
                ("source.text", "uint8"),
                ("target.text", "uint8"),
            )
        }
        self._lines_path = folder / "lines.npy" if lines else None
        self._lines = array.array("Q")

    def add(self, pair: Pair, source: list[int], target: list[int]) -> None:
        self.rows += 1
        self._lines.append(pair.line)
        self._parts["source.ids"].add(np.array(source, dtype=np.uint32).tobytes(), len(source))
        self._parts["target.ids"].add(np.array(target, dtype=np.uint32).tobytes(), len(target))
        for name, text in (("source.text", pair.source.encode()), ("target.text", pair.target.encode())):
            self._parts[name].add(text, len(text))

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        if self._lines_path is not None:
            np.save(self._lines_path, np.frombuffer(self._lines, dtype=np.uint64))


class _FlatFile:
    def __init__(self, path: Path, dtype: str) -> None:
        self._path, self._dtype = path, dtype
        self._file = path.open("wb")
        self._offsets = array.array("Q", [0])

    def add(self, row: bytes, length: int) -> None:
        self._file.write(row)
        self._offsets.append(self._offsets[-1] + length)

    def close(self) -> None:
        if self._file.tell() == 0:
            self._file.write(b"\0" * 4)  # an empty file cannot be memory-mapped
        self._file.close()
        np.save(self._path.with_name(self._path.name + ".offsets.npy"), np.frombuffer(self._offsets, dtype=np.uint64))


def _open_side(folder: Path, name: str) -> Side:
    parts = []
    for kind, dtype in (("ids", np.uint32), ("text", np.uint8)):
        flat = np.memmap(folder / f"{name}.{kind}", dtype=dtype, mode="r")
        offsets = np.load(folder / f"{name}.{kind}.offsets.npy").astype(np.int64)
        parts.append(Ragged(flat, offsets))
    return Side(*parts)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _held_out(hashes: np.ndarray) -> np.uint64:
    """Sources with a hash up to this are held out: all pairs of a source together, so nothing leaks."""
    share, least, most = HELD_OUT
    distinct = np.unique(hashes)
    wanted = min(max(int(len(hashes) * share), least), most, max(1, len(distinct) // 5))
    return distinct[wanted - 1]


def _chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk


def _settle(scratch: Path, folder: Path) -> None:
    try:
        scratch.rename(folder)
    except OSError:
        if not (folder / "facts.json").exists():  # else somebody else was faster, with the same result
            raise


def _names(files: Sequence[Path]) -> str:
    return " and ".join(str(file) for file in files)


def _nothing_left(files: Sequence[Path], report: Report) -> UserError:
    why = "; ".join(report.lines()) or "it has no lines"
    return UserError(
        "NOTHING_LEFT",
        f"no usable pair is left of {_names(files)} ({why}); expected one sentence per line in both. "
        "Look at the files with 'clearhead check'",
        BAD_DATA,
    )
