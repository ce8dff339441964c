"""Series of measurements -> (steps, features): `.npy` arrays and CSV files, one step a row."""

import csv
from pathlib import Path

import numpy as np

from .options import DataOptions


def read_series(path: Path, options: DataOptions) -> np.ndarray:  # noqa: ARG001 (readers are alike)
    """The numbers of a file; a single column, or an array of one axis, is a series of one feature."""
    found = _array(path) if path.suffix.lower() == ".npy" else _table(path)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or 0 in found.shape:
        raise ValueError(f"it has the shape {found.shape}, not steps × features")
    return found.astype(np.float32)


def _array(path: Path) -> np.ndarray:
    found = np.load(path, allow_pickle=False)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
        raise ValueError("it is no plain array of real numbers")
    return found


def _table(path: Path) -> np.ndarray:
    """Numbers with commas, semicolons or tabs between them; a first row of names is left out."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is no UTF-8 text") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    rows: list[list[float]] = []
    for line, row in enumerate(csv.reader(text.splitlines(), delimiter=delimiter), 1):
        if not row:
            continue
        numbers = _numbers(row)
        if numbers is None and line == 1:
            continue
        if numbers is None:
            raise ValueError(f"its row {line} has something that is no number")
        if rows and len(numbers) != len(rows[0]):
            raise ValueError(f"its row {line} has {len(numbers)} numbers, the first has {len(rows[0])}")
        rows.append(numbers)
    if not rows:
        raise ValueError("it has no numbers")
    return np.array(rows)


def _numbers(row: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in row]
    except ValueError:
        return None
