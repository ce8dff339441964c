"""Where things lie: the tokenizers of a model or a prepared corpus, and the user's cache. No numpy, to start fast."""

import os
from pathlib import Path

from .tokenizer import Tokenizer, load


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Of source and target; the same one if the vocabulary is joint."""
    source = load(folder, "source")
    return source, load(folder, "target") if _file_of(folder, "target") else source


def tokenizer_files(folder: Path) -> list[Path]:
    """One file for a joint vocabulary, two for separate ones."""
    return [file for side in ("source", "target") if (file := _file_of(folder, side))]


def _file_of(folder: Path, side: str) -> Path | None:
    return next((file for ending in ("model", "json") if (file := folder / f"{side}.{ending}").exists()), None)


def default_cache() -> Path:
    """CLEARHEAD_CACHE, else the user's cache folder."""
    base = os.environ.get("CLEARHEAD_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearhead"
