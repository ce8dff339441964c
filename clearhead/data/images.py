"""A picture -> (steps × features): patches in reading order, for models that read sequences.

A picture is made grey and scaled to `image_height`. Patches as high as that are the columns of a line of text. Lower
ones are a grid, row by row, and each of them is told its row and its column by sinusoids beside its pixels, because its
place in the sequence says neither as long as pictures differ in width.
"""

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from clearhead.errors import USAGE, UserError

from .options import DataOptions

if TYPE_CHECKING:
    from PIL import Image

# What decodes pixels and nothing else: EPS, for one, would start another program.
FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
MOST_STEPS = 16_384  # patches; a picture of one row of pixels, scaled, would fill the memory
WAVES = (4.0, 16.0, 64.0, 256.0)  # lengths in patches of the sinusoids that name a row and a column
PLACE_FEATURES = 4 * len(WAVES)  # sine and cosine of row and column


def read_image(path: Path, options: DataOptions) -> np.ndarray:
    """(steps, features) in float32 of a picture file; ValueError if it is none that can be used."""
    grey = _grey(path)
    height = options.image_height
    width = max(1, round(grey.width * height / grey.height))
    rows, columns = grid(width, options)
    if rows * columns > MOST_STEPS:
        found = f"it is {grey.width} × {grey.height} pixels, {rows * columns:,} patches"
        raise ValueError(f"{found}; at most {MOST_STEPS:,} can be read: crop it, or take larger patches")
    scaled = grey.resize((width, height), _pillow().Resampling.BILINEAR)  # over all pixels that become one
    return patches(_even(np.asarray(scaled, np.float32)), options)


def image_features(options: DataOptions) -> int:
    """How many numbers each step has."""
    rows = options.image_height // options.patch_rows
    return options.patch_rows * options.patch_width + (PLACE_FEATURES if rows > 1 else 0)


def grid(width: int, options: DataOptions) -> tuple[int, int]:
    """Rows and columns of patches of a picture that is so wide once it is scaled; the last column may be padded."""
    return options.image_height // options.patch_rows, -(-width // options.patch_width)


def patches(pixels: np.ndarray, options: DataOptions) -> np.ndarray:
    """(image_height, width) in patches: (rows · columns, features), row by row; the last column is repeated."""
    rows, columns = grid(pixels.shape[1], options)
    high, wide = options.patch_rows, options.patch_width
    whole = np.pad(pixels, ((0, 0), (0, columns * wide - pixels.shape[1])), mode="edge")
    cut = whole.reshape(rows, high, columns, wide).transpose(0, 2, 1, 3).reshape(rows * columns, high * wide)
    if rows == 1:
        return np.ascontiguousarray(cut, np.float32)
    return np.concatenate([cut, places(rows, columns)], axis=1, dtype=np.float32)


def places(rows: int, columns: int) -> np.ndarray:
    """(rows · columns, PLACE_FEATURES): sines and cosines of each patch's row, then of its column."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    turns = 2 * np.pi * np.concatenate([row[:, None] / WAVES, column[:, None] / WAVES], axis=1)
    return np.concatenate([np.sin(turns), np.cos(turns)], axis=1)


def patch_names(steps: int, stride: int, options: DataOptions) -> list[str]:
    """Where each patch, or `stride` of them together, stands in the scaled picture: `x12–16`, `y8–16,x12–16`."""
    rows, wide, high = options.image_height // options.patch_rows, options.patch_width, options.patch_rows
    columns = max(1, steps // rows)
    names = []
    for step in range(0, steps, stride):
        row, column = divmod(step, columns)
        across = f"x{column * wide}–{min(column + stride, columns) * wide}"
        names.append(f"y{row * high}–{(row + 1) * high},{across}" if rows > 1 else across)
    return names


def _even(pixels: np.ndarray) -> np.ndarray:
    """The same with mean 0 and variance 1, so that paper and ink may have any brightness; a blank picture is all 0."""
    centred = pixels - pixels.mean(dtype=np.float64)
    spread = centred.std(dtype=np.float64)
    return centred / spread if spread > 0.5 else np.zeros_like(pixels)  # of 255; less is no picture


def _grey(path: Path) -> "Image.Image":
    """The decoded picture, 8 bits of grey, upright, on white where it is transparent."""
    with _opened(path) as image:
        from PIL import ImageOps

        frames = getattr(image, "n_frames", 1)  # still formats do not have it
        if frames > 1:
            raise ValueError(f"it has {frames} pictures, not one")
        if image.mode == "F":
            raise ValueError("its pixels have fractions: save it with 8 bits")
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):  # 16 bits, which convert() would cut at 255
            return _pillow().fromarray((np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
        if upright.has_transparency_data:
            white = _pillow().new("RGBA", upright.size, "white")
            upright = _pillow().alpha_composite(white, upright.convert("RGBA"))
        return upright.convert("L")


@contextmanager
def _opened(path: Path) -> "Iterator[Image.Image]":
    """A picture file, for as long as it is read; whatever can be wrong with one becomes a ValueError."""
    image = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, which nobody asks for
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(path, formats=FORMATS) as opened:
                yield opened
    except (image.DecompressionBombWarning, image.DecompressionBombError) as error:
        most = f"{image.MAX_IMAGE_PIXELS:,} pixels can be read"
        raise ValueError(f"it is too large: at most {most}; scale it down or crop it") from error
    except image.UnidentifiedImageError as error:
        raise ValueError("it is no picture, has no pixels, or is broken where it begins") from error
    except (OSError, SyntaxError, EOFError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's, not the decoder's
        raise ValueError(f"it is broken ({error})") from error


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        message = "Pillow is not installed, which pictures need. Next: pip install 'clearhead[image]'"
        raise UserError("NO_PILLOW", message, USAGE) from error
    return Image
