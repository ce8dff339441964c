"""What the engine process does with a batch: rows in, as many answers out, in slices between which others get a turn.

A message has `batch` (its number), `what` (a name of TASKS), `model`, `options`, `rows` and `lane`. While a batch of
the long lane is being done, one of the short lane is done between two of its slices, and while a text is being
written, one of either: no document and no stream holds up the sentences of the others.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.engines import Engine, in_order
from clearhead.errors import BAD_DATA, UserError
from clearhead.failpoint import failpoint
from clearhead.inspection.change import Change
from clearhead.model.options import RNNOptions
from clearhead.translator import Translation, Translator
from clearhead.translator.generating import Wishes, mean_log_probability, write

from .messages import LANES, Message

if TYPE_CHECKING:
    import numpy as np

END = "</s>"
FIRST_SPEED = 2_000.0  # source tokens times beam per second, until it is measured
MOST_SCORED = 1_024  # tokens of one side of a pair: the memory for it grows with their square


class UnwantedError(Exception):
    """Nobody waits for this batch any more."""


class Inbox:
    """Batches that have come and not been begun, and the numbers of those that are not wanted any more."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._changed = threading.Condition()
        self._cancelled: set[int] = set()

    def put(self, message: Message) -> None:
        with self._changed:
            if message["kind"] == "cancel":
                self._cancelled.add(message["batch"])
            else:
                self._waiting.append(message)
                self._changed.notify()

    def take(self) -> Message:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            return self._waiting.popleft()

    def take_before(self, lane: str) -> Message | None:
        """One of a lane that may pass this one, if there is one; without waiting."""
        quicker = LANES[: LANES.index(lane)]
        with self._changed:
            place = next((i for i, message in enumerate(self._waiting) if message["lane"] in quicker), None)
            if place is None:
                return None
            message = self._waiting[place]
            del self._waiting[place]
            return message

    def is_cancelled(self, batch: int) -> bool:
        return batch in self._cancelled

    def forget(self, batch: int) -> None:
        self._cancelled.discard(batch)


