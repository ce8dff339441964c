"""One update: forward and backward on each micro-batch, then Adam."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch, make_batch
from clearhead.data.prepare import Prepared
from clearhead.model import Seq2Seq

from .agreement import agreeing_loss
from .distributed import Team
from .loss import batch_loss
from .muon import Muon
from .options import TrainingOptions

DEFAULTS = TrainingOptions()


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


def pairs_of(prepared: Prepared, rows: np.ndarray) -> Batch:
    """The batch of these training pairs."""
    source, target = prepared.source, prepared.target
    return make_batch([(source.item(int(row)), target.tokens(int(row))) for row in rows])


def backward(
    model: Seq2Seq,
    batches: Sequence[Batch],
    smoothing: float,
    tokens: int,
    agreement: float = 0.0,
    spread: Tensor | None = None,
) -> Tensor:
    """Add the gradients of these batches, whose loss is divided by `tokens`; that loss."""
    total = torch.zeros(())
    for batch in batches:
        if agreement:
            loss = agreeing_loss(model, batch, smoothing, agreement, tokens, spread)
        else:
            loss = batch_loss(model, batch, smoothing, tokens, spread)
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
