"""Clearhead, JoeyNMT, Hugging Face's Seq2SeqTrainer and Eole, each trained for so many minutes on the same pairs.

All see the same text; ours makes its own vocabulary, the others get one of SentencePiece. Our minutes hold all that
comes before the model: tokenizer, plan, validations. Of the others neither the tokenizer counts nor the short runs
that tell how many updates fit; of nobody the translation of the test set.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentencepiece import SentencePieceTrainer

from benchmarks.environments import ROOT, python_of
from benchmarks.peers import PeerError

SYSTEMS = {"Clearhead": "", "JoeyNMT": "joeynmt", "transformers": "transformers", "Eole": "eole"}


@dataclass(frozen=True)
class Vocabulary:
    """Of the peers."""

    words: int
    model_type: str = "bpe"


def write_corpus(folder: Path, splits: Mapping[str, tuple[Sequence[Path], int | None]], vocabulary: Vocabulary) -> Path:
    """train, valid and test in .src and .tgt, at most so many lines of each, and a joint SentencePiece model."""
    if (folder / "joint.model").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, (files, most) in splits.items():
        for file, end in zip(files, ("src", "tgt"), strict=True):
            lines = file.read_text(encoding="utf-8").split("\n")[:-1]
            (folder / f"{name}.{end}").write_text("".join(f"{line}\n" for line in lines[:most]), encoding="utf-8")
    SentencePieceTrainer.train(
        input=[str(folder / "train.src"), str(folder / "train.tgt")],
        model_prefix=str(folder / "joint"),
        vocab_size=vocabulary.words,
        model_type=vocabulary.model_type,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        byte_fallback=vocabulary.model_type == "bpe",
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    return folder


def train(system: str, corpus: Path, minutes: float, seed: int, out: Path, extra: Sequence[str] = ()) -> list[str]:
    """What the model says of the test set, beam 5; `extra` are words of our command. Raises PeerError."""
    if system == "Clearhead":
        return _ours(corpus, minutes, seed, out, extra)
    name = SYSTEMS[system]
    command = [str(python_of(name)), "-m", f"benchmarks.peers.train_{name}", str(corpus), f"{minutes:g}", str(seed)]
    ran = subprocess.run([*command, str(out)], capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode:
        said = [line for line in ran.stderr.splitlines() if line.strip()]
        raise PeerError(f"ended with {ran.returncode}: {said[-1] if said else 'it said nothing'}")
    return (out / "test.hyp").read_text(encoding="utf-8").split("\n")[:-1]


def _ours(corpus: Path, minutes: float, seed: int, out: Path, extra: Sequence[str]) -> list[str]:
    clearhead = [sys.executable, "-m", "clearhead"]
    files = ["--train", str(corpus / "train.src"), str(corpus / "train.tgt")]
    files += ["--valid", str(corpus / "valid.src"), str(corpus / "valid.tgt")]
    options = ["--minutes", f"{minutes:g}", "--set", f"training.seed={seed}", "--out", str(out)]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*clearhead, "train", *extra, *files, *options], check=True, env=here)
    command = [*clearhead, "translate", str(out), str(corpus / "test.src"), "--beam", "5"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=here).stdout.split("\n")[:-1]
