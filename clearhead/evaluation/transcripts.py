"""How well a model writes down what it hears: word and character error rate of a manifest, how sure, and how fast."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from clearhead.data.corpus import Report
from clearhead.data.manifest import file_of, read_manifest
from clearhead.errors import BAD_DATA, UserError
from clearhead.progress import progress
from clearhead.translator.transcribing import load_transcriber, transcribe

from .scores import edits, is_same, spoken_characters
from .significance import RESAMPLES, SEED, Counts, interval

NAMES = {"wer": "WER", "cer": "CER", "exact_match": "exact match"}


@dataclass(frozen=True)
class Transcripts:
    """Of a whole test set; rates are in percent, exact match is a share."""

    model: str
    files: int
    beam: int
    wer: float
    cer: float
    exact_match: float
    intervals: dict[str, tuple[float, float]]
    seconds: float
    files_per_second: float

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "bootstrap": {"resamples": RESAMPLES, "seed": SEED}}

    def lines(self) -> list[str]:
        """For people."""
        speed = f"{self.seconds:,.1f} s, {self.files_per_second:,.1f} files/s"
        rows = [f"{self.model} (native, beam {self.beam}): {self.files:,} files, {speed}"]
        for key, name in NAMES.items():
            scale = 100 if key == "exact_match" else 1
            low, high = (f"{scale * end:.1f}" for end in self.intervals[key])
            rows.append(f"  {name:<12} {scale * getattr(self, key):5.1f} %  95 %: {low} to {high}")
        return [*rows, "", f"95 %: by bootstrap, {RESAMPLES:,} times, seed {SEED}. WER and CER: lower is better."]


def evaluate_transcripts(model: Path, files: Sequence[Path], beam: int | None = None) -> Transcripts:
    """Transcribe the files of a manifest and compare with its text."""
    pairs = list(read_manifest(files, Report()))
    if not pairs:
        raise UserError("NOTHING_LEFT", f"{files[0]} names no file; expected lines of path, tab, text", BAD_DATA)
    translator = load_transcriber(model)
    options = translator.options(beam)
    texts: list[str] = []
    started = perf_counter()
    with progress("transcribing") as bar:
        for best, *_ in transcribe(translator, [file_of(files[0], pair.source) for pair in pairs], options):
            texts.append(best.text)
            bar.update(len(texts), len(pairs), "files")
    seconds = perf_counter() - started
    counts = count_errors(texts, [pair.target for pair in pairs])
    scores = {name: one.score for name, one in counts.items()}
    intervals = {name: interval(one) for name, one in counts.items()}
    return Transcripts(
        model=str(model),
        files=len(pairs),
        beam=options.beam,
        **scores,
        intervals=intervals,
        seconds=seconds,
        files_per_second=len(pairs) / seconds,
    )


def count_errors(texts: Sequence[str], references: Sequence[str]) -> dict[str, Counts]:
    """In each text: edits of words, of characters, and whether it is right; each with how many there are."""

    def rate(parts: Any) -> Counts:
        rows = [
            [edits(parts(ours), parts(theirs)), len(parts(theirs))]
            for ours, theirs in zip(texts, references, strict=True)
        ]
        return Counts(np.array(rows, float), lambda total: float(100 * total[0] / max(1, total[1])))

    same = [[is_same(ours, theirs), 1] for ours, theirs in zip(texts, references, strict=True)]
    exact = Counts(np.array(same, float), lambda total: float(total[0] / total[1]))
    return {"wer": rate(str.split), "cer": rate(spoken_characters), "exact_match": exact}
