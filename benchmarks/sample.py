"""What is trained on and translated: Multi30k en→de, if it lies beside the project, else the built-in dates."""

import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from benchmarks.environments import BENCH, ROOT
from clearhead.checkpoint.model import save_model
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data import dates
from clearhead.data.folders import tokenizer_files
from clearhead.demo import write_corpus
from clearhead.model import SIZES, build

MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
STEPS = 2500  # of the model that translates, about 20 minutes; a worse one runs in circles, and one would measure that


@dataclass(frozen=True)
class Sample:
    """Files of source and target for each purpose."""

    name: str
    languages: tuple[str, str]
    train: list[Path]
    valid: list[Path]
    test: list[Path]
    options: tuple[str, ...]  # of a model of it

    @property
    def sources(self) -> list[str]:
        return self.test[0].read_text(encoding="utf-8").splitlines()

    @property
    def references(self) -> list[str]:
        return self.test[1].read_text(encoding="utf-8").splitlines()


@cache
def sample() -> Sample:
    if MULTI30K.exists():
        train, valid, test = (
            [MULTI30K / f"{split}.{end}" for end in ("en", "de")] for split in ("train", "valid", "test_2016_flickr")
        )
        return Sample("Multi30k en→de, Test2016", ("en", "de"), train, valid, test, ("data.vocabulary=8000",))
    files = write_corpus(BENCH / "dates")
    test = [BENCH / "dates" / f"test.{end}" for end in ("en", "zh")]
    for side, file in enumerate(test):
        lines = [pair[side] for pair in dates.held_out_pairs()[7::20][:1000]]
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Sample("built-in dates en→zh", ("en", "zh"), files[:2], files[2:], test, ())


def trained_model() -> Path:
    """A post-norm `tiny` (as transformers has it), trained the first time; any other may be put in its place."""
    corpus = sample()
    out = BENCH / f"model-{'-'.join(corpus.languages)}"
    if not (out / "model").exists():
        print(f"training a model for {STEPS:,} steps in {out}", file=sys.stderr, flush=True)
        options = ["model.norm=post", "data.joint=true", "training.peak_rate=0.002", f"training.steps={STEPS}"]
        options += corpus.options
        command = [sys.executable, "-m", "clearhead", "train", "--preset", "tiny"]
        command += ["--train", *map(str, corpus.train), "--valid", *map(str, corpus.valid), "--out", str(out)]
        subprocess.run([*command, *(word for one in options for word in ("--set", one))], check=True, cwd=ROOT)
    return find_model(out)


def random_model(size: str, folder: Path, like: Path) -> Path:
    """A model of another size with the tokenizers of one that was trained."""
    config = read_config(like)
    torch.manual_seed(1)
    options = replace(
        SIZES[size],
        source_vocabulary=config["model"]["source_vocabulary"],
        target_vocabulary=config["model"]["target_vocabulary"],
    )
    files = {file.name: file.read_bytes() for file in tokenizer_files(like)}
    save_model(folder, build(options).eval(), {"data": config["data"]}, files)
    return folder
