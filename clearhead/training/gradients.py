"""The gradients of one update: each process has its share of the pairs, in pieces that fit into memory.

They are divided by the target tokens of all processes together, so that it does not matter who had which pair.
"""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from clearhead.checkpoint.model import Model
from clearhead.data.batching import Batch, Parts, epoch_batches, make_batch, share
from clearhead.data.features import Source
from clearhead.data.masking import hide_parts
from clearhead.data.prepare import Prepared
from clearhead.data.relinking import piece_widths, relinked
from clearhead.errors import INTERRUPTED, TERMINATED
from clearhead.failpoint import failpoint

from .distributed import Team
from .guidance import make_guide
from .position import Position
from .settings import Settings
from .step import backward, lengths_of, make_marking, mark_pair, pairs_of
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
        self._guide = make_guide(settings, prepared)
        self._marking = make_marking(prepared, settings.data, settings.training.seed)
        self._widths = None
        if settings.data.subword_dropout and self._guide is not None:
            self._widths = piece_widths(prepared.source_tokenizer), piece_widths(prepared.target_tokenizer)
        self._spread = spread_over(target_words(prepared, settings), model.options.target_vocabulary, device)

    def of(
        self, parts: Parts, here: Position, told: Callable[[], int], warn: Callable[[str, str], None]
    ) -> tuple[float, int]:
        """The mean loss per target token of these pairs, and the exit code if some process was told to stop by now."""
        tokens = self.tokens(parts)
        mine = share(parts, self._team.rank, self._team.size)
        return self._exchange(*self._backward(mine, here, tokens, warn), tokens, told())

    def batches(self, epoch: int, tokens: int) -> list[Parts]:
        """Those of an epoch, of so many tokens each."""
        return epoch_batches(
            *lengths_of(self._prepared, self._marking, epoch), tokens, self._settings.training.seed, epoch
        )

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
                loss = backward(
                    self._model, batches, training.label_smoothing, tokens, agreement, self._spread, self._guide
                )
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
        if self._prepared.source.scale is not None:
            return self._masked(rows, epoch).to(self._device)
        if self._settings.data.subword_dropout:
            return self._broken_up(rows, epoch).to(self._device)
        return pairs_of(self._prepared, rows, self._marking, epoch).to(self._device)

    def _broken_up(self, rows: np.ndarray, epoch: int) -> Batch:
        """Words in other pieces: which ones depends on the seed, the epoch and the pair alone."""
        sides = (self._prepared.source, self._prepared.target)
        tokenizers = self._prepared.source_tokenizer, self._prepared.target_tokenizer
        rate, all_links = self._settings.data.subword_dropout, self._prepared.links
        pairs: list[tuple[Source, list[int]]] = []
        links: list[np.ndarray] = []
        marks = np.zeros(len(rows), int) if self._marking is None else self._marking.marks(rows, epoch)
        for row, wanted in zip(rows.tolist(), marks.tolist(), strict=True):
            seed = _mix(self._settings.training.seed, epoch, row)
            marked = mark_pair(self._prepared, self._marking, row, epoch) if self._marking and wanted else None
            if marked is None:
                old, texts = [side.tokens(row) for side in sides], [side.string(row) for side in sides]
            else:
                old = [marked.source, marked.target]
                texts = [tokenizer.decode(ids) for tokenizer, ids in zip(tokenizers, old, strict=True)]
            source, target = (
                tokenizer.encode_with_dropout(text, rate, seed)
                for text, tokenizer in zip(texts, tokenizers, strict=True)
            )
            pairs.append((source, target))
            if all_links is not None and self._widths is not None:
                widths = [
                    (of_pieces[before], of_pieces[after])
                    for of_pieces, before, after in zip(self._widths, old, (source, target), strict=True)
                ]
                links.append(relinked(all_links[row] if marked is None else marked.links, *widths))
        return make_batch(pairs, links or None)

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
