"""Paper 3.2: attention weights, scaled dot product, multi-head attention; and the cache that search needs.

B sentences, T positions that look, S positions looked at, H heads, K head width, D model width,
W hypotheses per sentence, N slots of the cache.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .linear import Linear

FEW_SENTENCES = 16  # for which one call of the fused kernel takes less time than six plain ones
# With fewer keys plain products are faster in training on the CPU: torch's softmax, alone or in the fused kernel, goes
# number by number below 16, and forward and back in bfloat16 the fused kernel takes 4 to 21 times as long as they do.
FEW_KEYS = {torch.float32: 16, torch.bfloat16: 256}


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(q·kᵀ·scale) over the positions that the mask lets be seen; each row sums to one."""
    scores = q @ k.transpose(-2, -1) * scale  # (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def causal_mask(length: int, past: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, past + T): a position sees itself and everything before it."""
    everything = torch.ones(length, past + length, dtype=torch.bool, device=device)
    return everything.tril(diagonal=past)


class ScaledDotProduct(nn.Module):
    """Paper 3.2.1: softmax(q·kᵀ·scale)·v on the fused kernel, which never stores the weights.

    For a single query in each of many sentences, as in a step of a search, there is nothing to be saved, and plain
    products are faster; for few sentences they are more calls. In training they are faster for few keys too.

    It has no parameters, and it is the one place to hook: whoever wants the weights recomputes them from
    (q, k, v, mask) with `attention_weights`.
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if q.shape[2] == 1 and len(q) > FEW_SENTENCES:
            return attention_weights(q, k, mask, self.scale) @ v  # (B, H, 1, K)
        if q.requires_grad and q.device.type == "cpu":
            if k.shape[2] < FEW_KEYS.get(q.dtype, 0):
                return FewKeys.apply(q, k, v, mask, self.scale)
            if q.dtype == torch.bfloat16:
                heads = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), mask, scale=self.scale)
                return heads.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, mask, scale=self.scale)  # (B, H, T, K)


class FewKeys(torch.autograd.Function):
    """The same by plain products that keep the weights, for training with few keys; the softmax is in float32."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        B, H, T, K = q.shape
        q, k, v = (x.reshape(B * H, -1, K) for x in (q, k, v))
        scores = torch.bmm(q, k.transpose(1, 2)).float().mul_(scale)  # (B·H, T, S)
        if mask is not None:
            scores.view(B, H, T, -1).masked_fill_(~mask, float("-inf"))
        weights = scores.sub_(scores.amax(dim=2, keepdim=True)).exp_()
        weights = weights.div_(weights.sum(dim=2, keepdim=True)).to(q.dtype)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return torch.bmm(weights, v).view(B, H, T, K)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        B, H, T, K = gradients[0].shape
        of_sum = gradients[0].reshape(B * H, T, K)
        of_weights = torch.bmm(of_sum, v.transpose(1, 2)).float().mul_(weights)
        of_scores = of_weights.sub_(weights * of_weights.sum(dim=2, keepdim=True)).mul_(ctx.scale).to(q.dtype)
        found = of_scores @ k, of_scores.transpose(1, 2) @ q, weights.transpose(1, 2) @ of_sum
        return *(of_one.view(B, H, -1, K) for of_one in found), None, None


