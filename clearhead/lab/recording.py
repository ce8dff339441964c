"""Looks into attention by hooks on `ScaledDotProduct`, the one place where a model may be hooked.

B sentences, H heads, T positions that look, S positions looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.inspection.record import hooked
from clearhead.model.attention import ScaledDotProduct, attention_weights


@contextmanager
def recorded(module: nn.Module) -> Iterator[list[Tensor]]:
    """The weights (B, H, T, S) of every attention under `module`, in the order in which they are computed."""
    weights: list[Tensor] = []

    def keep(product: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> None:
        assert isinstance(product, ScaledDotProduct)
        q, k, _v, mask = inputs
        weights.append(attention_weights(q, k, mask, product.scale).detach())

    with hooked(dict.fromkeys(dot_products(module), keep)):
        yield weights


@contextmanager
def silenced(product: ScaledDotProduct, head: int) -> Iterator[None]:
    """One head says nothing: its output is zero."""

    def silence(_: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        keep = torch.ones(output.shape[1], dtype=output.dtype)
        keep[head] = 0.0
        return output * keep[:, None, None]

    with hooked({product: silence}):
        yield


@contextmanager
def unmasked(module: nn.Module) -> Iterator[None]:
    """Every attention under `module` sees everything, the future too."""

    def forget(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        q, k, v, _mask = inputs
        return q, k, v, None

    handles = [product.register_forward_pre_hook(forget) for product in dot_products(module)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def dot_products(module: nn.Module) -> list[ScaledDotProduct]:
    return [child for child in module.modules() if isinstance(child, ScaledDotProduct)]
