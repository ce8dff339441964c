"""The gradients of one update: each process has its share of the pairs, in pieces that fit into memory.

They are divided by the target tokens of all processes together, so that it does not matter who had which pair.
"""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from clearhead.checkpoint.model import Model
from clearhead.data.batching import Batch, Parts, make_batch, share
from clearhead.data.features import Source
from clearhead.data.masking import hide_parts
from clearhead.data.prepare import Prepared
from clearhead.errors import INTERRUPTED, TERMINATED
from clearhead.failpoint import failpoint

from .distributed import Team
from .position import Position
from .settings import Settings
from .step import backward, pairs_of
from .vocabulary import spread_over, target_words

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Gradients:
    """Adds to the gradients of `model`, which the caller clears."""

    def __init__(
        self, model: Model, prepared: Prepared, settings: Settings, steps: int, team: Team, device: str
    ) -> None:
        self._model, self._prepared, self._settings = model, prepared, settings
        self._agrees_after = int(settings.training.agreement_from * steps)
        self._team, self._device = team, device
        self._lengths = prepared.source.ids.lengths, prepared.target.ids.lengths
        self._spread = spread_over(target_words(prepared, settings), model.options.target_vocabulary, device)

    def of(
        self, parts: Parts, here: Position, told: Callable[[], int], warn: Callable[[str, str], None]
    ) -> tuple[float, int]:
        """The mean loss per target token of these pairs, and the exit code if some process was told to stop by now."""
        tokens = self.tokens(parts)
        mine = share(parts, self._team.rank, self._team.size)
        return self._exchange(*self._backward(mine, here, tokens, warn), tokens, told())

    def tokens(self, parts: Parts) -> int:
        """Target tokens of these pairs, as prepared."""
        return sum(int((self._lengths[1][rows] + 1).sum()) for rows in parts)

    def _backward(
        self, parts: Parts, here: Position, tokens: int, warn: Callable[[str, str], None]
    ) -> tuple[Tensor, int]:
        """This process's part of the loss, divided by `tokens`, and the target tokens that it really had.

        If memory is short once, it goes on in smaller pieces from then on.
        """
        step = here.step + 1
        training = self._settings.training
        agreement = training.agreement if step > self._agrees_after else 0.0
        for attempt in range(2):
            torch.manual_seed(_mix(training.seed, step, self._team.rank))
            try:
                failpoint(f"train.step.{step}")
                at_a_time = here.micro_tokens // 2 if agreement else here.micro_tokens
                pieces = [piece for rows in parts for piece in self._pieces(rows, at_a_time)]
                batches = [self._batch(piece, here.epoch) for piece in pieces]
                loss = backward(self._model, batches, training.label_smoothing, tokens, agreement, self._spread)
                return loss, sum(batch.tokens for batch in batches)
            except (RuntimeError, MemoryError) as error:
                if not (isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)):
                    raise
                if attempt:
                    raise OutOfMemory(here.micro_tokens) from error
                for parameter in self._model.parameters():
                    parameter.grad = None
                cost = max(len(rows) * self._longest(rows) for rows in parts)  # it may be less than what was allowed
                here.micro_tokens = max(1, min(here.micro_tokens, cost) // 2)
                warn("MEMORY", f"memory ran out; going on with {here.micro_tokens} tokens at a time, the same update")
        raise AssertionError("unreachable")

    def _pieces(self, rows: np.ndarray, micro_tokens: int) -> list[np.ndarray]:
        """Rows that together cost at most `micro_tokens`."""
        at_a_time = max(1, micro_tokens // self._longest(rows))
        return [rows[start : start + at_a_time] for start in range(0, len(rows), at_a_time)]

    def _longest(self, rows: np.ndarray) -> int:
        return int(np.maximum(*(lengths[rows] for lengths in self._lengths)).max()) + 1

    def _batch(self, rows: np.ndarray, epoch: int) -> Batch:
        prepared, rate = self._prepared, self._settings.data.subword_dropout
        if prepared.source.scale is not None:
            return self._masked(rows, epoch).to(self._device)
        if not rate:
            return pairs_of(prepared, rows).to(self._device)
        pairs: list[tuple[Source, list[int]]] = []
        for row in map(int, rows):
            seed = _mix(self._settings.training.seed, epoch, row)
            sides = (prepared.source, prepared.source_tokenizer), (prepared.target, prepared.target_tokenizer)
            source, target = (tok.encode_with_dropout(side.string(row), rate, seed) for side, tok in sides)
            pairs.append((source, target))
        return make_batch(pairs).to(self._device)

    def _masked(self, rows: np.ndarray, epoch: int) -> Batch:
        """Features, parts of which are hidden: which ones depends on the seed, the epoch and the pair alone."""
        source, target = self._prepared.source, self._prepared.target
        pairs: list[tuple[Source, list[int]]] = []
        for row in map(int, rows):
            rng = np.random.default_rng(_mix(self._settings.training.seed, epoch, row))
            pairs.append((hide_parts(source.item(row), self._settings.data, rng), target.tokens(row)))
        return make_batch(pairs)

    def _exchange(self, loss: Tensor, real_tokens: int, tokens: int, told: int) -> tuple[float, int]:
        """Sum the gradients and losses of all processes."""
        word = torch.tensor([float(loss), real_tokens, told == TERMINATED, told == INTERRUPTED], dtype=torch.float64)
        self._team.add_up(word)
        add_up_gradients(self._model, self._team)
        code = TERMINATED if word[2] else INTERRUPTED if word[3] else 0
        if int(word[1]) == tokens:
            return float(word[0]), code
        correction = tokens / int(word[1])  # subword dropout makes more tokens; how many is known only now
        for parameter in self._model.parameters():
            if parameter.grad is not None:
                parameter.grad *= correction
        return float(word[0]) * correction, code


def add_up_gradients(model: Model, team: Team) -> None:
    """Those of all processes; a parameter that has none has nothing to add."""
    if team.size == 1:
        return
    parameters = list(model.parameters())
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    flat = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
    team.add_up(flat)
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = piece.view_as(parameter)


class OutOfMemory(Exception):  # noqa: N818 (it reads as what it is)
    """Not even half of what a piece may cost fits."""

    def __init__(self, micro_tokens: int) -> None:
        super().__init__(f"memory ran out with {micro_tokens} tokens at a time, after halving them once")


def _mix(*numbers: int) -> int:
    """One seed from several numbers."""
    return int.from_bytes(hashlib.blake2b(repr(numbers).encode(), digest_size=7).digest(), "little")
