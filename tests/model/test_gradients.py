"""Gradients of every variant: they reach every parameter, and a batch's are the sum of its sentences'."""

import pytest
import torch
from torch import Tensor

from clearhead.model.rnn import RNN
from clearhead.model.transformer import Transformer
from tests.samples import VARIANTS, make_model, random_ids, random_source


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest, in_float64: None) -> Transformer | RNN:  # noqa: ARG001, it comes first
    return make_model(VARIANTS[request.param])


def gradients(model: Transformer | RNN, src: Tensor, src_mask: Tensor, tgt: Tensor) -> dict[str, Tensor]:
    """Of the summed loss of predicting each next token of tgt."""
    model.zero_grad(set_to_none=True)
    logits = model.logits(model(src, src_mask, tgt[:, :-1]))
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), reduction="sum").backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_every_parameter_gets_a_gradient_in_training(model: Transformer | RNN) -> None:
    found = gradients(model.train(), *random_source(5, 7), random_ids(5, 11))
    assert list(found) == [name for name, _ in model.named_parameters()]
    for name, gradient in found.items():
        assert gradient.isfinite().all(), name
        assert gradient.count_nonzero() > 0, name


def test_gradients_of_a_batch_are_the_sum_of_its_sentences(model: Transformer | RNN) -> None:
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    batched = gradients(model, src, src_mask, tgt)
    total = {name: torch.zeros_like(gradient) for name, gradient in batched.items()}
    for b, length in enumerate(src_mask.sum(dim=1).tolist()):
        alone = gradients(model, src[b : b + 1, :length], src_mask[b : b + 1, :length], tgt[b : b + 1])
        for name, gradient in alone.items():
            total[name] += gradient
    for name, gradient in batched.items():
        assert torch.allclose(gradient, total[name], rtol=1e-9, atol=1e-9), name
