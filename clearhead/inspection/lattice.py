"""Every hypothesis that a beam search kept, dropped or finished, seen from outside: the search itself knows nothing.

W beam width, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from clearhead.data.tokenizer import EOS
from clearhead.decoding import DecodingOptions, Hypothesis
from clearhead.decoding.beam import length_penalty
from clearhead.model import Seq2Seq, State


@dataclass
class Node:
    """A hypothesis after its t-th token; the root has none."""

    n: int
    t: int
    rank: int  # among the hypotheses of this step; 0 is the best
    id: int
    logp: float  # of this token
    sum: float  # of all tokens so far
    score: float  # as the search compares them at the end
    parent: int | None
    state: str = "pruned"  # until a successor is seen: then alive, or finished


@dataclass
class Lattice:
    size: int
    length_penalty: str
    alpha: float
    nodes: list[Node]
    best: int  # the node with which the translation ends

    def named(self, words: Sequence[int]) -> "Lattice":
        """With words[i] in the place of every i."""
        nodes = [node if node.parent is None else replace(node, id=words[node.id]) for node in self.nodes]
        return replace(self, nodes=nodes)


class Watched:
    """A model that says what it says, and notes what one sentence's search asks it."""

    def __init__(self, model: Seq2Seq, options: DecodingOptions) -> None:
        self.output = model.output
        self._model = model
        self._options = options
        self.nodes = [Node(0, 0, 0, -1, 0.0, 0.0, 0.0, None)]
        self._rows = [0]  # the node of each hypothesis
        self._log_p: Tensor | None = None  # (W, V) after the last step
        self.parents: list[int] = []

    def encode(self, src: Tensor, src_mask: Tensor) -> "WatchedState":
        return WatchedState(self._model.encode(src, src_mask), self)

    def decode(self, tgt: Tensor, state: "WatchedState") -> Tensor:
        if self._log_p is None:
            self._rows = [0] * len(tgt)
        else:
            self._extend(tgt[:, 0].tolist(), self._log_p)
        return self._model.decode(tgt, state.inner)

    def logits(self, hidden: Tensor) -> Tensor:
        logits = self._model.logits(hidden)
        self._log_p = logits.float().log_softmax(dim=-1)
        self.parents = list(range(len(self._rows)))
        return logits

    def __call__(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        return self._model(src, src_mask, tgt)

    def lattice(self, found: list[Hypothesis]) -> Lattice:
        """With the ends of the hypotheses that were found, best first."""
        places = {tuple(self._path(node)): node for node in self.nodes}
        ends = [self._end(places[tuple(hypothesis.tokens)], rank, hypothesis) for rank, hypothesis in enumerate(found)]
        options = self._options
        return Lattice(options.beam, options.length_penalty, options.alpha, self.nodes, ends[0].n)

    def _extend(self, words: list[int], log_p: Tensor) -> None:
        rows = []
        for rank, (word, row) in enumerate(zip(words, self.parents, strict=True)):
            parent = self.nodes[self._rows[row]]
            rows.append(self._add(parent, rank, word, float(log_p[row, word])).n)
        self._rows = rows

    def _add(self, parent: Node, rank: int, word: int, logp: float) -> Node:
        t, total = parent.t + 1, parent.sum + logp
        parent.state = "alive"
        node = Node(len(self.nodes), t, rank, word, logp, total, total / float(self._penalty(t)), parent.n)
        self.nodes.append(node)
        return node

    def _end(self, parent: Node, rank: int, hypothesis: Hypothesis) -> Node:
        total = hypothesis.score * float(self._penalty(parent.t + 1))
        node = self._add(parent, rank, EOS, total - parent.sum)
        node.score, node.state = hypothesis.score, "finished"
        return node

    def _penalty(self, length: int) -> Any:
        return length_penalty(length, self._options)

    def _path(self, node: Node) -> list[int]:
        ids = []
        while node.parent is not None:
            ids.append(node.id)
            node = self.nodes[node.parent]
        return ids[::-1]


class WatchedState:
    """The state of the model, and which hypothesis went on from which."""

    def __init__(self, inner: State, watched: Watched) -> None:
        self.inner = inner
        self._watched = watched

    def repeat(self, n: int) -> "WatchedState":
        return WatchedState(self.inner.repeat(n), self._watched)

    def select(self, rows: Tensor) -> "WatchedState":
        self._watched.parents = rows.tolist()
        return WatchedState(self.inner.select(rows), self._watched)

    def keep(self, sentences: Tensor) -> "WatchedState":
        return WatchedState(self.inner.keep(sentences), self._watched)
