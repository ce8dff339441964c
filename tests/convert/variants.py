"""Model folders of any variant, with the smallest tokenizers there are."""

import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from clearhead.checkpoint.model import Model, save_model
from clearhead.data.tokenizer import BOS, EOS, PAD, SPECIALS, Words
from clearhead.model import ModelOptions
from tests.samples import PAPER, make_model


def save_variant(folder: Path, options: ModelOptions, seed: int = 7) -> Model:
    """The model, which was written to `folder`."""
    model = make_model(options, seed)
    save(folder, model)
    return model


def save(folder: Path, model: Model, unsaid: str = "") -> None:
    options = model.options
    sizes = {"source": options.source_vocabulary, "target": options.target_vocabulary}
    with tempfile.TemporaryDirectory() as scratch:
        for side, size in sizes.items():
            Words([f"{side}{i}" for i in range(SPECIALS, size)]).save(Path(scratch), side)
        files = {f"{side}.json": (Path(scratch) / f"{side}.json").read_bytes() for side in sizes}
    save_model(folder, model, {"target": {"unsaid": unsaid}} if unsaid else {}, files)


def save_talkative(folder: Path, seed: int = 3, unsaid: str = "") -> Model:
    """A model like a trained one: sources differ in their targets, which end, and PAD and BOS are unlikely."""
    model = make_model(replace(PAPER, output_bias=True), seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(2.0)
        model.output.bias[[PAD, BOS]] = -30.0
        model.output.bias[EOS] = 1.5
    save(folder, model, unsaid)
    return model
