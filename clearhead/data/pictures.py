"""Pictures of dates and digit strings, for models that read them: `python -m clearhead.data.pictures FOLDER`.

They are drawn in the fonts of this machine, turned, stretched, blurred, noisy, and dark or pale as scans are. Fonts and
days of the test were never seen in training, nor were those of validation.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clearhead.errors import exit_code_of

from .dates import FIRST, LAST, SPELLINGS, is_held_out, spell
from .fonts import Font, FontShares, font_shares

if TYPE_CHECKING:
    from PIL import Image

CHARACTERS = "0123456789ADFJMNOSTWabcdefghilmnoprstuvy"  # of digits, months and weekdays
LONGEST = 20  # characters of a line
DIGITS = 1, 10  # of a digit string; what a model learns from short ones helps it with long ones
DATES = 0.5  # the share of lines that are dates


@dataclass(frozen=True)
class PictureOptions:
    """How many pictures there are, and how far they stray from print."""

    train: int = 12_000
    valid: int = 300
    test: int = 600
    seed: int = 1
    height: int = 32  # pixels
    degrees: float = 1.5  # turned at most by this
    stretch: float = 0.1  # made wider or narrower at most by this share
    margin: float = 0.1  # above, below and beside the ink, at most this share of its height
    blur: float = 0.8  # at most, in pixels
    noise: float = 15.0  # at most, of 255: the deviation of a pixel


def write_pictures(folder: Path, options: PictureOptions, fonts: FontShares) -> list[Path]:
    """The manifests train.tsv, valid.tsv and test.tsv, with their pictures in folders beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    manifests = []
    for number, (name, count) in enumerate(
        [("train", options.train), ("valid", options.valid), ("test", options.test)]
    ):
        (folder / name).mkdir(exist_ok=True)
        rows = []
        for place in range(count):
            rng = np.random.default_rng([options.seed, number, place])
            text = random_line(rng, held_out=name != "train")
            path = f"{name}/{place:05}.png"
            draw(text, random_font(rng, getattr(fonts, name)), rng, options).save(folder / path)
            rows.append(f"{path}\t{text}\n")
        manifests.append(folder / f"{name}.tsv")
        manifests[-1].write_text("".join(rows), encoding="utf-8")
    names = {share: sorted({font.family for font in some}) for share, some in vars(fonts).items()}
    about = {"options": asdict(options), "fonts": names}
    (folder / "pictures.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return manifests


def random_line(rng: np.random.Generator, held_out: bool) -> str:
    """A date as people write it, or digits."""
    if rng.random() >= DATES:
        return "".join(map(str, rng.integers(0, 10, rng.integers(DIGITS[0], DIGITS[1], endpoint=True))))
    while True:
        day = FIRST + timedelta(days=int(rng.integers((LAST - FIRST).days + 1)))
        text = spell(day, int(rng.integers(len(SPELLINGS))))
        if len(text) <= LONGEST and _belongs(day, held_out):
            return text


def random_font(rng: np.random.Generator, fonts: Sequence[Font]) -> Path:
    """Any maker first, then any font of it: some have twenty, some have one."""
    makers = sorted({font.maker for font in fonts})
    maker = makers[rng.integers(len(makers))]
    some = [font for font in fonts if font.maker == maker]
    return some[rng.integers(len(some))].path


def draw(text: str, font: Path, rng: np.random.Generator, options: PictureOptions) -> "Image.Image":
    """A grey picture of one line, `height` pixels high."""
    from PIL import Image, ImageFilter

    ink = _ink(text, font, 2 * options.height)
    turned = ink.rotate(rng.uniform(-1, 1) * options.degrees, Image.Resampling.BICUBIC, expand=True)
    framed = _framed(turned, rng.uniform(0.02, options.margin, 4))
    width = framed.width * options.height / framed.height * (1 + rng.uniform(-1, 1) * options.stretch)
    small = framed.resize((max(1, round(width)), options.height), Image.Resampling.BILINEAR)
    soft = small.filter(ImageFilter.GaussianBlur(rng.uniform(0, options.blur)))
    dark, light = rng.uniform(0, 90), rng.uniform(150, 255)
    pixels = light + (dark - light) / 255 * np.asarray(soft, np.float64)
    pixels += rng.normal(0, rng.uniform(0, options.noise), pixels.shape)
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


def _ink(text: str, font: Path, size: int) -> "Image.Image":
    """The line alone, white on black, without a margin."""
    from PIL import Image, ImageDraw, ImageFont

    face = ImageFont.truetype(font, size)
    left, top, right, bottom = face.getbbox(text)
    image = Image.new("L", (max(1, round(right - left)), max(1, round(bottom - top))))
    ImageDraw.Draw(image).text((-left, -top), text, fill=255, font=face)
    return image


def _framed(ink: "Image.Image", shares: np.ndarray) -> "Image.Image":
    """With margins left, above, right and below, each a share of the height."""
    from PIL import Image

    left, above, right, below = (round(share * ink.height) for share in shares)
    image = Image.new("L", (left + ink.width + right, above + ink.height + below))
    image.paste(ink, (left, above))
    return image


def _belongs(day: date, held_out: bool) -> bool:
    return is_held_out(day) == held_out


def main(arguments: Sequence[str]) -> int:
    """Write the pictures that the command line asks for, and say with which fonts."""
    parser = argparse.ArgumentParser(
        prog="python -m clearhead.data.pictures", description="Pictures of dates and digits"
    )
    parser.add_argument("folder", type=Path)
    for name, value in asdict(PictureOptions()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default: {value}")
    given = vars(parser.parse_args(arguments))
    folder = given.pop("folder")
    fonts = font_shares(CHARACTERS)
    for share, some in vars(fonts).items():
        print(f"{share}: {len(some)} fonts by {', '.join(sorted({font.maker for font in some}))}", file=sys.stderr)
    for manifest in write_pictures(folder, PictureOptions(**given), fonts):
        print(manifest)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: main(sys.argv[1:])))
