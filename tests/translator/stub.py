"""A translator without a model: its engine copies, and counts what it is asked; every character is a token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import LEARNED, Characters
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.decoding.calibration import Calibration
from clearhead.engines import in_order
from clearhead.model.options import TransformerOptions
from clearhead.translator import Translator

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?-äöüß你好世界我们。，！？"
TOKENIZER = Characters(LETTERS)
CALIBRATION = Calibration([-2.0, -1.0], [0.1, 0.9], low=-1.5, length_factor=1.2, length_offset=7.0)

Ids = list[int]
Rule = Callable[[Ids, DecodingOptions], Ids]


class StubEngine:
    """Says of each source what its rule says, with the score that `score_of` gives; batches are of five."""

    name = "native"
    aligns = False
    works_ahead = False
    expects_more = False

    def __init__(
        self, rule: Rule = lambda source, _: source, score_of: Callable[[Ids], float] = lambda _: -0.5
    ) -> None:
        self.rule, self.score_of = rule, score_of
        self.asked: list[str] = []
        self.seen: list[tuple[DecodingOptions, Demand]] = []
        self.missing: str | None = None

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:
        del options, demands
        return self.missing

    def translate(
        self, sources: Sequence[Ids], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]:
        return in_order(len(sources), self.translate_batches(sources, options, demands))

    def translate_batches(
        self, sources: Sequence[Ids], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        for start in range(0, len(order), 5):
            places = order[start : start + 5]
            some = [demands[place] if demands else Demand() for place in places]
            for place, demand in zip(places, some, strict=True):
                self.asked.append(TOKENIZER.decode(sources[place]))
                self.seen.append((options, demand))
            found = zip(places, some, strict=True)
            yield places, [self._hypotheses(sources[place], options, demand) for place, demand in found]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        del sources
        return [[-0.5] * (len(target) + 1) for target in targets]

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Each token looks at the one in its place, and those that are too many at EOS."""
        return [_diagonal(source, target) for source, target in zip(sources, targets, strict=True)]

    def steps(self, source: Ids, limit: int) -> Iterator[int]:
        yield from self.rule(source, DecodingOptions(beam=1))[:limit]

    def _hypotheses(self, source: Ids, options: DecodingOptions, demand: Demand) -> list[Hypothesis]:
        best = self.rule(source, options)
        score = self.score_of(source)
        found = [Hypothesis(best[: len(best) - n], score - n) for n in range(options.n_best)]
        if demand.aligned:
            return [replace(one, alignment=_diagonal(source, one.tokens)) for one in found]
        return found


def _diagonal(source: Ids, target: Ids) -> np.ndarray:
    weights = np.zeros((len(target) + 1, len(source) + 1), np.float32)
    weights[range(len(target) + 1), [*(min(t, len(source)) for t in range(len(target))), len(source)]] = 1
    return weights


def stub_translator(
    engine: StubEngine | None = None, calibrated: bool = False, lines: dict[str, Any] | None = None, **data: Any
) -> Translator:
    size = len(TOKENIZER)
    config: dict[str, Any] = {
        "model": {"kind": "transformer", **asdict(TransformerOptions(size, size))},
        "data": asdict(DataOptions(**{"max_tokens": 97, **data})),
    }
    if lines:
        config["lines"] = lines
    if calibrated:
        config["calibration"] = asdict(CALIBRATION)
    return Translator(engine or StubEngine(), TOKENIZER, TOKENIZER, DecodingOptions(), config)


def forgets_bytes(source: Ids, _: DecodingOptions) -> Ids:
    """As models do that never saw such characters: nothing that comes after one is translated."""
    known = next((place for place, i in enumerate(source) if i < LEARNED), len(source))
    return source[:known]
