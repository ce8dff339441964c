"""The two elementary layers where the CPU spends its time, made fast: matrix product and dropout.

`Linear` keeps its weight in float32 and, if told to, multiplies in bfloat16: on a copy of the weight that is
made once per update, because a cast at every use (autocast) eats most of what the faster product gains.
Gradients arrive at the float32 weight, so the optimizer, the checkpoint and every test see one ordinary model.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """x Wᵀ + b; several matrices that read the same x may be stacked in W and used by rows."""

    product: torch.dtype = torch.float32  # what the product is computed in

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self._copy: Tensor | None = None
        self._copied_version = -1

    def reset_parameters(self) -> None:
        """Left to the model, which initialises all its weights in one place."""

    def forward(self, x: Tensor, rows: slice = slice(None)) -> Tensor:
        bias = None if self.bias is None else self.bias[rows]
        if self.product == torch.float32:
            return F.linear(x, self.weight[rows], bias)
        return _LowProduct.apply(x, self.weight[rows], bias, self.low_weight()[rows])

    def low_weight(self) -> Tensor:
        """The weight in `product`'s type, copied anew only after the weight has changed."""
        if self._copy is None or self._copied_version != self.weight._version:
            self._copy = self.weight.detach().to(self.product)
            self._copied_version = self.weight._version
        return self._copy


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
    for module in model.modules():
        if isinstance(module, Linear):
            module.product = product


class Dropout(nn.Module):
    """Dropout (Srivastava et al. 2014) with the rate rounded to 1/65,536."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropped = round(rate * 65536)  # of 65,536 equally likely draws

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.dropped):
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.dropped / 65536)
        # Four 16-bit draws from each 64-bit one: a quarter of the time of F.dropout, whose Bernoulli draws
        # took a fifth of a whole training step (benchmarks/LOG.md).
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = draws.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in -32768 ... 32767
        kept = torch.ge(draws, self.dropped - 32768, out=torch.empty(x.shape, dtype=x.dtype))
        return x * kept.mul_(65536 / (65536 - self.dropped))
