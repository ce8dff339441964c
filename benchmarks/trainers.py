"""Clearhead, JoeyNMT, Hugging Face's Seq2SeqTrainer and Eole, each trained for so many minutes on the same pairs.

All see the same text; ours makes its own vocabulary, the others get one of SentencePiece. Our minutes hold all that
comes before the model: tokenizer, plan, validations. Of the others neither the tokenizer counts nor the short runs
that tell how many updates fit; of nobody the translation of the test set.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceTrainer

from benchmarks.environments import ROOT, python_of
from benchmarks.peers import FEW, PeerError, Sizes

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
    _peer(system, [str(corpus), f"{minutes:g}", str(seed), str(out)])
    return (out / "test.hyp").read_text(encoding="utf-8").split("\n")[:-1]


def pace(system: str, corpus: Path, sizes: Sizes, out: Path) -> float:
    """Target tokens per second of a peer that trains from files, once it is going. Raises PeerError."""
    _peer(system, [str(corpus), "0", "1", str(out), json.dumps(asdict(sizes))])
    return json.loads((out / "pace.json").read_text(encoding="utf-8"))["tokens_per_second"]


def our_pace(files: Sequence[str], options: Sequence[str], steps: int, out: Path) -> tuple[float, list[float]]:
    """Of `clearhead train` with so many steps, once it is going; and the loss of each step."""
    whole = [f"training.steps={steps}", f"training.validate_every={steps}", f"training.save_every={steps}"]
    command = [sys.executable, "-m", "clearhead", "train", *files, "--out", str(out)]
    command += [word for option in [*options, *whole] for word in ("--set", option)]
    reached: dict[int, float] = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and steps not in reached:
            for event in _steps(out):
                reached.setdefault(event["step"], time.perf_counter())
            time.sleep(0.02)
    events = _steps(out)
    if process.returncode or len(events) < steps or not {FEW, steps} <= reached.keys():
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode} after {len(events)} steps")
    tokens = sum(event["tokens"] for event in events[FEW:])
    return tokens / (reached[steps] - reached[FEW]), [event["loss"] for event in events]


def _steps(out: Path) -> list[dict[str, Any]]:
    """What the log has of whole lines."""
    log = out / "log.jsonl"
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    return [event for event in map(json.loads, lines) if "tokens" in event]


def _peer(system: str, words: list[str]) -> None:
    name = SYSTEMS[system]
    command = [str(python_of(name)), "-m", f"benchmarks.peers.train_{name}", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode:
        said = [line for line in ran.stderr.splitlines() if line.strip()]
        raise PeerError(f"ended with {ran.returncode}: {said[-1] if said else 'it said nothing'}")


def _ours(corpus: Path, minutes: float, seed: int, out: Path, extra: Sequence[str]) -> list[str]:
    clearhead = [sys.executable, "-m", "clearhead"]
    files = ["--train", str(corpus / "train.src"), str(corpus / "train.tgt")]
    files += ["--valid", str(corpus / "valid.src"), str(corpus / "valid.tgt")]
    options = ["--minutes", f"{minutes:g}", "--set", f"training.seed={seed}", "--out", str(out)]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*clearhead, "train", *extra, *files, *options], check=True, env=here)
    command = [*clearhead, "translate", str(out), str(corpus / "test.src"), "--beam", "5"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=here).stdout.split("\n")[:-1]
