"""A corpus, cleaned, tokenized and on disk: what training reads, memory-mapped, however large it is.

Sources may be files of numbers, listed in a manifest: then what they hold is on the disk, step by step.

The work is done once and kept in a cache folder named after the content of the files and the options that matter.
"""

import array
import hashlib
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import BAD_DATA, DISK, UserError

from .aligner import MOST_PAIRS, Aligner, fit
from .corpus import Pair, Report, fingerprint, read_pairs
from .features import FeatureScale, Moments, Source
from .folders import load_tokenizers, tokenizer_files
from .languages import languages, looks_swapped
from .line_statistics import count_lines
from .lines import Lines
from .manifest import file_of, manifest_fingerprint, read_manifest
from .options import DataOptions
from .readers import read_features
from .storage import FRAMES, IDS, Ragged, Side, Writer, lengths, open_links, open_side, write_links
from .texts import read_texts
from .tokenizer import Tokenizer, train, vocabulary_for

FORMAT = 4
CHUNK = 20_000  # pairs tokenized at a time
FEW = 200  # pairs whose files are read at a time
SAMPLE_PAIRS = 500_000  # pairs, a million lines, that the tokenizer learns from
TEMPORARY = ".tmp-"  # how folders of unfinished work begin
LANGUAGE_PAIRS = 10_000  # about so many pairs, from all over the corpus, show which scripts it is in
HELD_OUT = 0.01, 50, 2000  # share of the corpus for validation, at least, at most

Progress = Callable[[str, int], None]  # (what is being done, pairs so far)


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
    links: Ragged | None = None  # of each target id the place of the source id that it translates, or aligner.NONE

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
    prints = {"train": _print(files, options), "valid": _print(valid_files, options) if valid_files else ""}
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
    scale = FeatureScale(**facts["scale"]) if facts["scale"] else None
    target = open_side(folder, "target")
    return Prepared(
        open_side(folder, "source", scale),
        target,
        np.load(folder / "lines.npy", mmap_mode="r"),
        open_side(folder, "valid-source", scale),
        open_side(folder, "valid-target"),
        *load_tokenizers(folder),
        {**facts, "folder": str(folder)},
        open_links(folder, target.ids),
    )


