"""A model folder made in no time: random weights, so that its translations are nonsense, but always the same."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoint.model import save_model
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import Words
from clearhead.decoding import DecodingOptions
from clearhead.model import TransformerOptions
from clearhead.model.transformer import Transformer
from clearhead.translator import Translator, load

WORDS = ["abc", "head", "a", "bad", "cabbage", "j", "dig", "big", "cage"]
DECODING = DecodingOptions(beam=2, max_length=7)


def write_model(
    folder: Path,
    decoding: DecodingOptions = DECODING,
    languages: tuple[str, str] = ("en", "zh"),
    seed: int = 5,
    **about: Any,
) -> Path:
    """English to Chinese by name, words to the same words in fact."""
    tokenizer = Words(WORDS)
    torch.manual_seed(seed)
    sizes = TransformerOptions(
        len(tokenizer), len(tokenizer), 14, 7, feed_forward=13, encoder_blocks=1, decoder_blocks=1
    )
    data = DataOptions(tokenizer="words", source_language=languages[0], target_language=languages[1])
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = folder.with_name(f"{folder.name}-files")
    files.mkdir()
    tokenizer.save(files, "source")
    model = Transformer(sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))  # else all sources get the same translation
    sections = {"data": asdict(data), "decoding": asdict(decoding), "about": about}
    save_model(folder, model, sections, {"source.json": (files / "source.json").read_bytes()})
    return folder


def make_translator(folder: Path, decoding: DecodingOptions = DECODING) -> Translator:
    return load(write_model(folder / "model", decoding))
