"""A small training loop over batches that a task draws, and what is asked of the model afterwards."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch, make_batch, pad_sources
from clearhead.data.tokenizer import PAD
from clearhead.decoding import DecodingOptions, search
from clearhead.model import ModelOptions, TransformerOptions, build
from clearhead.model.rnn import RNN
from clearhead.model.transformer import Transformer
from clearhead.training.loss import batch_loss
from clearhead.training.schedule import cosine
from clearhead.training.step import make_optimizer, set_rate, update

from .tasks import VOCABULARY, Pair, Task

Model = Transformer | RNN

# What most experiments start from; pre-norm, because it learns without care (see the experiment on orders of norm).
SMALL = TransformerOptions(
    source_vocabulary=VOCABULARY,
    target_vocabulary=VOCABULARY,
    width=64,
    heads=4,
    feed_forward=128,
    encoder_blocks=1,
    decoder_blocks=1,
    dropout=0.0,
    norm="pre",
    tied="none",  # with one table for both ends these tasks take five times as many steps
)
DIVERGED = 1000.0  # a loss that is larger, or no number, is written down as this
TESTED = 127  # pairs


@dataclass(frozen=True)
class Lesson:
    """How long and how fast to learn."""

    steps: int = 250
    sentences: int = 32
    rate: float = 3e-3
    warmup: int = 20
    smoothing: float = 0.0
    is_cooled: bool = True  # down to nothing at the end; else the rate stays at its peak

    def rate_at(self, step: int) -> float:
        if self.is_cooled:
            return cosine(step, self.rate, self.warmup, self.steps)
        return self.rate * min(1.0, step / self.warmup)


def learned(options: ModelOptions, task: Task, lesson: Lesson, seed: int) -> tuple[Model, list[float]]:
    """A model after its lesson, and the loss at each step; both follow from the seed."""
    torch.manual_seed(seed)
    model = build(options)
    return model, teach(model, task, lesson, seed)


def teach(model: Model, task: Task, lesson: Lesson, seed: int) -> list[float]:
    """The loss at each step."""
    rng = random.Random(seed)
    optimizer = make_optimizer(model.train())
    losses = []
    for step in range(1, lesson.steps + 1):
        batch = make_batch([task(rng) for _ in range(lesson.sentences)])
        losses.append(finite(update(model, [batch], optimizer, lesson.rate_at(step), lesson.smoothing).item()))
        if losses[-1] == DIVERGED:
            return losses + [DIVERGED] * (lesson.steps - step)
    model.eval()
    return losses


def teach_with(model: Model, loss_of: Callable[[random.Random], Tensor], lesson: Lesson, seed: int) -> list[float]:
    """The same for a loss of one's own."""
    rng = random.Random(seed)
    optimizer = make_optimizer(model.train())
    losses = []
    for step in range(1, lesson.steps + 1):
        set_rate(optimizer, lesson.rate_at(step))
        loss = loss_of(rng)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(finite(loss.item()))
    model.eval()
    return losses


def drawn(task: Task, seed: int, count: int = TESTED) -> list[Pair]:
    """Pairs to test with; of other seeds than those that models learn from."""
    rng = random.Random(f"test {seed}")
    return [task(rng) for _ in range(count)]


@torch.no_grad()
def told_accuracy(model: Model, pairs: Sequence[Pair]) -> float:
    """The share of target tokens, EOS included, that are predicted right after the right beginning."""
    batch = make_batch(pairs)
    found = model.logits(model(batch.src, batch.src_mask, batch.tgt_in)).argmax(dim=-1)
    real = batch.tgt_out != PAD
    return (found == batch.tgt_out)[real].float().mean().item()


def free_accuracy(model: Model, pairs: Sequence[Pair]) -> float:
    """The share of pairs whose whole target greedy search finds, without any help."""
    return sum(found == target for found, (_, target) in zip(answers(model, pairs), pairs, strict=True)) / len(pairs)


def free_token_accuracy(model: Model, pairs: Sequence[Pair]) -> float:
    """The share of target tokens that greedy search has in their place."""
    right = total = 0
    for found, (_, target) in zip(answers(model, pairs), pairs, strict=True):
        right += sum(a == b for a, b in zip(found, target, strict=False))
        total += max(len(target), len(found))
    return right / total


def answers(model: Model, pairs: Sequence[Pair]) -> list[list[int]]:
    """What greedy search makes of the sources."""
    longest = max(len(target) for _, target in pairs)
    options = DecodingOptions(beam=1, max_length=longest + 4)
    return [best.tokens for (best,) in search(model, *pad_sources([source for source, _ in pairs]), options)]


@torch.no_grad()
def mean_loss(model: Model, pairs: Sequence[Pair]) -> float:
    """Per target token, without smoothing."""
    batch: Batch = make_batch(pairs)
    return finite(batch_loss(model, batch, 0.0, batch.tokens).item())


def smoothed(losses: Sequence[float], points: int = 10) -> list[float]:
    """Means of as many stretches of equal length: enough for a plot."""
    size = len(losses) // points
    return [sum(losses[i * size : (i + 1) * size]) / size for i in range(points)]


def finite(loss: float) -> float:
    return loss if loss < DIVERGED else DIVERGED


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
