"""The two elementary layers where the CPU spends its time, made fast: matrix product and dropout.

`Linear` keeps its weight in float32 and, if told to, multiplies in bfloat16: on a copy of the weight that is
made once per update, because a cast at every use (autocast) eats most of what the faster product gains.
Gradients arrive at the float32 weight, so the optimizer, the checkpoint and every test see one ordinary model.
"""

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

Activation = Callable[[Tensor], Tensor]
PACKED_FROM = 250_000  # numbers in a weight; smaller ones are not multiplied faster if they are laid out for it
PACKED_FOR_ONE = 2_000_000  # the same where a single row is multiplied


class Linear(nn.Linear):
    """x Wᵀ + b; several matrices that read the same x may be stacked in W and used by rows."""

    product: torch.dtype = torch.float32  # what the product is computed in

    def reset_parameters(self) -> None:
        """Left to the model, which initialises all its weights in one place."""

    def forward(self, x: Tensor, rows: slice = slice(None), then: Activation | None = None) -> Tensor:
        """`then` is applied to the product; ReLU in one go with it where the weights are laid out for that."""
        bias = None if self.bias is None else self.bias[rows]
        if self.product != torch.float32:
            y = _LowProduct.apply(x, self.weight[rows], bias, self.low_weight()[rows])
        elif self in _PACKED and not torch.is_grad_enabled() and self._gains_by_packing(x):
            fused, then = ("relu", None) if then is F.relu else ("none", then)
            y = torch.ops.mkldnn._linear_pointwise(x, _PACKED[self].rows(rows), bias, fused, [], "")
        else:
            y = F.linear(x, self.weight[rows], bias)
        return y if then is None else then(y)

    def _gains_by_packing(self, x: Tensor) -> bool:
        return x.numel() > self.in_features or self.weight.numel() >= PACKED_FOR_ONE

    def low_weight(self) -> Tensor:
        """The weight in `product`'s type, copied anew only after the weight has changed."""
        copied = _COPIES.get(self)
        if copied is None or not copied.is_of(self.weight, self.product):
            copied = _COPIES[self] = _Copy(self.weight, self.product)
        return copied.low


class _Copy:
    """A weight in another type, and what it was made of."""

    def __init__(self, weight: Tensor, product: torch.dtype) -> None:
        with torch.inference_mode(False):  # one made while searching must serve training too
            self.low = weight.detach().to(product)
        self._weight, self._version = weight, weight._version

    def is_of(self, weight: Tensor, product: torch.dtype) -> bool:
        is_same = self._weight is weight and self._version == weight._version
        return is_same and self.low.dtype == product and self.low.device == weight.device


class _Packed:
    """A weight in the order in which oneDNN reads it, made for each of the row ranges that are used."""

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight
        self._version = weight._version
        self._made: dict[tuple[int, int], Tensor] = {}

    def rows(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self._weight))
        if self._version != self._weight._version:
            self._version = self._weight._version
            self._made.clear()
        if (start, stop) not in self._made:
            self._made[start, stop] = torch.ops.mkldnn._reorder_linear_weight(self._weight.detach()[start:stop])
        return self._made[start, stop]


# Beside the modules, so that whoever copies or saves a module does not take its copy along.
_COPIES: "WeakKeyDictionary[Linear, _Copy]" = WeakKeyDictionary()
_PACKED: "WeakKeyDictionary[Linear, _Packed]" = WeakKeyDictionary()


class _LowProduct(torch.autograd.Function):
    """F.linear in bfloat16 with the gradient of the float32 weight."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, low_weight: Tensor) -> Tensor:
        low_x = x.to(low_weight.dtype)
        ctx.save_for_backward(low_x, low_weight)
        ctx.types = x.dtype, weight.dtype, None if bias is None else bias.dtype
        return F.linear(low_x, low_weight, None if bias is None else bias.to(low_weight.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (gradient,) = gradients
        low_x, low_weight = ctx.saved_tensors
        x_type, weight_type, bias_type = ctx.types
        flat = gradient.reshape(-1, gradient.shape[-1])
        of_x = (gradient @ low_weight).to(x_type)
        of_weight = (flat.t() @ low_x.reshape(-1, low_x.shape[-1])).to(weight_type)
        of_bias = None if bias_type is None else flat.sum(0, dtype=bias_type)
        return of_x, of_weight, of_bias, None


def multiply_in(model: nn.Module, product: torch.dtype) -> None:
    """Let every Linear of the model compute its product in this type; weights, norms and sums stay float32."""
    if product != torch.float32:
        _count_fused_updates()
    for module in model.modules():
        if isinstance(module, Linear):
            module.product = product


def pack(model: nn.Module) -> None:
    """Let the large Linears of a model on the CPU multiply by weights that are laid out for it, without gradients.

    Otherwise each product lays them out anew; with the few rows of one sentence that takes longer than the product.
    """
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        for module in model.modules():
            if isinstance(module, Linear) and module.weight.numel() >= PACKED_FROM:
                _PACKED[module] = _Packed(module.weight)


@functools.cache
def _count_fused_updates() -> None:
    """Fused optimizers change weights without counting it as a change; from now on it is counted for them."""

    def count(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for group in optimizer.param_groups:
            torch.autograd.graph.increment_version(group["params"])

    register_optimizer_step_post_hook(count)


class Dropout(nn.Module):
    """Dropout (Srivastava et al. 2014) with the rate rounded to 1/65,536."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropped = min(round(rate * 65536), 65535)  # of 65,536 equally likely draws

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.dropped):
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.dropped / 65536)
        # Four 16-bit draws from each 64-bit one: a quarter of the time of F.dropout, whose Bernoulli draws
        # took a fifth of a whole training step (benchmarks/LOG.md).
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = draws.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in -32768 ... 32767
        kept = torch.ge(draws, self.dropped - 32768, out=torch.empty(x.shape))  # 0 or 1, in float32
        return x * kept.mul_(65536 / (65536 - self.dropped))
