"""The fonts of this machine that can be read, and which of them a model may not see before it is tested.

Fonts of one maker ("DejaVu Sans", "DejaVu Serif Bold") share their shapes, so they are held out together.
"""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearhead.errors import MISSING, UserError

FOLDERS = tuple(
    Path(folder).expanduser()
    for folder in (
        "/usr/share/fonts",
        "/usr/local/share/fonts",
        "~/.local/share/fonts",
        "~/.fonts",
        "/System/Library/Fonts",
        "/Library/Fonts",
        "~/Library/Fonts",
    )
)
ENDINGS = (".ttf", ".otf")
PACKAGES = (  # of Debian and Ubuntu; each has at least one maker, together about twenty
    "fonts-dejavu-core fonts-liberation fonts-freefont-ttf fonts-urw-base35 fonts-lato fonts-open-sans "
    "fonts-roboto-unhinted fonts-cantarell fonts-crosextra-caladea fonts-linuxlibertine fonts-inconsolata fonts-hack "
    "fonts-quicksand fonts-comfortaa fonts-oldstandard fonts-cabin fonts-ebgaramond fonts-jura fonts-courier-prime "
    "fonts-anonymous-pro fonts-vollkorn fonts-sil-andika fonts-noto-mono fonts-mononoki"
)
LEAST_MAKERS = 4  # two to train on, one to validate on, one to test on
HELD_OUT = 6  # of so many makers one is for validation and one for the test
LEGIBLE = 0.5  # the share of a font's letters that must look most like the same letter in other fonts
GLYPH = 16  # pixels, across and down, in which letters are compared


@dataclass(frozen=True)
class Font:
    path: Path
    family: str

    @property
    def maker(self) -> str:
        """What a family's name begins with."""
        return self.family.split()[0]


@dataclass(frozen=True)
class FontShares:
    train: list[Font]
    valid: list[Font]
    test: list[Font]


def font_shares(characters: str, folders: Sequence[Path] = FOLDERS) -> FontShares:
    """All fonts that have these characters; which maker belongs where depends on the names alone."""
    fonts = legible(find_fonts(folders), characters)
    makers = sorted({font.maker for font in fonts}, key=lambda name: hashlib.blake2b(name.encode()).digest())
    if len(makers) < LEAST_MAKERS:
        raise UserError(
            "FONTS",
            f"found fonts of {len(makers)} makers ({', '.join(makers) or 'none'}) in {', '.join(map(str, folders))}; "
            f"expected at least {LEAST_MAKERS}, because some are held out. Install more, such as: "
            f"{'apt-get install ' + PACKAGES if sys.platform == 'linux' else 'DejaVu, Liberation and Lato'}",
            MISSING,
        )
    held_out = -(-len(makers) // HELD_OUT)
    valid, test = makers[:held_out], makers[held_out : 2 * held_out]
    return FontShares(
        [font for font in fonts if font.maker not in (*valid, *test)],
        [font for font in fonts if font.maker in valid],
        [font for font in fonts if font.maker in test],
    )


def find_fonts(folders: Sequence[Path]) -> list[Font]:
    """Every font file in these folders that FreeType can open, in the order of their paths."""
    from PIL import ImageFont

    fonts = []
    for path in sorted({path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in ENDINGS}):
        try:
            family = ImageFont.truetype(path, GLYPH).getname()[0]
        except OSError:
            continue  # FreeType does not know it, or it is damaged
        if family and family.strip():
            fonts.append(Font(path, family))
    return fonts


def legible(fonts: Sequence[Font], characters: str) -> list[Font]:
    """Those in which most characters look as they do in most fonts: no symbols, no ornaments, no other script."""
    if not fonts:
        return []
    shapes = np.stack([_shapes(font.path, characters) for font in fonts])  # (fonts, characters, pixels)
    typical = _standard(np.median(shapes, axis=0))
    alike = np.einsum("fcp,dp->fcd", shapes, typical).argmax(axis=-1)  # the character that each one resembles most
    letters = np.array(list(characters.lower()))  # c and C are told apart by their size alone
    share = (letters[alike] == letters).mean(axis=1)
    return [font for font, one in zip(fonts, share, strict=True) if one >= LEGIBLE]


def _shapes(path: Path, characters: str) -> np.ndarray:
    """(characters, pixels): each glyph stretched to one size; nothing where the font has none."""
    from PIL import Image, ImageFont

    font = ImageFont.truetype(path, 24)
    shapes = np.zeros((len(characters), GLYPH * GLYPH))
    for place, character in enumerate(characters):
        mask = font.getmask(character, mode="L")
        if all(mask.size):
            glyph = Image.frombytes("L", mask.size, bytes(mask))
            shapes[place] = np.asarray(glyph.resize((GLYPH, GLYPH), Image.Resampling.BILINEAR)).ravel()
    return _standard(shapes)


def _standard(shapes: np.ndarray) -> np.ndarray:
    """Mean 0 and length 1, so that a product of two is their correlation."""
    centred = shapes - shapes.mean(axis=-1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-9)