def _print(files: Sequence[Path], options: DataOptions) -> str:
    return manifest_fingerprint(files) if options.is_continuous else fingerprint(files)


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
        self.features = 0  # of each step, once one has been seen
        self.moments = Moments()  # of what is trained on

    def run(self, prints: dict[str, str]) -> None:
        hashes, sample = self._scan()
        some = sample[:: max(1, len(sample) // LANGUAGE_PAIRS)]
        spoken = languages(self.files, self.options, some)
        if self.options.is_continuous:
            spoken = self.options.source_language or self.options.task, spoken[1]
        elif swapped := looks_swapped(self.files, self.options, some):
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
        lines = self._look_back(spoken[0]) if self.options.task == "translate" else None
        facts = {
            "format": FORMAT,
            "prints": prints,
            "languages": spoken,
            "vocabularies": [len(source), len(target)],
            "scale": asdict(self.moments.scale()) if self.moments.steps else None,
            "report": self.report.to_dict(),
            "report_lines": self.report.lines(),
            "valid_report": self.valid_report.to_dict() if self.valid_files else None,
            "lines": asdict(lines) if lines else None,
        }
        (self.folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    def _require_unchanged(self, prints: dict[str, str]) -> None:
        for kind, files in (("train", self.files), ("valid", self.valid_files)):
            if files and _print(files, self.options) != prints[kind]:
                raise _changed(files)

    def _read(self, files: Sequence[Path], report: Report) -> Iterator[Pair]:
        if self.options.is_continuous:
            return read_manifest(files, report)
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
        if self.options.is_continuous:
            tokenizer = train((pair.target for pair in sample), self.options, self.seed, size)
            return tokenizer, tokenizer
        if self.options.joint or self.options.task == "generate":
            both = (text for pair in sample for text in (pair.source, pair.target))
            tokenizer = train(both, self.options, self.seed, size)
            return tokenizer, tokenizer
        source = train((pair.source for pair in sample), self.options, self.seed, size)
        return source, train((pair.target for pair in sample), self.options, self.seed, size)

    def _encode(self, hidden: np.ndarray) -> None:
        """All pairs to the disk; those that are hidden from training (a truth value for each) are for validation."""
        training, validation = (Writer(self.folder, prefix, self._kind) for prefix in ("", "valid-"))
        with closing(training), closing(validation):
            self._encode_training(hidden, training, validation)
            pairs = self._read(self.valid_files, self.valid_report) if self.valid_files else iter(())
            for chunk in self._chunks(pairs):
                self._write(chunk, self.valid_files, self.valid_report, [(validation, np.ones(len(chunk), bool))])
        if not training.rows:
            raise _nothing_left(self.files, self.report)
        if not validation.rows:
            raise _nothing_left(self.valid_files or self.files, self.valid_report if self.valid_files else self.report)
        self._require_enough()

    def _encode_training(self, hidden: np.ndarray, training: Writer, validation: Writer) -> None:
        done = 0
        for chunk in self._chunks(self._read(self.files, Report())):  # drops while reading were counted by _scan
            now = hidden[done : done + len(chunk)]
            if len(now) < len(chunk):
                raise _changed(self.files)
            sources = self._write(chunk, self.files, self.report, [(training, ~now), (validation, now)])
            for source, is_hidden in zip(sources, now, strict=True):
                if isinstance(source, np.ndarray) and not is_hidden and len(source) <= self.options.max_steps:
                    self.moments.add(source)
            done += len(chunk)
            self.progress("reading files" if self.options.is_continuous else "tokenizing", done)

    def _look_back(self, language: str) -> Lines:
        """Align the words of all pairs that will be trained on, and count what their source lines are."""
        assert self.tokenizers is not None
        source, target = open_side(self.folder, "source"), open_side(self.folder, "target")
        self.progress("learning to align words", min(MOST_PAIRS, len(source.ids)))
        vocabularies = len(self.tokenizers[0]), len(self.tokenizers[1])
        aligner = fit(source.ids, target.ids, vocabularies, self.seed)
        write_links(self.folder, self._links(aligner, source.ids, target.ids))
        return count_lines(source, target, language, self.seed)

    def _links(self, aligner: Aligner, source: Ragged, target: Ragged) -> Iterator[np.ndarray]:
        for start in range(0, len(source), CHUNK):
            stop = min(start + CHUNK, len(source))
            yield aligner.align(source, target, start, stop)
            self.progress("aligning words", stop)

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

    @property
    def _kind(self) -> str:
        return FRAMES if self.options.is_continuous else IDS

    def _chunks(self, pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
        while chunk := list(islice(pairs, FEW if self.options.is_continuous else CHUNK)):
            yield chunk

    def _write(
        self,
        pairs: list[Pair],
        files: Sequence[Path],
        report: Report,
        parts: list[tuple[Writer, np.ndarray]],
    ) -> Sequence[Source]:
        """Tokenize the pairs and give each writer those for which its truth value says so; all sources."""
        assert self.tokenizers is not None
        sources = self._sources(pairs, files)
        targets = self.tokenizers[1].encode_many([pair.target for pair in pairs])
        usable = self._usable(pairs, lengths(sources), lengths(targets), report)
        for writer, wanted in parts:
            places = np.flatnonzero(usable & wanted).tolist()
            writer.add([pairs[i] for i in places], [sources[i] for i in places], [targets[i] for i in places])
        return sources

    def _sources(self, pairs: list[Pair], files: Sequence[Path]) -> Sequence[Source]:
        assert self.tokenizers is not None
        if not self.options.is_continuous:
            return self.tokenizers[0].encode_many([pair.source for pair in pairs])
        found = []
        for pair in pairs:
            where = f"line {pair.line} of {files[0]}"
            found.append(read_features(file_of(files[0], pair.source), self.options, where))
            self._require_alike(found[-1].shape[1], where)
        return found

    def _require_alike(self, features: int, where: str) -> None:
        self.features = self.features or features
        if features != self.features:
            message = f"the file of {where} has steps of {features} numbers, those before it of {self.features}"
            raise UserError("FEATURES", f"{message}; expected all alike. Correct it or leave it out", BAD_DATA)

    def _usable(self, pairs: list[Pair], source: np.ndarray, target: np.ndarray, report: Report) -> np.ndarray:
        """Whether each pair, of so many tokens on each side, can be trained on; those that cannot are reported."""
        long, short = np.maximum(source, target), np.maximum(np.minimum(source, target), 1)
        reasons = {
            "too_long": long + 1 > self.options.max_tokens,
            "length_ratio": (long > self.options.max_ratio * (short + 1)) & (source > 0),
        }
        if self.options.is_continuous:
            reasons = {
                "too_many_steps": source > self.options.max_steps,
                "too_long": target + 1 > self.options.max_tokens,
            }
        usable = np.ones(len(pairs), bool)
        for reason, holds in reasons.items():
            for place in np.flatnonzero(usable & holds):
                report.drop(reason, pairs[place].line)
            usable &= ~holds
        return usable


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
