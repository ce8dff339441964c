"""One report on one model or several: scores with their intervals, what differs significantly, and speed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.decoding import DecodingOptions
from clearhead.errors import USAGE, UserError
from clearhead.progress import progress
from clearhead.translator import Translator, load

from .parallel import Parallel, read_parallel
from .scores import BLEU_TOKENIZERS
from .significance import RESAMPLES, SEED, TRIALS, Counts, count, interval, p_value

NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "error_rate": "error rate", "exact_match": "exact match"}


@dataclass(frozen=True)
class Speed:
    """Of translating alone: the model was loaded before. Tokens are the translations', in the model's vocabulary."""

    seconds: float
    sentences_per_second: float
    tokens_per_second: float


@dataclass(frozen=True)
class Result:
    """What one model did; `scores`, `intervals` and `p_values` by the keys of NAMES."""

    model: str
    engine: str
    beam: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    speed: Speed
    p_values: dict[str, float] = field(default_factory=dict)  # that it is no better or worse than the first model

    def to_dict(self) -> dict[str, Any]:
        values = {"model": self.model, "engine": self.engine, "beam": self.beam, **self.scores}
        values |= {"intervals": {name: list(ends) for name, ends in self.intervals.items()}, **asdict(self.speed)}
        return values | ({"p_values": self.p_values} if self.p_values else {})


@dataclass(frozen=True)
class Evaluation:
    """The model that was asked about, and the baselines that it is compared with."""

    sentences: int
    left_out: int  # pairs of which one side is empty or no UTF-8
    language: str
    signatures: dict[str, str]
    result: Result
    baselines: list[Result]

    def to_dict(self) -> dict[str, Any]:
        """For --json: the model's own numbers are on top."""
        return {
            **self.result.to_dict(),
            "signatures": self.signatures,
            "sentences": self.sentences,
            "left_out": self.left_out,
            "language": self.language,
            "bootstrap": {"resamples": RESAMPLES, "seed": SEED},
            **({"baselines": [result.to_dict() for result in self.baselines]} if self.baselines else {}),
        }

    def lines(self) -> list[str]:
        """For people."""
        left_out = f"; {self.left_out:,} left out: a side is empty or no UTF-8" if self.left_out else ""
        lines = [f"{self.sentences:,} pairs, target language {self.language}{left_out}"]
        for result in (self.result, *self.baselines):
            lines += ["", *_result_lines(result)]
        for other in self.baselines:
            lines += ["", *_difference_lines(self.result, other)]
        lines += ["", f"95 %: by bootstrap, {RESAMPLES:,} times, seed {SEED}. TER and error rate: lower is better."]
        if self.baselines:
            lines.append(f"p: of so large a difference by chance alone, approximate randomisation, {TRIALS:,} trials.")
        return lines + [f"{NAMES[name]}: {signature}" for name, signature in self.signatures.items()]


def task_of(model: Path) -> str:
    """What a model was trained for."""
    return read_config(find_model(model)).get("data", {}).get("task", "translate")


def require_alone(task: str, baselines: Sequence[Path] | None, tokenize: str | None) -> None:
    """That nothing was asked for that only translations have."""
    name = "--baseline" if baselines else "--tokenize" if tokenize else None
    if name:
        raise UserError("TASK", f"{name} is for models that translate, not for task={task}; leave it out", USAGE)


def evaluate(
    model: Path,
    files: Sequence[Path],
    baselines: Sequence[Path] = (),
    beam: int | None = None,
    engine: str = "auto",
    tokenize: str | None = None,
) -> Evaluation:
    """Translate a test set and score it; `files` are its source and reference, or one .tsv or .jsonl.

    `tokenize` is BLEU's tokenizer, if it is not to be the one that suits the target language.
    """
    if tokenize is not None and tokenize not in BLEU_TOKENIZERS:
        expected = ", ".join(BLEU_TOKENIZERS)
        raise UserError("TOKENIZER", f"BLEU has no tokenizer {tokenize!r} here; expected one of {expected}", USAGE)
    test = read_parallel(files)
    first, *others = (load(path, engine) for path in (model, *baselines))  # whatever is wrong with them is said first
    language = first.languages[1]
    result, counts = _evaluate(str(model), first, test, beam, language, tokenize)
    compared = []
    for path, translator in zip(baselines, others, strict=True):
        other, other_counts = _evaluate(str(path), translator, test, beam, language, tokenize)
        with progress("comparing") as bar:
            for done, name in enumerate(counts):
                bar.update(done, len(counts), NAMES[name])
                other.p_values[name] = p_value(counts[name], other_counts[name])
        compared.append(other)
    signatures = {name: one.signature for name, one in counts.items() if one.signature}
    return Evaluation(len(test.sources), test.left_out, language, signatures, result, compared)


def _evaluate(
    name: str, translator: Translator, test: Parallel, beam: int | None, language: str, tokenize: str | None
) -> tuple[Result, dict[str, Counts]]:
    options = translator.options(beam)
    translations, seconds = _translate(translator, test.sources, options)
    tokens = sum(len(ids) + 1 for ids in translator.target_tokenizer.encode_many(translations))  # and EOS
    with progress("scoring") as bar:

        def tell(metric: str, done: int) -> None:
            bar.update(done, len(translations), f"sentences, {NAMES[metric]}")

        counts = count(translations, test.references, language, tell, tokenize)
        intervals = {key: interval(one) for key, one in counts.items()}
    return Result(
        name,
        "native" if translator.engine.lacks(options) else translator.engine.name,
        options.beam,
        {key: one.score for key, one in counts.items()},
        intervals,
        Speed(seconds, len(translations) / seconds, tokens / seconds),
    ), counts


def _translate(translator: Translator, sources: list[str], options: DecodingOptions) -> tuple[list[str], float]:
    """The translations, and the seconds they took."""
    translations = [""] * len(sources)
    done = 0
    started = perf_counter()
    with progress("translating") as bar:
        for places, found in translator.stream(sources, options):
            for place, (best, *_) in zip(places, found, strict=True):
                translations[place] = best.text
            done += len(places)
            bar.update(done, len(sources), "sentences")
    return translations, perf_counter() - started


def _result_lines(result: Result) -> list[str]:
    speed = result.speed
    lines = [
        f"{result.model} ({result.engine}, beam {result.beam}): {speed.seconds:,.1f} s, "
        f"{speed.sentences_per_second:,.1f} sentences/s, {speed.tokens_per_second:,.0f} target tokens/s"
    ]
    for key, score in result.scores.items():
        scale, unit = _scale(key)
        low, high = (f"{scale * end:.1f}" for end in result.intervals[key])
        lines.append(f"  {NAMES[key]:<12} {scale * score:5.1f}{unit:<2}  95 %: {low} to {high}")
    return lines


def _difference_lines(result: Result, other: Result) -> list[str]:
    """How much more the model has than the baseline, as the first line says it."""
    lines = [f"{result.model} − {other.model}:"]
    for key, p in other.p_values.items():
        scale, unit = _scale(key)
        difference = scale * (result.scores[key] - other.scores[key])
        lines.append(f"  {NAMES[key]:<12} {difference:+5.1f}{unit:<2}  p = {p:.4f}")
    return lines


def _scale(key: str) -> tuple[int, str]:
    return (100, " %") if key == "exact_match" else (1, "")
