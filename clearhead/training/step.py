"""One update: forward, backward, Adam."""

import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch
from clearhead.model import Seq2Seq

from .loss import batch_loss


def make_optimizer(model: nn.Module) -> torch.optim.Adam:
    """Adam as in paper 5.3; the rate is set at each update."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def update(model: Seq2Seq, batch: Batch, optimizer: torch.optim.Optimizer, rate: float, smoothing: float) -> Tensor:
    """Change the weights by one step at this learning rate; the mean loss per target token before it."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = batch_loss(model, batch, smoothing, batch.tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
