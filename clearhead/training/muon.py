"""Muon (Jordan et al. 2024): matrices inside the network are moved by the nearest orthogonal matrix to their momentum.

A gradient of a matrix is mostly a few directions; its orthogonal part moves all directions alike, so that a small model
learns as much in fewer steps (benchmarks/LOG.md). Embeddings, the output layer, biases and norms stay with Adam.
A step of an n × m matrix is scaled by 0.4 √max(n, m), which gives its numbers about the size of Adam's steps at the
same rate. Adam has four times the rate here: a word is met far more seldom than a matrix is used.
Of several processes each makes its share of the orthogonal matrices.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from clearhead.model.attention import MultiHeadAttention
from clearhead.model.linear import Linear

from .distributed import Team

MOMENTUM = 0.95
SIZE = 0.4  # of a step's numbers in units of the rate, as Adam's usually are
FASTER = 4.0  # Adam's rate in units of the group's: 2 to 8 were tried, 1 learns far less (benchmarks/LOG.md)
ITERATION = (3.4445, -4.7750, 2.0315)  # Jordan's: singular values from about 0 to 1 end between 0.7 and 1.2 after five
ITERATIONS = 5
AT_ONCE = 4  # matrices of one shape; small ones are multiplied faster together, large ones no slower
WIDE = 3  # times as many columns as rows, from which on it is faster to make all factors first


class Muon(torch.optim.Optimizer):
    """Muon, with products in this type, for the matrices of inner layers, Adam, `FASTER`, for other parameters."""

    def __init__(
        self,
        model: nn.Module,
        betas: tuple[float, float],
        epsilon: float,
        team: Team | None = None,
        product: torch.dtype = torch.float32,
    ) -> None:
        stacked = inner_matrices(model)
        others = [parameter for parameter in model.parameters() if parameter not in stacked]
        groups: list[dict[str, Any]] = [{"params": list(stacked), "rows": list(stacked.values())}]
        super().__init__([*groups, {"params": others, "fused": True}], {"lr": 0.0})
        self._betas, self._epsilon, self._team = betas, epsilon, team or Team()
        self._product = product

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None  # the gradients are there already
        matrices, others = self.param_groups
        moved = [pair for pair in zip(matrices["params"], matrices["rows"], strict=True) if pair[0].grad is not None]
        parts = [part for parameter, rows in moved for part in parameter.split(rows)]
        directions = [part for parameter, rows in moved for part in self._ahead(parameter).split(rows)]
        for part, direction in zip(parts, self._orthogonal(directions), strict=True):
            part.sub_(direction, alpha=matrices["lr"] * SIZE * max(part.shape) ** 0.5)
        outer = [parameter for parameter in others["params"] if parameter.grad is not None]
        self._move_by_adam(outer, FASTER * others["lr"])

    def _ahead(self, parameter: Tensor) -> Tensor:
        """The momentum with this gradient in it, looked at from one step ahead (Nesterov)."""
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)

    def _orthogonal(self, matrices: list[Tensor]) -> list[Tensor]:
        """Every process's share, put together: the same in all of them, however many they are."""
        rank, size = self._team.rank, self._team.size
        if size == 1:
            return orthogonal_each(matrices, self._product)
        found = [matrix.new_zeros(matrix.shape, dtype=self._product) for matrix in matrices]
        found[rank::size] = orthogonal_each(matrices[rank::size], self._product)
        flat = torch.cat([matrix.flatten() for matrix in found])
        self._team.add_up(flat)
        pieces = flat.split([matrix.numel() for matrix in matrices])
        return [piece.view_as(matrix) for piece, matrix in zip(pieces, matrices, strict=True)]

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


def orthogonal_each(matrices: Sequence[Tensor], product: torch.dtype = torch.float32) -> list[Tensor]:
    """`orthogonal` of each, those of one shape `AT_ONCE`."""
    places: dict[torch.Size, list[int]] = {}
    for place, matrix in enumerate(matrices):
        places.setdefault(matrix.shape, []).append(place)
    found = list(matrices)
    for same in places.values():
        for some in (same[start : start + AT_ONCE] for start in range(0, len(same), AT_ONCE)):
            made = orthogonal(torch.stack([matrices[place] for place in some]), product)
            for place, matrix in zip(some, made, strict=True):
                found[place] = matrix
    return found


def orthogonal(matrices: Tensor, product: torch.dtype = torch.float32) -> Tensor:
    """U Vᵀ of each one's singular value decomposition U Σ Vᵀ, nearly, by five Newton–Schulz iterations; (N, n, m).

    It is all products, but for the length, and computed in the type `product`, in which the result is too: bfloat16
    is enough for a direction to move in.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(product)
    x = _by_small_squares(x) if x.shape[2] >= WIDE * x.shape[1] else _by_itself(x)
    return x.mT if is_tall else x


def _by_itself(x: Tensor) -> Tensor:
    """x becomes (a + b x xᵀ + c (x xᵀ)²) x in each iteration."""
    a, b, c = ITERATION
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


def _by_small_squares(x: Tensor) -> Tensor:
    """The same for a wide x: all factors are made of x xᵀ, which is smaller, and x is multiplied once, by them all."""
    a, b, c = ITERATION
    square = x @ x.mT
    factors = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).expand_as(square)
    for _ in range(ITERATIONS):
        factor = torch.baddbmm(square, square, square, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        square, factors = factor @ square @ factor, factor @ factors
    return factors @ x
