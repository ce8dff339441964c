"""R-Drop's loss against the same written with torch's own functions on all logits; what it does to two readings.

N target tokens that are not padding, D width, V vocabulary.
"""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import PAD
from clearhead.model import ModelOptions
from clearhead.model.linear import Linear
from clearhead.training import agreement as agreement_module
from clearhead.training import loss as loss_module
from clearhead.training.agreement import agreeing_loss, divided_cross_entropy
from clearhead.training.loss import batch_loss, cross_entropy
from clearhead.training.step import make_optimizer, update
from tests.samples import PAPER, make_model
from tests.training.test_loss import (
    PAIRS,
    D,
    V,
    each_bias,
    each_kind,
    each_smoothing,
    gradients,
    plain_cross_entropy,
    random_output,
    random_targets,
)


def plain_agreement(hidden: Tensor, output: Linear, targets: Tensor, smoothing: float, weight: float) -> Tensor:
    first, second = hidden.chunk(2)
    halves = sum(plain_cross_entropy(half, output, targets, smoothing) for half in (first, second)) / 2
    real = targets != PAD
    p, q = (F.log_softmax(F.linear(half[real], output.weight, output.bias), dim=-1) for half in (first, second))
    apart = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(p, q, reduction="sum", log_target=True)
    return halves + weight / 4 * apart


@each_smoothing
@each_bias
@pytest.mark.parametrize("logits_per_chunk", [1, loss_module.LOGITS_PER_CHUNK], ids=["chunks", "one chunk"])
def test_it_is_the_same_as_by_torch_s_functions(
    smoothing: float, bias: bool, logits_per_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement_module, "LOGITS_PER_CHUNK", logits_per_chunk)
    output, targets = random_output(bias), random_targets(29, 7)
    hidden = torch.randn(58, 7, D, requires_grad=True)
    ours = divided_cross_entropy(hidden, output, targets, smoothing, 5.0, torch.full((V,), 1 / V))
    theirs = plain_agreement(hidden, output, targets, smoothing, 5.0)
    torch.testing.assert_close(ours, theirs)
    found, expected = gradients(ours, hidden, output), gradients(theirs, hidden, output)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)  # sums of up to 203 terms, times 3


def test_two_readings_that_agree_cost_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the smoothing is spread."""
    monkeypatch.setattr(agreement_module, "LOGITS_PER_CHUNK", 1)
    output, targets, spread = random_output(bias=True), random_targets(29, 7), torch.rand(V).softmax(0)
    hidden = torch.randn(29, 7, D, requires_grad=True)
    twice = divided_cross_entropy(torch.cat([hidden, hidden]), output, targets, 0.3, 5.0, spread)
    once = cross_entropy(hidden, output, targets, 0.3, spread)
    torch.testing.assert_close(twice, once)
    found, expected = gradients(twice, hidden, output), gradients(once, hidden, output)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)


@each_kind
def test_without_dropout_there_is_nothing_to_agree_on(kind: ModelOptions) -> None:
    model, batch = make_model(kind).train(), make_batch(PAIRS)
    torch.testing.assert_close(agreeing_loss(model, batch, 0.1, 5.0, 7), batch_loss(model, batch, 0.1, 7))


def test_two_readings_come_together() -> None:
    """After as many updates their distributions differ less than those of a model that was not told to agree."""
    assert _apart(after_updates_with=5.0) < 0.5 * _apart(after_updates_with=0.0)


def _apart(after_updates_with: float) -> float:
    torch.manual_seed(3)
    model, batch = make_model(replace(PAPER, dropout=0.3)).train(), make_batch(PAIRS)
    optimizer = make_optimizer(model)
    for _ in range(53):
        update(model, [batch], optimizer, 3e-3, 0.1, after_updates_with)
    losses = []
    for weight in (4.0, 0.0):
        torch.manual_seed(5)  # the same dropout
        losses.append(agreeing_loss(model, batch, 0.1, weight, 1).item())
    return losses[0] - losses[1]
