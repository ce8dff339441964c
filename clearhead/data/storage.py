"""Rows of different lengths in flat files on the disk, memory-mapped: how a prepared corpus lies there."""

import array
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from .corpus import Pair
from .features import FeatureScale, Source

IDS, FRAMES, TEXT = "ids", "frames", "text"  # the kinds of files; of the first two a side has one
LINKS = "links"  # of each target id the place of the source id that it translates; its rows are those of the target
TYPES = {IDS: np.uint32, FRAMES: np.float32, TEXT: np.uint8, LINKS: np.uint16}


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one flat file."""

    flat: np.ndarray  # numbers, or steps of so many features
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
    """One side of a set of pairs: ids, or steps of features, and the text or the path they come from."""

    ids: Ragged
    text: Ragged  # UTF-8 bytes
    scale: FeatureScale | None = None  # of features

    def item(self, row: int) -> Source:
        """What a model is given: ids, or scaled features."""
        found = self.ids[row]
        return found.tolist() if self.scale is None else self.scale.apply(found)

    def tokens(self, row: int) -> list[int]:
        """Of a side that has ids."""
        return self.ids[row].tolist()

    def string(self, row: int) -> str:
        return self.text[row].tobytes().decode()


class Writer:
    """Appends pairs to flat files; nothing but the offsets stays in memory."""

    def __init__(self, folder: Path, prefix: str, source: str) -> None:
        """`source` is what the sources are, IDS or FRAMES."""
        self.rows = 0
        self._source = source
        names = (f"source.{source}", f"target.{IDS}", f"source.{TEXT}", f"target.{TEXT}")
        self._parts = {name: _FlatFile(folder / f"{prefix}{name}") for name in names}
        self._lines_path = folder / f"{prefix}lines.npy"
        self._lines = array.array("q")

    def add(self, pairs: list[Pair], sources: Sequence[Source], targets: list[list[int]]) -> None:
        self.rows += len(pairs)
        self._lines.extend(pair.line for pair in pairs)
        for name, items in ((f"source.{self._source}", sources), (f"target.{IDS}", targets)):
            self._parts[name].add(_numbers(items), lengths(items))
        for name, texts in (("source", [p.source for p in pairs]), ("target", [p.target for p in pairs])):
            rows = [text.encode() for text in texts]
            self._parts[f"{name}.{TEXT}"].add(b"".join(rows), lengths(rows))

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        np.save(self._lines_path, np.frombuffer(self._lines, np.int64))


class _FlatFile:
    """Rows of numbers, one after the other, and beside them where each begins."""

    def __init__(self, path: Path) -> None:
        self._path, self._dtype = path, TYPES[path.suffix[1:]]
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


def _numbers(items: Sequence[Source]) -> Iterable[int] | bytes:
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if arrays:
        return b"".join(np.ascontiguousarray(item, np.float32).tobytes() for item in arrays)
    return chain.from_iterable(item for item in items if isinstance(item, list))


def lengths(rows: Sequence[Sized]) -> np.ndarray:
    return np.fromiter(map(len, rows), np.int64, count=len(rows))


def open_side(folder: Path, name: str, scale: FeatureScale | None = None) -> Side:
    """With a scale, the side has features."""
    rows = _open(folder / f"{name}.{FRAMES if scale else IDS}", scale.features if scale else None)
    return Side(rows, _open(folder / f"{name}.{TEXT}"), scale)


def write_links(folder: Path, links: Iterable[np.ndarray]) -> None:
    """One number for each id of the training targets, in their order."""
    with (folder / f"target.{LINKS}").open("wb") as file:
        for some in links:
            file.write(some.astype(TYPES[LINKS]).tobytes())


def open_links(folder: Path, target: Ragged) -> Ragged | None:
    """None where the pairs were not aligned."""
    path = folder / f"target.{LINKS}"
    if not path.exists():
        return None
    return Ragged(np.memmap(path, dtype=TYPES[LINKS], mode="r").view(np.ndarray), target.offsets)


def _open(path: Path, features: int | None = None) -> Ragged:
    # As plain arrays: memmap's own slices take five times as long.
    flat = np.memmap(path, dtype=TYPES[path.suffix[1:]], mode="r").view(np.ndarray)
    offsets = np.load(path.with_name(path.name + ".offsets.npy"), mmap_mode="r")
    return Ragged(flat if features is None else flat.reshape(-1, features), offsets.view(np.ndarray))
