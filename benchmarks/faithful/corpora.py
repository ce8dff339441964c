"""The corpora that models are asked about, and a recipe for each model that is not given."""

import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import BENCH, ROOT
from benchmarks.quality import DATA as BESIDE

DATA = Path(os.environ.get("CLEARHEAD_BENCH_DATA", BESIDE))  # for a tree that does not lie beside the data
FLICKR = ("test_2016_flickr", "test_2017_flickr")
FINAL = re.compile(r"[.!?。！？…][\"'”’»)]*$")


@dataclass(frozen=True)
class Corpus:
    """`steps` and `options` train the model that is asked about, in minutes; enough to have something to lose."""

    folder: str
    languages: tuple[str, str]
    tests: tuple[str, ...]
    steps: int
    options: tuple[str, ...]
    recipe: str = ""

    def pairs(self, *splits: str) -> list[tuple[str, str]]:
        """Distinct sources with the first reference of each; of the test sets if no split is named."""
        found: dict[str, str] = {}
        for split in splits or self.tests:
            source, target = (
                (DATA / self.folder / f"{split}.{end}").read_text(encoding="utf-8").split("\n")
                for end in self.languages
            )
            for one, other in zip(source, target, strict=True):
                if one.strip() and other.strip():
                    found.setdefault(one.strip(), other.strip())
        return list(found.items())


SHORT = ("training.peak_rate=4e-3", "training.tokens_per_batch=2048")
CORPORA = {
    "ende": Corpus("tatoeba-en-de", ("en", "de"), ("test",), 4000, (), "tatoeba-en-de"),
    "enzh": Corpus("tatoeba-en-zh", ("en", "zh"), ("test",), 4000, ("model.dropout=0.2",), "tatoeba-en-zh"),
    "m30k": Corpus("multi30k", ("en", "de"), FLICKR, 4000, ("model.dropout=0.2", "data.vocabulary=4000", *SHORT)),
    "help": Corpus("help-en-de", ("en", "de"), ("test",), 4000, ("model.dropout=0.1", "data.vocabulary=4000", *SHORT)),
}


def model_of(name: str, seed: int) -> Path:
    """A run folder of this corpus, trained the first time."""
    corpus, out = CORPORA[name], BENCH / f"faithful-{name}-{seed}"
    if not (out / "model").exists():
        print(f"training {name} for {CORPORA[name].steps:,} steps in {out}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "clearhead", "train", *([corpus.recipe] if corpus.recipe else [])]
        command += [] if corpus.recipe else ["--preset", "tiny"]
        for split in ("train", "valid"):
            command += [f"--{split}", *(str(DATA / corpus.folder / f"{split}.{end}") for end in corpus.languages)]
        options = [f"training.steps={corpus.steps}", "training.patience=0", f"training.seed={seed}", *corpus.options]
        command += [word for option in options for word in ("--set", option)]
        subprocess.run([*command, "--out", str(out)], check=True, cwd=ROOT)
    return out


def draw_texts(pairs: list[tuple[str, str]], many: int, least: int, most: int, seed: int) -> list[list[int]]:
    """So many texts of `least` to `most` pairs: every pair once before any comes again, none twice in a text."""
    chance = random.Random(f"texts {seed}")
    left: list[int] = []
    texts = []
    for _ in range(many):
        size = chance.randint(least, min(most, len(pairs)))
        text: list[int] = []
        while len(text) < size:
            if not left:
                left = list(range(len(pairs)))
                chance.shuffle(left)
            one = left.pop()
            if one not in text:
                text.append(one)
        texts.append(text)
    return texts
