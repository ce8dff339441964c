"""How to search, and what a search returns; without torch."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

PENALTIES = ("mean", "paper")


@dataclass(frozen=True)
class Hypothesis:
    """A finished target: its ids without BOS and EOS, and its length-normalised log-probability, EOS counted.

    The score is NaN if it was not demanded and the search did without. The alignment, if it was demanded and the model
    has a head for it, is the weight with which that head looked from each target token, EOS last, at each source token,
    EOS last: (T + 1, S + 1) in float32. One that is cut would have gone on: its length limit ended it, not the model.
    """

    tokens: list[int]
    score: float
    alignment: "np.ndarray | None" = field(default=None, repr=False, compare=False)
    is_cut: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Demand:
    """What the target of one sentence has to be like, in ids."""

    prefix: list[int] = field(default_factory=list)  # how it begins
    # What it contains: of each phrase one of the ways to write it, in any order.
    phrases: list[list[list[int]]] = field(default_factory=list)
    max_length: int | None = None  # in place of the options'
    scored: bool = True  # false: nobody will look at its score, which greedy search finds sooner without
    aligned: bool = False  # whether its hypotheses come with their alignment
    draw: int = 0  # of sampling: equal sources get other samples where this differs


@dataclass(frozen=True)
class AlignmentHead:
    """Which head of which decoder block's cross-attention follows the words, counted from 0."""

    block: int
    head: int

    def __post_init__(self) -> None:
        if self.block < 0 or self.head < 0:
            raise ValueError(f"block is {self.block} and head {self.head}; expected numbers from 0 on")


class AligningHeads(NamedTuple):
    """What an alignment is read from: one head of a decoder block, or where none is named the mean of all of them."""

    block: int
    head: int | None


@dataclass(frozen=True)
class DecodingOptions:
    """Greedy search is `beam = 1`; a `temperature` turns search into sampling, of `n_best` samples."""

    beam: int = 5
    n_best: int = 1  # hypotheses returned per sentence, best first
    length_penalty: str = "mean"  # the sum of log-probabilities is divided by l^alpha, or ((5+l)/6)^alpha: paper
    alpha: float = 1.0  # 0: not divided at all
    min_length: int = 0  # tokens, EOS not counted
    max_length: int | None = None  # tokens, EOS not counted; none given: the source's and 50 more (paper 6.1)
    block_ngrams: int = 0  # no n-gram of this length twice; 0: nothing is blocked
    temperature: float | None = None  # none given: no sampling
    top_k: int = 0  # sample from the k likeliest words; 0: from all
    top_p: float = 1.0  # sample from the fewest words that have this probability together
    seed: int = 1  # of sampling

    def __post_init__(self) -> None:
        for name, least in (("beam", 1), ("n_best", 1), ("min_length", 0), ("block_ngrams", 0), ("top_k", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if self.temperature is None and self.n_best > self.beam:
            raise ValueError(f"n_best is {self.n_best}, but a beam of {self.beam} finds no more than {self.beam}")
        if self.length_penalty not in PENALTIES:
            raise ValueError(f"length_penalty is {self.length_penalty!r}; expected one of {', '.join(PENALTIES)}")
        if not 0 <= self.alpha < math.inf:
            raise ValueError(f"alpha is {self.alpha}; expected at least 0")
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise ValueError(f"max_length is {self.max_length}; expected at least 1 and min_length {self.min_length}")
        if self.temperature is not None and not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}; expected more than 0")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; expected more than 0 and at most 1")
