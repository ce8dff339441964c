"""A model folder made in no time: random weights, so that its translations are nonsense, but always the same."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoint.model import save_model
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import EOS, Words
from clearhead.decoding import DecodingOptions
from clearhead.model import TransformerOptions
from clearhead.model.transformer import Transformer
from clearhead.translator import Translator, load
from clearhead.versions import has_bfloat16

WORDS = ["abc", "head", "a", "bad", "cabbage", "j", "dig", "big", "cage"]
DECODING = DecodingOptions(beam=2, max_length=7)
SEARCHED = 0.02 if has_bfloat16() else 1e-4  # how far the score of a search may be from that of exact products


def write_model(
    folder: Path,
    decoding: DecodingOptions = DECODING,
    languages: tuple[str, str] = ("en", "zh"),
    seed: int = 5,
    **about: Any,
) -> Path:
    """English to Chinese by name, words to the same words in fact."""
    data = DataOptions(tokenizer="words", source_language=languages[0], target_language=languages[1])
    return _write(folder, data, decoding, seed, {"encoder_blocks": 1}, about)


def write_generator(folder: Path, **sizes: Any) -> Path:
    """A decoder alone, which goes on in the same words; with an output bias it never ends."""
    return _write(folder, DataOptions(tokenizer="words", task="generate"), DECODING, 5, {"encoder_blocks": 0, **sizes})


def _write(
    folder: Path,
    data: DataOptions,
    decoding: DecodingOptions,
    seed: int,
    sizes: dict[str, Any],
    about: dict[str, Any] | None = None,
) -> Path:
    tokenizer = Words(WORDS)
    torch.manual_seed(seed)
    options = TransformerOptions(len(tokenizer), len(tokenizer), 14, 7, feed_forward=13, decoder_blocks=1, **sizes)
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = folder.with_name(f"{folder.name}-files")
    files.mkdir()
    tokenizer.save(files, "source")
    model = Transformer(options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))  # else all sources get the same translation
        if model.output.bias is not None:
            model.output.bias[EOS] = -1e4
    sections = {"data": asdict(data), "decoding": asdict(decoding), "about": about or {}}
    save_model(folder, model, sections, {"source.json": (files / "source.json").read_bytes()})
    return folder


def make_translator(folder: Path, decoding: DecodingOptions = DECODING) -> Translator:
    return load(write_model(folder / "model", decoding))