class MultiHeadAttention(nn.Module):
    """Paper 3.2.2: h heads, each with W_Q, W_K, W_V of its own, concatenated and multiplied by W_O.

    Self-attention is `attention(x, x, mask)`, cross-attention `attention(x, memory, mask)`.
    """

    def __init__(
        self, width: int, heads: int, head_width: int, scale: float, bias: bool, output_projection: bool
    ) -> None:
        super().__init__()
        self.heads = heads
        self.joined = heads * head_width
        # W_Q of all heads, then W_K, then W_V: one product where all three read the same input.
        self.projections = Linear(width, 3 * self.joined, bias=bias)
        self.dot_product = ScaledDotProduct(scale)
        self.output = Linear(self.joined, width, bias=bias) if output_projection else nn.Identity()

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Each position of x (B, T, D) looks at memory (B, S, D)."""
        return self.attend(self.queries(x), *self.keys_values(memory), mask)

    def queries(self, x: Tensor) -> Tensor:
        (q,) = self._split(self.projections(x, slice(0, self.joined)))
        return q

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self._split(self.projections(memory, slice(self.joined, None)))
        return k, v

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `queries` and `keys_values` of the same x give, in one product."""
        q, k, v = self._split(self.projections(x))
        return q, k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Weighted sum in each head, concatenation, W_O."""
        heads = self.dot_product(q, k, v, mask)
        B, H, T, K = heads.shape
        return self.output(heads.transpose(1, 2).reshape(B, T, H * K))  # (B, T, D)

    def matrices(self, head: int) -> tuple[Tensor, Tensor, Tensor]:
        """W_Q, W_K and W_V of one head, each (K, D), in the notes' column convention: q = W_Q x."""
        per_head = self.projections.weight.view(3, self.heads, -1, self.projections.in_features)
        return per_head[0, head], per_head[1, head], per_head[2, head]

    def _split(self, projected: Tensor) -> tuple[Tensor, ...]:
        B, T, joined = projected.shape
        kinds = joined // self.joined
        return projected.view(B, T, kinds, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()  # (B, H, T, K) each


class Cache:
    """Keys and values of all that was decoded so far, in every block; the only class that knows how they lie.

    A slot holds one token of one hypothesis. Slots belong to the sentence, and `seen` says which of them are
    a hypothesis's own past. So when beam search reorders its hypotheses only `seen` is reordered, and no key
    moves; hypotheses that share a past share its slots. Slots that nobody sees any more are dropped now and
    then, so that about T + a few W are left where a cache by rows would hold T·W.
    """

    def __init__(self) -> None:
        self.length = 0  # tokens of each hypothesis
        self.hypotheses = 1
        self._slots = 0
        self._filled = 0  # slots that were in use before the tokens now being added
        self._drop_at = 0  # look for unseen slots when there are as many as this
        self._seen: Tensor | None = None  # (B, W, N); with one hypothesis all slots are its own
        self._keys: list[Tensor] = []  # for each block (B, H, capacity, K)
        self._values: list[Tensor] = []

    def open(self, sentences: int, length: int, device: torch.device) -> Tensor | None:
        """Make room for `length` more tokens in each hypothesis; the mask (…, W·T, N) by which they look back."""
        W, T = self.hypotheses, length
        self._filled, self._slots = self._slots, self._slots + W * T
        self.length += T
        if W == 1:
            return None if T == 1 else causal_mask(T, self._filled, device)
        itself = torch.eye(W, dtype=torch.bool, device=device)
        own = itself.repeat_interleave(T, dim=1)  # (W, W·T)
        if self._seen is None:
            self._seen = own.new_ones(sentences, W, self._filled)
        past = self._seen.repeat_interleave(T, dim=1)  # (B, W·T, N)
        new = torch.kron(itself, causal_mask(T, device=device)) if T > 1 else itself
        self._seen = torch.cat([self._seen, own.expand(sentences, -1, -1)], dim=2)
        if T == 1:
            return self._seen[:, None]
        return torch.cat([past, new.expand(sentences, -1, -1)], dim=2)[:, None]  # (B, 1, W·T, N)

    def extend(self, block: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Fill the opened slots of a block with (B, H, W·T, K); all its keys and values so far."""
        if block == len(self._keys):  # the first tokens: kept as they are, so training copies nothing
            self._keys.append(k)
            self._values.append(v)
            return k, v
        for kept, new in ((self._keys, k), (self._values, v)):
            if kept[block].shape[2] < self._slots:
                kept[block] = _with_capacity(kept[block][:, :, : self._filled], 2 * self._slots)
            kept[block][:, :, self._filled : self._slots] = new
        return self._keys[block][:, :, : self._slots], self._values[block][:, :, : self._slots]

    def repeat(self, n: int) -> None:
        if self.hypotheses > 1:
            raise ValueError(f"there are {self.hypotheses} hypotheses per sentence already; repeat comes once")
        self.hypotheses = n

    def select(self, rows: Tensor) -> None:
        if self._seen is None:
            return  # one hypothesis per sentence, or nothing decoded yet: every row is its own past
        self._seen = self._seen.flatten(0, 1)[rows].view_as(self._seen)
        if self._slots >= self._drop_at:
            self._drop_unseen(self._seen)

    def keep(self, sentences: Tensor) -> None:
        if self._seen is not None:
            self._seen = self._seen[sentences]
        self._keys = [k[:, :, : self._slots][sentences] for k in self._keys]
        self._values = [v[:, :, : self._slots][sentences] for v in self._values]

    def _drop_unseen(self, seen: Tensor) -> None:
        live = seen.any(dim=1)  # (B, N)
        most = int(live.sum(dim=1).max())
        if most <= 0.75 * self._slots:
            places = live.int().argsort(dim=1, descending=True, stable=True)[:, :most]
            self._seen = seen.gather(2, places[:, None].expand(-1, seen.shape[1], -1))
            capacity = most + most // 2 + 16 * self.hypotheses
            for kept in (self._keys, self._values):
                for block, old in enumerate(kept):
                    index = places[:, None, :, None].expand(-1, old.shape[1], -1, old.shape[3])
                    kept[block] = _with_capacity(old.gather(2, index), capacity)
            self._slots = most
        self._drop_at = self._slots + self._slots // 2 + 8 * self.hypotheses


def _with_capacity(kept: Tensor, slots: int) -> Tensor:
    B, H, filled, K = kept.shape
    roomier = kept.new_empty(B, H, slots, K)
    roomier[:, :, :filled] = kept
    return roomier
