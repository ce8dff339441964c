"""Muon (Jordan et al. 2024): matrices inside the network are moved by the nearest orthogonal matrix to their momentum.

A gradient of a matrix is mostly a few directions; its orthogonal part moves all directions alike, so that a small model
learns as much in fewer steps (benchmarks/LOG.md). Embeddings, the output layer, biases and norms stay with Adam.
A step of an n × m matrix is scaled by 0.4 √max(n, m), which gives its numbers about the size of Adam's steps: one
learning rate serves both.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from clearhead.model.attention import MultiHeadAttention
from clearhead.model.linear import Linear

MOMENTUM = 0.95
SIZE = 0.4  # of a step's numbers in units of the rate, as Adam's usually are
ITERATION = (3.4445, -4.7750, 2.0315)  # Jordan's: singular values from about 0 to 1 end between 0.7 and 1.2 after five
ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Muon for the matrices of a model's inner layers, Adam for its other parameters; both at the group's `lr`."""

    def __init__(self, model: nn.Module, betas: tuple[float, float], epsilon: float) -> None:
        stacked = inner_matrices(model)
        others = [parameter for parameter in model.parameters() if parameter not in stacked]
        groups: list[dict[str, Any]] = [{"params": list(stacked), "rows": list(stacked.values())}]
        super().__init__([*groups, {"params": others, "fused": True}], {"lr": 0.0})
        self._betas, self._epsilon = betas, epsilon

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None  # the gradients are there already
        matrices, others = self.param_groups
        for parameter, rows in zip(matrices["params"], matrices["rows"], strict=True):
            if parameter.grad is not None:
                self._move(parameter, parameter.grad, rows, matrices["lr"])
        self._move_by_adam([parameter for parameter in others["params"] if parameter.grad is not None], others["lr"])

    def _move(self, parameter: Tensor, gradient: Tensor, rows: int, rate: float) -> None:
        """A stack of matrices of so many rows each."""
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        ahead = gradient.lerp(momentum, MOMENTUM)  # Nesterov's
        for matrix, direction in zip(parameter.split(rows), ahead.split(rows), strict=True):
            matrix.sub_(orthogonal(direction), alpha=rate * SIZE * max(matrix.shape) ** 0.5)

    def _move_by_adam(self, parameters: Sequence[Tensor], rate: float) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                step = torch.zeros((), dtype=torch.float32, device=parameter.device)
                moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
                self.state[parameter] = {"step": step, **moments}
        states = [self.state[parameter] for parameter in parameters]
        adam(
            list(parameters),
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=rate,
            weight_decay=0.0,
            eps=self._epsilon,
            maximize=False,
        )


def inner_matrices(model: nn.Module) -> dict[Tensor, int]:
    """The weights of linear layers between embeddings and output layer, with the rows of each matrix in them."""
    embeddings = [module.weight for module in model.modules() if isinstance(module, nn.Embedding)]
    output = getattr(model, "output", None)
    outer = {*embeddings, output.weight} if isinstance(output, Linear) else {*embeddings}
    linear = [module for module in model.modules() if isinstance(module, Linear) and module.weight not in outer]
    stacks = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    rows = {stack.projections.weight: stack.joined for stack in stacks}  # W_Q, W_K and W_V are three matrices
    return {module.weight: rows.get(module.weight, len(module.weight)) for module in linear}


def orthogonal(matrix: Tensor) -> Tensor:
    """U Vᵀ of its singular value decomposition U Σ Vᵀ, nearly, by products alone: five Newton–Schulz iterations."""
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.t() if is_tall else matrix
    x = x / (x.norm() + 1e-7)
    a, b, c = ITERATION
    for _ in range(ITERATIONS):
        square = x @ x.t()
        x = torch.addmm(x, torch.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.t() if is_tall else x
