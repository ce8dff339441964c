"""One update: forward and backward on each micro-batch, then Adam."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch, make_batch
from clearhead.data.features import Source
from clearhead.data.marking import Marked, Marking, Vocabulary
from clearhead.data.options import DataOptions
from clearhead.data.prepare import Prepared
from clearhead.model import Seq2Seq

from .agreement import agreeing_loss
from .distributed import Team
from .guidance import Guide, guided
from .loss import batch_loss
from .muon import Muon
from .options import TrainingOptions

DEFAULTS = TrainingOptions()


@contextmanager
def threads_kept() -> Iterator[None]:
    """Torch has as many threads afterwards as before, whatever ends the block: in a notebook others go on with them."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def pick_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def make_optimizer(
    model: nn.Module, options: TrainingOptions = DEFAULTS, team: Team | None = None
) -> torch.optim.Optimizer:
    """Adam as in paper 5.3, or Muon; the rate is set at each update."""
    betas = options.beta1, options.beta2
    if options.optimizer == "muon":
        product = torch.bfloat16 if options.precision == "bfloat16" else torch.float32
        return Muon(model, betas, options.epsilon, team, product)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=options.epsilon, fused=True)


def make_marking(prepared: Prepared, data: DataOptions, seed: int) -> Marking | None:
    """How training puts marks into pairs; none where there are no marks, or no links between the words."""
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    if not (data.learns_marks and source.marks and target.marks and prepared.links is not None):
        return None
    return Marking(
        Vocabulary.of(source, prepared.source.ids.flat),
        Vocabulary.of(target, prepared.target.ids.flat),
        data.marks,
        seed,
        data.max_tokens - 1,
    )


def pairs_of(prepared: Prepared, rows: np.ndarray, marking: Marking | None = None, epoch: int = 0) -> Batch:
    """The batch of these training pairs, some of them with marks, as they are in this epoch."""
    pairs: list[tuple[Source, list[int]]] = []
    links: list[np.ndarray] = []
    marks = np.zeros(len(rows), int) if marking is None else marking.marks(rows, epoch)
    for row, wanted in zip(rows.tolist(), marks.tolist(), strict=True):
        marked = mark_pair(prepared, marking, row, epoch) if marking is not None and wanted else None
        if marked is not None:
            pairs.append((marked.source, marked.target))
            links.append(marked.links)
            continue
        pairs.append((prepared.source.item(row), prepared.target.tokens(row)))
        if prepared.links is not None:
            links.append(prepared.links[row])
    return make_batch(pairs, links if prepared.links is not None else None)


def lengths_of(prepared: Prepared, marking: Marking | None, epoch: int) -> tuple[np.ndarray, np.ndarray]:
    """By which batches are made: pairs that grow by marks lie beside longer ones, whose padding they would add to."""
    source, target = prepared.source.ids.lengths, prepared.target.ids.lengths
    if marking is None:
        return source, target
    grown = marking.marks(np.arange(len(source)), epoch).astype(np.int32)
    return source + grown, target + grown


def mark_pair(prepared: Prepared, marking: Marking, row: int, epoch: int) -> Marked | None:
    assert prepared.links is not None
    source, target = prepared.source.tokens(row), prepared.target.tokens(row)
    return marking.mark(source, target, prepared.links[row], row, epoch)


def backward(
    model: Seq2Seq,
    batches: Sequence[Batch],
    smoothing: float,
    tokens: int,
    agreement: float = 0.0,
    spread: Tensor | None = None,
    guide: Guide | None = None,
) -> Tensor:
    """Add the gradients of these batches, whose loss is divided by `tokens`; that loss, the guide's not counted."""
    total = torch.zeros(())
    for batch in batches:
        with guided(model, guide.head if guide else None, batch.links) as looks:
            if agreement:
                loss = agreeing_loss(model, batch, smoothing, agreement, tokens, spread)
            else:
                loss = batch_loss(model, batch, smoothing, tokens, spread)
        if guide and looks:
            (loss + guide.weight / tokens * torch.stack(looks).sum()).backward()
        else:
            loss.backward()
        total += loss.detach().cpu()
    return total


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def update(
    model: Seq2Seq,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    rate: float,
    smoothing: float,
    agreement: float = 0.0,
) -> Tensor:
    """Change the weights by one step at this rate; the mean loss per target token of all batches before it."""
    set_rate(optimizer, rate)
    loss = backward(model, batches, smoothing, sum(batch.tokens for batch in batches), agreement)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss
