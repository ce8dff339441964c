"""Paper 3.1, 3.3 and 3.4: residual connections, feed-forward, blocks, and the whole model (figure 1).

B sentences, S source tokens, T target tokens, D model width, F feed-forward width, V vocabulary,
W hypotheses per sentence.

The paper names no initialisation. Ours: matrices uniform with Glorot & Bengio's (2010) variance, biases zero,
embeddings normal with variance 1/D, as tensor2tensor, the authors' own code, has it: multiplied by √D they
have the size of the sinusoids that are added to them.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Cache, MultiHeadAttention
from .checks import check_ids
from .front_end import make_front_end
from .linear import Activation, Dropout, Linear
from .options import TransformerOptions
from .positions import Positions, Rotation, Rule

KeysValues = tuple[Tensor, Tensor]
READ_AT_ONCE = 1024  # steps of sources, padding counted, that a search has the encoder read in one go


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over all positions of a batch, padding included: here to show why LayerNorm is used.

    In training mode a sentence's numbers depend on its neighbours and on the padding; in eval mode they don't.
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, -2)).view_as(x)


NORMALIZERS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm, "batch": BatchNorm}


class Residual(nn.Module):
    """Paper 3.1 and 5.4: a sub-layer's output, dropped out, added to its input, normalised before or after."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.place = options.norm
        self.skip = options.skip
        self.norm = nn.Identity() if self.place == "none" else NORMALIZERS[options.normalizer](options.width)
        self.dropout = Dropout(options.dropout)

    def forward(self, x: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        """x and the result are (B, T, D)."""
        y = layer(self.norm(x)) if self.place == "pre" else layer(x)
        y = self.norm(y) if self.place == "branch" else y
        y = self.dropout(y)
        y = x + y if self.skip else y
        return self.norm(y) if self.place == "post" else y


ACTIVATIONS: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """Paper 3.3: the same two matrices for every position; or gated, or note 000's single ReLU(W_U c)."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        D, F_ = options.width, options.feed_forward
        self.gated = options.dense == "gated"
        self.activation = ACTIVATIONS[options.activation]
        self.outer: nn.Module
        if options.dense == "one":
            self.inner, self.outer = Linear(D, D, bias=False), nn.Identity()
        else:
            self.inner, self.outer = Linear(D, 2 * F_ if self.gated else F_), Linear(F_, D)

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            h, gate = self.inner(x).chunk(2, dim=-1)  # (B, T, F) each
            return self.outer(h * self.activation(gate))
        return self.outer(self.inner(x, then=self.activation))  # (B, T, D)


def _attention(options: TransformerOptions) -> MultiHeadAttention:
    return MultiHeadAttention(
        options.width,
        options.heads,
        options.key_width,
        options.score_scale,
        options.bias,
        options.output_projection,
    )


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward, each with its residual connection."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.attention = _attention(options)
        self.feed_forward = FeedForward(options)
        self.around_attention = Residual(options)
        self.around_feed_forward = Residual(options)

    def forward(self, x: Tensor, mask: Tensor, rotation: Rotation) -> Tensor:
        def look_around(x: Tensor) -> Tensor:
            q, k, v = self.attention.queries_keys_values(x)
            return self.attention.attend(rotation(q), rotation(k), v, mask)

        x = self.around_attention(x, look_around)
        return self.around_feed_forward(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Self-attention to what was said, cross-attention to the source if there is one, feed-forward."""

    def __init__(self, options: TransformerOptions, index: int) -> None:
        super().__init__()
        self.index = index
        self.attention = _attention(options)
        self.cross_attention = _attention(options) if options.encoder_blocks else None
        self.feed_forward = FeedForward(options)
        self.around_attention = Residual(options)
        self.around_cross_attention = Residual(options) if options.encoder_blocks else None
        self.around_feed_forward = Residual(options)

    def forward(self, x: Tensor, state: "DecoderState", mask: Tensor | None, rotation: Rotation) -> Tensor:
        def look_back(x: Tensor) -> Tensor:
            q, k, v = self.attention.queries_keys_values(x)
            past = state.cache.extend(self.index, rotation(k), v)
            return self.attention.attend(rotation(q), *past, mask)

        x = self.around_attention(x, look_back)
        if self.cross_attention is not None and self.around_cross_attention is not None:
            cross_attention = self.cross_attention

            def look_at_source(x: Tensor) -> Tensor:
                q = cross_attention.queries(x)
                return cross_attention.attend(q, *state.memory[self.index], state.memory_mask)

            x = self.around_cross_attention(x, look_at_source)
        return self.around_feed_forward(x, self.feed_forward)


class DecoderState:
    """The source as each decoder block sees it, stored once per sentence, and the cache of the target so far."""

    def __init__(self, memory: list[KeysValues], memory_mask: Tensor) -> None:
        self.memory = memory  # for each block keys and values (B, H, S, K); nothing without an encoder
        self.memory_mask = memory_mask  # (B, 1, 1, S)
        self.cache = Cache()

    @classmethod
    def join(cls, states: list["DecoderState"]) -> "DecoderState":
        """The sentences of all of them, which nothing was said to yet, laid out for a search to read step by step."""
        longest = max(state.memory_mask.shape[3] for state in states)
        memory = []
        for block in zip(*(state.memory for state in states), strict=True):
            keys, values = zip(*block, strict=True)
            memory.append((_stack(keys, longest), _stack(values, longest)))
        masks = [F.pad(state.memory_mask, (0, longest - state.memory_mask.shape[3])) for state in states]
        return cls(memory, torch.cat(masks))

    def repeat(self, n: int) -> "DecoderState":
        self.cache.repeat(n)
        return self

    def select(self, rows: Tensor) -> "DecoderState":
        self.cache.select(rows)
        return self

    def keep(self, sentences: Tensor) -> "DecoderState":
        self.memory = [(k[sentences], v[sentences]) for k, v in self.memory]
        self.memory_mask = self.memory_mask[sentences]
        self.cache.keep(sentences)
        return self


def _stack(parts: Sequence[Tensor], longest: int) -> Tensor:
    """(B, H, S, K) of several parts, each with an S of its own, below each other; nothing where one is shorter."""
    if len(parts) == 1:
        return parts[0].contiguous()
    _, H, _, K = parts[0].shape
    stacked = parts[0].new_zeros(sum(len(part) for part in parts), H, longest, K)
    for rows, part in zip(stacked.split([len(part) for part in parts]), parts, strict=True):
        rows[:, :, : part.shape[2]] = part
    return stacked


class Transformer(nn.Module):
    """Figure 1 of the paper: embeddings, N encoder blocks, N decoder blocks, output layer.

    With no encoder block it has only the right half, without cross-attention: a language model, which the source
    tells nothing.
    """

    def __init__(self, options: TransformerOptions, rule: Rule | None = None) -> None:
        super().__init__()
        self.options = options
        D = options.width
        self.embedding_scale = D**0.5 if options.scale_embedding else 1.0
        self.source_embedding = make_front_end(options, self.embedding_scale)
        self.target_embedding = (
            self.source_embedding
            if isinstance(self.source_embedding, nn.Embedding) and options.tied == "all"
            else nn.Embedding(options.target_vocabulary, D)
        )
        self.source_positions = Positions(options, rule)
        self.target_positions = Positions(options, rule)
        self.dropout = Dropout(options.dropout)
        self.encoder = nn.ModuleList(EncoderBlock(options) for _ in range(options.encoder_blocks))
        self.decoder = nn.ModuleList(DecoderBlock(options, i) for i in range(options.decoder_blocks))
        self.encoder_norm = _final_norm(options)
        self.decoder_norm = _final_norm(options)
        self.output = Linear(D, options.target_vocabulary, bias=options.output_bias)
        if options.tied != "none":
            self.output.weight = self.target_embedding.weight
        _initialise(self)

    def read(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """The encoder: a source, (B, S) ids or (B, S, F) features, to the (B, S', D) that every decoder block sees."""
        return self._read(src, src_mask)[0]

    def encode(self, src: Tensor, src_mask: Tensor) -> DecoderState:
        """Read the source; cross-attention's keys and values are projected here, once.

        Where a search asks for it, a part of the sentences at a time: none is padded to one far longer than its
        neighbours, and what is computed stays in the CPU's cache.
        """
        self.source_embedding.check(src, src_mask)
        if self.training or torch.is_grad_enabled():
            return self._encode(src, src_mask)
        parts = max(1, src_mask.numel() // READ_AT_ONCE) if src.device.type == "cpu" else 1
        return DecoderState.join(
            [self._encode(*_cut(*part)) for part in zip(src.chunk(parts), src_mask.chunk(parts), strict=True)]
        )

    def decode(self, tgt: Tensor, state: DecoderState) -> Tensor:
        """Extend every hypothesis by `tgt` (B·W, T); the hidden state at each new position, (B·W, T, D).

        All T tokens at once is teacher forcing; one token at a time is search.
        """
        rows, T = tgt.shape
        B, W, start = len(state.memory_mask), state.cache.hypotheses, state.cache.length
        if rows != B * W:
            raise ValueError(f"the target has {rows} rows; expected {B} sentences × {W} hypotheses")
        embedded = self.target_embedding(tgt) * self.embedding_scale
        x = self.dropout(self.target_positions.add(embedded, start))
        x = x.view(B, W * T, -1)  # the hypotheses of a sentence side by side: they look at the same source
        mask = state.cache.open(B, T, tgt.device)
        rotation = self.target_positions.rotation(start, T, W, tgt.device)
        for block in self.decoder:
            x = block(x, state, mask, rotation)
        return self.decoder_norm(x).view(rows, T, -1)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.output(hidden)

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        """Hidden states (B, T, D) of a whole target."""
        check_ids("target", tgt, self.options.target_vocabulary)
        self.source_embedding.check(src, src_mask)
        return self.decode(tgt, self._encode(src, src_mask))

    def _encode(self, src: Tensor, src_mask: Tensor) -> DecoderState:
        layers = [block.cross_attention for block in self._decoder_blocks() if block.cross_attention is not None]
        if not layers:
            return DecoderState([], src_mask[:, None, None])
        memory, mask = self._read(src, src_mask)
        return DecoderState([layer.keys_values(memory) for layer in layers], mask)

    def _read(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, Tensor]:
        """What the encoder gives, and its mask (B, 1, 1, S')."""
        embedded, seen = self.source_embedding.read(src, src_mask)
        x, mask = self.dropout(self.source_positions.add(embedded, 0)), seen[:, None, None]
        rotation = self.source_positions.rotation(0, x.shape[1], 1, src.device)
        for block in self.encoder:
            x = block(x, mask, rotation)
        return self.encoder_norm(x), mask

    def _decoder_blocks(self) -> list[DecoderBlock]:
        return [block for block in self.decoder if isinstance(block, DecoderBlock)]


def _cut(src: Tensor, src_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Without the steps at the end that no row of the mask lets be seen."""
    seen = int(src_mask.any(dim=0).nonzero().max()) + 1
    return src[:, :seen], src_mask[:, :seen]


def _final_norm(options: TransformerOptions) -> nn.Module:
    return NORMALIZERS[options.normalizer](options.width) if options.ends_with_norm else nn.Identity()


def _initialise(model: Transformer) -> None:
    for module in model.modules():
        if isinstance(module, Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():  # after all others: these are among them, or share their weight with one
        if isinstance(module, MultiHeadAttention):
            for kind in module.projections.weight.split(module.joined):  # W_Q, W_K, W_V, each in its own size
                nn.init.xavier_uniform_(kind)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=model.options.width**-0.5)