class Sliced:
    """An engine that does its work in slices of about so many seconds, and calls `between` after each."""

    works_ahead = False
    expects_more = False

    def __init__(self, engine: Engine, seconds: float, between: Callable[[], None]) -> None:
        self.name, self.aligns = engine.name, engine.aligns
        self._engine, self._seconds, self._between = engine, seconds, between
        self._speed = FIRST_SPEED
        self.tokens = 0  # of sources, so far

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:
        return self._engine.lacks(options, demands)

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]:
        return in_order(len(sources), self.translate_batches(sources, options, demands))

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        for places in self._slices(sources, options):
            some = [sources[place] for place in places]
            wanted = None if demands is None else [demands[place] for place in places]
            started = time.perf_counter()
            for done, found in self._engine.translate_batches(some, options, wanted):
                yield [places[i] for i in done], found
            self._measure(sum(len(source) + 1 for source in some), options.beam, time.perf_counter() - started)
            self._between()

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        return self._engine.score(sources, targets)

    def align(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> "list[np.ndarray]":
        return self._engine.align(sources, targets)

    def steps(self, source: list[int], limit: int) -> Iterator[int]:
        for token in self._engine.steps(source, limit):
            yield token
            self._between()

    def _slices(self, sources: Sequence[list[int]], options: DecodingOptions) -> Iterator[list[int]]:
        """The longest first, so that those of one slice are alike."""
        places: list[int] = []
        cost = 0
        for place in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
            if places and cost > self._speed * self._seconds:
                yield places
                places, cost = [], 0
            places.append(place)
            cost += (len(sources[place]) + 1) * options.beam
        if places:
            yield places

    def _measure(self, tokens: int, beam: int, seconds: float) -> None:
        """What takes longer tells more."""
        self.tokens += tokens
        weight = min(0.5, seconds / self._seconds)
        self._speed += weight * (tokens * beam / max(seconds, 1e-6) - self._speed)


class Desk:
    """Does batches with some translators, by the names that the front knows them by."""

    def __init__(self, inbox: Inbox, send: Callable[[Message], None], slice_seconds: float = 0.25) -> None:
        self._inbox, self._send, self._slice_seconds = inbox, send, slice_seconds
        self._translators: dict[str, Translator] = {}
        self._running: list[Message] = []
        self._begun: float | None = None

    @property
    def age(self) -> float:
        """Seconds since the running slice was begun; zero if nothing is being done."""
        begun = self._begun
        return 0.0 if begun is None else time.monotonic() - begun

    def seat(self, name: str, translator: Translator) -> None:
        translator.engine = Sliced(translator.engine, self._slice_seconds, self._between)
        self._translators[name] = translator

    def handle(self, message: Message) -> None:
        """Answer a batch: a value or an error for each row."""
        started = time.monotonic()
        self._begun = started
        self._running.append(message)
        translator = self._translators[message["model"]]
        before = self._tokens(translator)
        try:
            rows = self._answers(translator, message, message["rows"])
            seconds, tokens = time.monotonic() - started, self._tokens(translator) - before
            self._send({"kind": "done", "batch": message["batch"], "rows": rows, "seconds": seconds, "tokens": tokens})
        except UnwantedError:
            self._send({"kind": "done", "batch": message["batch"], "rows": [], "seconds": 0.0, "tokens": 0})
        finally:
            self._running.pop()
            self._inbox.forget(message["batch"])
            self._begun = time.monotonic() if self._running else None

    def _between(self) -> None:
        """After each slice: stop if nobody waits any more, and let a batch of a quicker lane pass."""
        current = self._running[-1]
        if self._inbox.is_cancelled(current["batch"]):
            raise UnwantedError
        if message := self._inbox.take_before(current["lane"]):
            self.handle(message)
        self._begun = time.monotonic()

    def _answers(self, translator: Translator, message: Message, rows: list[Any]) -> list[Message]:
        """If one row is to blame, the others are done without it."""
        failpoint("serve.batch")
        try:
            return [{"value": value} for value in TASKS[message["what"]](self, translator, message, rows)]
        except UserError as error:
            code, text = error.code.lower(), str(error)
        except ValueError as error:
            code, text = "not_possible", f"the model cannot do this: {error}"
        if len(rows) > 1:
            return [answer for row in rows for answer in self._answers(translator, message, [row])]
        return [{"error": code, "message": text}]

    def _tokens(self, translator: Translator) -> int:
        return translator.engine.tokens if isinstance(translator.engine, Sliced) else 0

    # -- the tasks --------------------------------------------------------------------------------------------------

    def _translate(self, translator: Translator, message: Message, rows: list[Any]) -> list[Any]:
        asked = message["options"]
        own = translator.decoding
        n_best = asked["n_best"]
        options = replace(own, beam=asked["beam"] or max(own.beam, n_best), n_best=n_best)
        found = translator.alternatives(rows, options, None, asked["prefix"])
        values = [_shown(best, others) for best, *others in found]
        if asked["tokens"]:
            for value, (best, *_) in zip(values, found, strict=True):
                value["tokens"] = _tokens(translator, best)
        return values

    def _steps(self, translator: Translator, message: Message, rows: list[Any]) -> list[Any]:
        text = ""
        for text in translator.steps(rows[0]):
            self._send({"kind": "partial", "batch": message["batch"], "text": text})
        return [text]

    def _score(self, translator: Translator, _: Message, rows: list[Any]) -> list[Any]:
        sources = translator.source_tokenizer.encode_many([source for source, _ in rows])
        targets = translator.target_tokenizer.encode_many([target for _, target in rows])
        for ids in (*sources, *targets):
            if not 0 < len(ids) <= MOST_SCORED:
                message = f"a text has {len(ids)} tokens; expected 1 to {MOST_SCORED}; give another, or a part of it"
                raise UserError("TOO_LONG", message, BAD_DATA)
        scores = translator.engine.score(sources, targets)
        return [_scored(translator, target, one) for target, one in zip(targets, scores, strict=True)]

    def _tokenize(self, translator: Translator, message: Message, rows: list[Any]) -> list[Any]:
        is_source = message["options"]["side"] == "source"
        tokenizer = translator.source_tokenizer if is_source else translator.target_tokenizer
        return [{"ids": ids, "pieces": tokenizer.pieces(ids)} for ids in tokenizer.encode_many(rows)]

    def _inspect(self, translator: Translator, message: Message, rows: list[Any]) -> list[Any]:
        (text, target), asked = rows[0], message["options"]
        require_small(translator, text, target, asked["cells"], len(asked["prefix"]))
        change = Change(tuple(asked["prefix"]), tuple((kind, layer, head) for kind, layer, head in asked["off"]))
        return [translator.inspect(text, target, change=change).to_dict()]

    def _generate(self, translator: Translator, message: Message, rows: list[Any]) -> list[Any]:
        asked = dict(message["options"])
        is_streamed = asked.pop("stream")
        for written in write(translator, rows[0], Wishes(**asked), self._between):
            if is_streamed:
                self._send({"kind": "partial", "batch": message["batch"], "text": written.text})
        said = {"text": written.text, "prompt": written.given, "continuation": written.added}
        return [{**said, "score": mean_log_probability(translator, written), "tokens": len(written.tokens)}]


Task = Callable[[Desk, Translator, Message, list[Any]], list[Any]]
TASKS: dict[str, Task] = {
    "translate": Desk._translate,
    "steps": Desk._steps,
    "score": Desk._score,
    "tokenize": Desk._tokenize,
    "inspect": Desk._inspect,
    "generate": Desk._generate,
}


def require_small(translator: Translator, text: str, target: str | None, cells: int, begun: int = 0) -> None:
    """F58: an attention that is too large to show is refused before anything is computed."""
    source = len(translator.source_tokenizer.encode(text)) + 1
    length = max(source, begun) if target is None else len(translator.target_tokenizer.encode(target)) + 1
    layers, heads = attention_shape(translator)
    asked = layers * heads * source * length
    if asked > cells:
        message = (
            f"{layers} layers × {heads} heads × {length} × {source} tokens are {asked:,} numbers; "
            f"expected at most {cells:,}; look at a shorter text"
        )
        raise UserError("ATTENTION_TOO_LARGE", message, BAD_DATA)


def attention_shape(translator: Translator) -> tuple[int, int]:
    """Layers and heads of the attention from target to source."""
    from clearhead.checkpoint.model_folder import model_options

    options = model_options(translator.config)
    return (1, 1) if isinstance(options, RNNOptions) else (options.decoder_blocks, options.heads)


def _shown(best: Translation, others: Sequence[Translation]) -> dict[str, Any]:
    return {
        **_sureness(best),
        "warnings": list(best.warnings),
        "details": {word: list(about) for word, about in best.details.items()},
        "alternatives": [_sureness(other) for other in others],
    }


def _sureness(one: Translation) -> dict[str, Any]:
    return {"text": one.text, "score": one.score, "confidence": one.confidence}


def _tokens(translator: Translator, best: Translation) -> dict[str, Any]:
    """Of all parts in a row, and what the parts say; each part of the target ends with `</s>`."""
    source: list[str] = []
    target: list[dict[str, Any]] = []
    parts: list[dict[str, str]] = []
    for decoded, scores in zip(best.decoded, translator.score(best.decoded), strict=True):
        source += translator.source_tokenizer.pieces(decoded.source)
        pieces = [*translator.target_tokenizer.pieces(decoded.target), END]
        target += [{"piece": piece, "log_probability": one} for piece, one in zip(pieces, scores, strict=True)]
        said = translator.source_tokenizer.decode(decoded.source), translator.target_tokenizer.decode(decoded.target)
        parts.append(dict(zip(("source", "target"), said, strict=True)))
    return {"source": source, "target": target, "parts": parts}


def _scored(translator: Translator, target: list[int], scores: list[float]) -> dict[str, Any]:
    pieces = [*translator.target_tokenizer.pieces(target), END]
    tokens = [{"piece": piece, "log_probability": one} for piece, one in zip(pieces, scores, strict=True)]
    return {"log_probability": sum(scores), "mean": sum(scores) / len(scores), "tokens": tokens}
