"""The one table from the task to how its files become numbers: (steps, features) in float32.

A reader raises ValueError for a file that it cannot read; whoever calls it says which file that is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearhead.errors import BAD_DATA, DISK, MISSING, UserError

from .features import FeatureScale
from .images import patch_names, read_image
from .options import DataOptions
from .series import read_series
from .speech import SHIFT, read_speech


@dataclass(frozen=True)
class Reader:
    """How the files of a task are read, and how a step of them is called where people look at it."""

    read: Callable[[Path, DataOptions], np.ndarray]
    expected: str  # for messages: what kind of file
    labels: Callable[[int, int, DataOptions], list[str]]  # of so many steps, every so many of which are seen as one
    strides: int  # of the model, unless options say otherwise


def _times(steps: int, stride: int, options: DataOptions) -> list[str]:  # noqa: ARG001 (readers are alike)
    return [f"{step * SHIFT:.2f}s" for step in range(0, steps, stride)]


def _rows(steps: int, stride: int, options: DataOptions) -> list[str]:  # noqa: ARG001
    return [str(step + 1) for step in range(0, steps, stride)]


READERS = {
    "speech": Reader(read_speech, "a WAV or FLAC recording", _times, strides=2),
    "image": Reader(read_image, "a picture (PNG, JPEG, PGM, ...)", patch_names, strides=0),
    "series": Reader(read_series, "a .npy or CSV file of numbers", _rows, strides=0),
}


def read_features(path: Path, options: DataOptions, where: str = "") -> np.ndarray:
    """What a file holds, as the options' task reads it; UserError says `where` it was named, if anywhere."""
    reader = READERS[options.task]
    said = f" ({where})" if where else ""
    try:
        if not path.is_file():
            raise UserError("MISSING", f"there is no file {path}{said}; expected {reader.expected}", MISSING)
        found = reader.read(path, options)
        if not np.isfinite(found).all():
            raise ValueError("it has numbers that are not finite")
    except ValueError as error:
        message = f"cannot read {path}{said}: {error}; expected {reader.expected}. Mend it or leave it out"
        raise UserError("BAD_INPUT", message, BAD_DATA) from error
    except OSError as error:
        why = error.strerror or error
        raise UserError("UNREADABLE", f"cannot read {path}{said}: {why}; check its permissions", DISK) from error
    return found.astype(np.float32, copy=False)


def scaled_features(path: Path, options: DataOptions, scale: FeatureScale) -> np.ndarray:
    """For a model that was trained on numbers of this scale."""
    raw = read_features(path, options)
    if raw.shape[1] != scale.features:
        message = (
            f"{path} has steps of {raw.shape[1]} numbers; the model was trained on {scale.features}; give it those"
        )
        raise UserError("FEATURES", message, BAD_DATA)
    return scale.apply(raw)
