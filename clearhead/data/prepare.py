"""A corpus, cleaned, tokenized and on disk: what training reads, memory-mapped, however large it is.

The work is done once and kept in a cache folder named after the content of the files and the options that matter.
"""

import array
import hashlib
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import BAD_DATA, DISK, UserError

from .corpus import Pair, Report, fingerprint, read_pairs
from .folders import load_tokenizers, tokenizer_files
from .languages import languages, looks_swapped
from .options import DataOptions
from .texts import read_texts
from .tokenizer import Tokenizer, train, vocabulary_for

FORMAT = 2
CHUNK = 20_000  # pairs tokenized at a time
SAMPLE_PAIRS = 500_000  # pairs, a million lines, that the tokenizer learns from
TEMPORARY = ".tmp-"  # how folders of unfinished work begin
LANGUAGE_PAIRS = 10_000  # about so many pairs, from all over the corpus, show which scripts it is in
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

    @property
    def has_source(self) -> bool:
        """Else the pairs are texts to be continued, and their sources are empty."""
        return bool(self.source.ids.offsets[-1])


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
        with _scratch(cache) as scratch:
            _Preparation(scratch, files, valid_files, options, seed, progress, tokenizers_of).run(prints)
            _settle(scratch, folder)
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


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


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
        some = sample[:: max(1, len(sample) // LANGUAGE_PAIRS)]
        spoken = languages(self.files, self.options, some)
        swapped = looks_swapped(self.files, self.options, some)
        if swapped:
            raise UserError("SWAPPED", swapped, BAD_DATA)
        hidden = np.zeros(len(hashes), bool) if self.valid_files else hashes <= _held_out(hashes, self.files)
        if self.tokenizers is None:
            self.tokenizers = self._learn(sample, len(hashes))
        del hashes, sample, some  # of five million pairs they take 300 MiB
        source, target = self.tokenizers
        source.save(self.folder, "source")
        if target is not source:
            target.save(self.folder, "target")
        self._encode(hidden)
        self._require_unchanged(prints)
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

    def _require_unchanged(self, prints: dict[str, str]) -> None:
        for kind, files in (("train", self.files), ("valid", self.valid_files)):
            if files and fingerprint(files) != prints[kind]:
                raise _changed(files)

    def _read(self, files: Sequence[Path], report: Report) -> Iterator[Pair]:
        return read_texts(files, report, self.options) if self.options.task == "generate" else read_pairs(files, report)

    def _scan(self) -> tuple[np.ndarray, list[Pair]]:
        """A hash of every source, and a sample of the pairs (all of them if they are few)."""
        hashes = array.array("Q")
        sample: list[Pair] = []
        rng = random.Random(self.seed)
        for pair in self._read(self.files, self.report):
            hashes.append(_hash(pair.source or pair.target))
            if len(sample) < SAMPLE_PAIRS:
                sample.append(pair)
            elif (place := int(rng.random() * len(hashes))) < SAMPLE_PAIRS:
                sample[place] = pair
            if len(hashes) % CHUNK == 0:
                self.progress("reading", len(hashes))
        if not hashes:
            raise _nothing_left(self.files, self.report)
        return np.frombuffer(hashes, dtype=np.uint64), sample

    def _learn(self, sample: list[Pair], pairs: int) -> tuple[Tokenizer, Tokenizer]:
        self.progress("learning the vocabulary", len(sample))
        size = self.options.vocabulary or vocabulary_for(pairs)
        if self.options.joint or self.options.task == "generate":
            both = (text for pair in sample for text in (pair.source, pair.target))
            tokenizer = train(both, self.options, self.seed, size)
            return tokenizer, tokenizer
        source = train((pair.source for pair in sample), self.options, self.seed, size)
        return source, train((pair.target for pair in sample), self.options, self.seed, size)

    def _encode(self, hidden: np.ndarray) -> None:
        """All pairs to the disk; those that are hidden from training (a truth value for each) are for validation."""
        with closing(_Writer(self.folder, "")) as training, closing(_Writer(self.folder, "valid-")) as validation:
            self._encode_training(hidden, training, validation)
            for chunk in _chunks(self._read(self.valid_files, self.valid_report)) if self.valid_files else ():
                self._write(chunk, self.valid_report, [(validation, np.ones(len(chunk), bool))])
        if not training.rows:
            raise _nothing_left(self.files, self.report)
        if not validation.rows:
            raise _nothing_left(self.valid_files or self.files, self.valid_report if self.valid_files else self.report)
        self._require_enough()

    def _encode_training(self, hidden: np.ndarray, training: "_Writer", validation: "_Writer") -> None:
        done = 0
        for chunk in _chunks(self._read(self.files, Report())):  # what is dropped while reading was counted by _scan
            now = hidden[done : done + len(chunk)]
            if len(now) < len(chunk):
                raise _changed(self.files)
            self._write(chunk, self.report, [(training, ~now), (validation, now)])
            done += len(chunk)
            self.progress("tokenizing", done)

    def _require_enough(self) -> None:
        dropped = 1 - self.report.kept / self.report.read
        if dropped > self.options.max_dropped:
            raise UserError(
                "TOO_MANY_DROPPED",
                f"{dropped:.0%} of the pairs in {_names(self.files)} cannot be used "
                f"({'; '.join(self.report.lines())}); expected at most {self.options.max_dropped:.0%}. "
                "Look at them with 'clearhead check', or raise data.max_dropped",
                BAD_DATA,
            )

    def _write(self, pairs: list[Pair], report: Report, parts: "list[tuple[_Writer, np.ndarray]]") -> None:
        """Tokenize the pairs and give each writer those for which its truth value says so."""
        assert self.tokenizers is not None
        sources = self.tokenizers[0].encode_many([pair.source for pair in pairs])
        targets = self.tokenizers[1].encode_many([pair.target for pair in pairs])
        usable = self._usable(pairs, _lengths(sources), _lengths(targets), report)
        for writer, wanted in parts:
            places = np.flatnonzero(usable & wanted).tolist()
            writer.add([pairs[i] for i in places], [sources[i] for i in places], [targets[i] for i in places])

    def _usable(self, pairs: list[Pair], source: np.ndarray, target: np.ndarray, report: Report) -> np.ndarray:
        """Whether each pair, of so many tokens on each side, can be trained on; those that cannot are reported."""
        long, short = np.maximum(source, target), np.maximum(np.minimum(source, target), 1)
        too_long = long + 1 > self.options.max_tokens
        uneven = (long > self.options.max_ratio * (short + 1)) & (source > 0)
        for place in np.flatnonzero(too_long | uneven):
            report.drop("too_long" if too_long[place] else "length_ratio", pairs[place].line)
        return ~(too_long | uneven)


class _Writer:
    """Appends pairs to flat files; nothing but the offsets stays in memory."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.rows = 0
        kinds = {"source.ids": np.uint32, "target.ids": np.uint32, "source.text": np.uint8, "target.text": np.uint8}
        self._parts = {name: _FlatFile(folder / f"{prefix}{name}", dtype) for name, dtype in kinds.items()}
        self._lines_path = folder / f"{prefix}lines.npy"
        self._lines = array.array("q")

    def add(self, pairs: list[Pair], sources: list[list[int]], targets: list[list[int]]) -> None:
        self.rows += len(pairs)
        self._lines.extend(pair.line for pair in pairs)
        for name, ids in (("source.ids", sources), ("target.ids", targets)):
            self._parts[name].add(chain.from_iterable(ids), _lengths(ids))
        for name, texts in (("source.text", [p.source for p in pairs]), ("target.text", [p.target for p in pairs])):
            rows = [text.encode() for text in texts]
            self._parts[name].add(b"".join(rows), _lengths(rows))

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        np.save(self._lines_path, np.frombuffer(self._lines, np.int64))


class _FlatFile:
    """Rows of numbers, one after the other, and beside them where each begins."""

    def __init__(self, path: Path, dtype: type) -> None:
        self._path, self._dtype = path, dtype
        self._file = path.open("wb")
        self._lengths: list[np.ndarray] = []

    def add(self, numbers: Iterable[int] | bytes, lengths: np.ndarray) -> None:
        if not isinstance(numbers, bytes):
            numbers = np.fromiter(numbers, self._dtype, count=int(lengths.sum())).tobytes()
        self._file.write(numbers)
        self._lengths.append(lengths)

    def close(self) -> None:
        if self._file.tell() == 0:
            self._file.write(b"\0" * 4)  # an empty file cannot be memory-mapped
        self._file.close()
        offsets = np.concatenate([[0], *self._lengths]).cumsum(dtype=np.int64)
        np.save(self._path.with_name(self._path.name + ".offsets.npy"), offsets)


def _lengths(rows: Sequence[Sized]) -> np.ndarray:
    return np.fromiter(map(len, rows), np.int64, count=len(rows))


def _open_side(folder: Path, name: str) -> Side:
    parts = []
    for kind, dtype in (("ids", np.uint32), ("text", np.uint8)):
        flat = np.memmap(folder / f"{name}.{kind}", dtype=dtype, mode="r")
        offsets = np.load(folder / f"{name}.{kind}.offsets.npy", mmap_mode="r")
        # As plain arrays: memmap's own slices take five times as long.
        parts.append(Ragged(flat.view(np.ndarray), offsets.view(np.ndarray)))
    return Side(*parts)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _held_out(hashes: np.ndarray, files: Sequence[Path]) -> np.uint64:
    """Sources with a hash up to this are held out: all pairs of a source together, so nothing leaks."""
    share, least, most = HELD_OUT
    distinct, pairs = np.unique(hashes, return_counts=True)
    if len(distinct) < 2:
        raise UserError(
            "TOO_FEW",
            f"{_names(files)} has a single source sentence; expected at least two, one to train on and one to validate "
            "on. Add pairs, or give --valid files",
            BAD_DATA,
        )
    wanted = min(max(int(len(hashes) * share), least), most, len(hashes) // 5)
    sources = int(np.searchsorted(pairs.cumsum(), wanted, side="right"))
    return distinct[max(sources, 1) - 1]


def _chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """A folder in the cache for as long as the work lasts; what cannot be written there is the user's to know."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _remove_left_overs(cache)
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=cache))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise UserError(
            "CACHE",
            f"cannot write the prepared corpus to {cache}: {error.strerror or error}; expected a folder with room for "
            "twice the corpus. Free some space, or name another folder in CLEARHEAD_CACHE",
            DISK,
        ) from error


def _remove_left_overs(cache: Path) -> None:
    """What a killed process left: nobody prepares for a day."""
    for folder in cache.glob(f"{TEMPORARY}*"):
        if folder.stat().st_mtime < time.time() - 86_400:
            shutil.rmtree(folder, ignore_errors=True)


def _settle(scratch: Path, folder: Path) -> None:
    try:
        scratch.rename(folder)
    except OSError:
        if not (folder / "facts.json").exists():  # else somebody else was faster, with the same result
            raise


def _names(files: Sequence[Path]) -> str:
    return " and ".join(str(file) for file in files)


def _changed(files: Sequence[Path]) -> UserError:
    return UserError(
        "FILES_CHANGED",
        f"{_names(files)} changed while being read; expected files that stay as they are. "
        "Start again when they are complete",
        BAD_DATA,
    )


def _nothing_left(files: Sequence[Path], report: Report) -> UserError:
    why = "; ".join(report.lines()) or "it has no lines"
    return UserError(
        "NOTHING_LEFT",
        f"no usable pair is left of {_names(files)} ({why}); expected one sentence per line in both. "
        "Look at the files with 'clearhead check'",
        BAD_DATA,
    )
