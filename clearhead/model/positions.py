"""Paper 3.5: where a token stands: sinusoidal, learned, rotary, none, or a rule of your own.

A rule is a function from positions (T,) to vectors (T, D) that are added to the embeddings: the eⁱ of note 002.
Rotary positions (Su et al. 2021) add nothing and turn queries and keys instead.

B sentences, H heads, T tokens, D model width, K head width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .options import TransformerOptions

Rule = Callable[[Tensor], Tensor]
Rotation = Callable[[Tensor], Tensor]


def angles(positions: Tensor, width: int) -> Tensor:
    """(T, D/2): position / 10000^(2i/D), the argument of the i-th sine and cosine."""
    even = torch.arange(0, width, 2, device=positions.device)
    return positions[:, None] / torch.pow(10000.0, even / width)


def sinusoidal(positions: Tensor, width: int) -> Tensor:
    """The paper's: sine in the even channels, cosine in the odd ones."""
    turns = angles(positions, width)
    return torch.stack([turns.sin(), turns.cos()], dim=-1).flatten(-2)[:, :width]  # (T, D)


def sinusoidal_half(positions: Tensor, width: int) -> Tensor:
    """Marian's: the same sines in the first half of the channels, the cosines in the second."""
    turns = angles(positions, width)
    return torch.cat([turns.sin(), turns.cos()], dim=-1)[:, :width]  # (T, D)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair of neighbouring channels of x (B, H, T, K) by its angle in (T, K/2): as one complex number."""
    pairs = torch.view_as_complex((x if x.dtype == torch.float64 else x.float()).unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(turns), turns)).flatten(-2).to(x.dtype)


class Learned(nn.Module):
    """A table with one vector for each position."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(positions, width)

    def forward(self, positions: Tensor) -> Tensor:
        return self.table(positions)


class Positions(nn.Module):
    """How one stack, encoder or decoder, tells its tokens where they stand."""

    def __init__(self, options: TransformerOptions, own_rule: Rule | None) -> None:
        super().__init__()
        if (options.positions == "own") != (own_rule is not None):
            raise ValueError(
                f"positions = {options.positions!r} and {'a' if own_rule else 'no'} rule was given; "
                f'positions = "own" and a rule go together'
            )
        width = options.width
        self.rotary_width = options.key_width if options.positions == "rotary" else 0
        self.limit = options.max_positions if options.positions == "learned" else None
        rules: dict[str, Rule | None] = {
            "sinusoidal": lambda positions: sinusoidal(positions, width),
            "sinusoidal-half": lambda positions: sinusoidal_half(positions, width),
            "rotary": None,
            "none": None,
            "own": own_rule,
        }
        self.rule = Learned(options.max_positions, width) if self.limit else rules[options.positions]

    def add(self, x: Tensor, start: int) -> Tensor:
        """x (B, T, D) + the vectors of positions start, start + 1, ..."""
        end = start + x.shape[1]
        if self.limit is not None and end > self.limit:
            raise ValueError(
                f"a sequence of {end} tokens is longer than the learned table of {self.limit} positions; "
                f"raise max_positions or use sinusoidal positions, which have no end"
            )
        if self.rule is None:
            return x
        return x + self.rule(torch.arange(start, end, device=x.device))

    def rotation(self, start: int, length: int, copies: int, device: torch.device) -> Rotation:
        """How to turn queries and keys (B, H, copies·T, K) whose tokens begin at `start`; mostly not at all."""
        if not self.rotary_width:
            return lambda x: x
        positions = torch.arange(start, start + length, device=device)
        turns = angles(positions, self.rotary_width).repeat(copies, 1)
        return lambda x: rotate(x, turns)
