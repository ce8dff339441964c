"""How likely a model finds given targets: a log-probability for each token, each pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from clearhead.data.corpus import Pair, Report, read_pairs
from clearhead.progress import progress
from clearhead.translator import Translator, load
from clearhead.translator.tasks import require_task

CHUNK = 1024  # pairs scored at once
END = "</s>"


@dataclass(frozen=True)
class PairScore:
    """Of one line of the files; nothing in it if the pair was left out, as one side is empty or no UTF-8."""

    line: int
    pieces: list[str]  # the target's tokens, and the sign of its end
    log_probabilities: list[float]  # of each

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        if not self.pieces:
            return {"line": self.line, "log_probability": None}
        total = sum(self.log_probabilities)
        return {
            "line": self.line,
            "log_probability": total,
            "mean": total / len(self.pieces),
            "tokens": len(self.pieces),
            "pieces": self.pieces,
            "log_probabilities": self.log_probabilities,
        }

    def __str__(self) -> str:
        """Three columns: log-probability of the target, its mean per token, and the tokens, end included."""
        if not self.pieces:
            return ""
        total = sum(self.log_probabilities)
        return f"{total:.4f}\t{total / len(self.pieces):.4f}\t{len(self.pieces)}"


def score_files(model: Path, files: Sequence[Path], engine: str = "native") -> Iterator[PairScore]:
    """One for each line of the files, in their order, as they are done; native's are the exact ones."""
    report = Report()
    for _ in read_pairs(files, report):  # whatever is wrong with the files is said before the work
        pass
    total = report.read
    translator = load(model, engine)
    require_task(translator.task, "translate")
    pairs = read_pairs(files, Report())
    done = 0
    with progress("scoring") as bar:
        while chunk := list(islice(pairs, CHUNK)):
            for score in _score(translator, chunk):
                yield from (PairScore(line, [], []) for line in range(done + 1, score.line))
                yield score
                done = score.line
            bar.update(done, total, "pairs")
    yield from (PairScore(line, [], []) for line in range(done + 1, total + 1))


def _score(translator: Translator, pairs: list[Pair]) -> Iterator[PairScore]:
    sources = translator.source_tokenizer.encode_many([pair.source for pair in pairs])
    targets = translator.target_tokenizer.encode_many([pair.target for pair in pairs])
    for pair, target, scores in zip(pairs, targets, translator.engine.score(sources, targets), strict=True):
        yield PairScore(pair.line, [*translator.target_tokenizer.pieces(target), END], scores)
