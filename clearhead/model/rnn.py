"""The RNN seq2seq of notes 000 and 003, which the Transformer replaces: same protocol, one token after another.

The encoder is bidirectional. Without attention the decoder gets one fixed context vector, the encoder's last
states (Cho et al. 2014); with attention it gets a new one at each step (Bahdanau, Cho & Bengio 2015, A.1.2).

B sentences, S source tokens, T target tokens, D width, W hypotheses per sentence, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .checks import check_ids
from .front_end import make_front_end
from .linear import Dropout, Linear
from .options import RNNOptions

CELLS: dict[str, Callable[[int, int], nn.Module]] = {"tanh": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
NETWORKS: dict[str, Callable[..., nn.RNNBase]] = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class AdditiveAttention(nn.Module):
    """Bahdanau's: weights = softmax(vᵀ tanh(W query + U key)); hook here, as with ScaledDotProduct."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = Linear(width, width, bias=False)  # W_a
        self.key = Linear(2 * width, width, bias=False)  # U_a, applied once per sentence by `keys`
        self.v = nn.Parameter(torch.empty(width))

    def keys(self, memory: Tensor) -> Tensor:
        return self.key(memory)  # (B, S, 2D) -> (B, S, D)

    def weights(self, hidden: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """(B, W, S) for decoder states (B, W, D), keys (B, S, D) and a mask (B, S)."""
        energy = torch.tanh(self.query(hidden)[:, :, None] + keys[:, None])  # (B, W, S, D)
        scores = energy.to(self.v.dtype) @ self.v
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(dim=-1)

    def forward(self, hidden: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        return self.weights(hidden, keys, mask) @ values  # (B, W, 2D)


class RNNState:
    """The source, stored once per sentence, and for each layer the cell's state of every hypothesis."""

    def __init__(self, keys: Tensor, values: Tensor, mask: Tensor, cells: list[tuple[Tensor, ...]]) -> None:
        self.keys = keys  # (B, S, D); without attention unused and the same as values
        self.values = values  # (B, S, 2D); without attention (B, 1, 2D), the fixed context
        self.mask = mask  # (B, S)
        self.cells = cells  # for each layer (hidden,), or an LSTM's (hidden, memory), each (B·W, D)

    def repeat(self, n: int) -> "RNNState":
        cells = [tuple(part.repeat_interleave(n, dim=0) for part in layer) for layer in self.cells]
        return RNNState(self.keys, self.values, self.mask, cells)

    def select(self, rows: Tensor) -> "RNNState":
        cells = [tuple(part[rows] for part in layer) for layer in self.cells]
        return RNNState(self.keys, self.values, self.mask, cells)

    def keep(self, sentences: Tensor) -> "RNNState":
        B = len(self.mask)
        cells = [tuple(part.unflatten(0, (B, -1))[sentences].flatten(0, 1) for part in c) for c in self.cells]
        return RNNState(self.keys[sentences], self.values[sentences], self.mask[sentences], cells)


class RNN(nn.Module):
    """Encoder RNN, decoder RNN, and between them one context vector or attention."""

    def __init__(self, options: RNNOptions) -> None:
        super().__init__()
        self.options = options
        D = options.width
        self.source_embedding = make_front_end(options)
        self.target_embedding = (
            self.source_embedding
            if isinstance(self.source_embedding, nn.Embedding) and options.tied == "all"
            else nn.Embedding(options.target_vocabulary, D)
        )
        between_layers = options.dropout if options.layers > 1 else 0.0
        encoder = NETWORKS[options.cell]
        self.encoder = (
            encoder(D, D, options.layers, batch_first=True, bidirectional=True, dropout=between_layers)
            if options.encoder
            else None
        )
        # W_s: s_0 from the backward state
        self.start = nn.ModuleList(Linear(D, D) for _ in range(options.layers if options.encoder else 0))
        self.attention = AdditiveAttention(D) if options.attention and options.encoder else None
        cell = CELLS[options.cell]
        context = 2 * D if options.encoder else 0
        self.decoder = nn.ModuleList(cell(D + context if i == 0 else D, D) for i in range(options.layers))
        self.join = Linear(D + context, D)  # the deep output: state and context to the vector that is read out
        self.output = Linear(D, options.target_vocabulary, bias=False)
        if options.tied != "none":
            self.output.weight = self.target_embedding.weight
        self.dropout = Dropout(options.dropout)
        self._initialise()

    def encode(self, src: Tensor, src_mask: Tensor) -> RNNState:
        self.source_embedding.check(src, src_mask)
        if not torch.equal(src_mask, torch.arange(src.shape[1], device=src.device) < src_mask.sum(dim=1)[:, None]):
            raise ValueError("src_mask has gaps; an RNN reads on from left to right and expects padding at the end")
        if self.encoder is None:
            nothing = self.output.weight.new_zeros(len(src), 1, 0)
            return RNNState(nothing, nothing, src_mask, self._blank_cells(len(src)))
        embedded, src_mask = self.source_embedding.read(src, src_mask)
        lengths = src_mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(self.dropout(embedded), lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True, total_length=src_mask.shape[1])  # (B, S, 2D)
        hidden = last[0] if isinstance(last, tuple) else last  # (layers·2, B, D), forward and backward
        forward, backward = hidden.unflatten(0, (-1, 2)).unbind(1)
        cells = self._first_cells(backward)
        if self.attention is not None:
            return RNNState(self.attention.keys(memory), memory, src_mask, cells)
        context = torch.cat([forward[-1], backward[-1]], dim=-1)[:, None]  # (B, 1, 2D)
        return RNNState(context, context, src_mask, cells)

    def decode(self, tgt: Tensor, state: RNNState) -> Tensor:
        """Extend every hypothesis by `tgt` (B·W, T), one token after another; hidden states (B·W, T, D)."""
        rows = len(state.cells[0][0])
        if len(tgt) != rows:
            raise ValueError(f"the target has {len(tgt)} rows; expected {rows}")
        embedded = self.dropout(self.target_embedding(tgt))
        return torch.stack([self._step(x, state) for x in embedded.unbind(dim=1)], dim=1)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.output(hidden)

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        """Hidden states (B, T, D) of a whole target."""
        check_ids("target", tgt, self.options.target_vocabulary)
        return self.decode(tgt, self.encode(src, src_mask))

    def _step(self, x: Tensor, state: RNNState) -> Tensor:
        """One token (B·W, D): where to look, given the state so far; then every layer's cell."""
        context = self._context(state.cells[-1][0], state)
        below = torch.cat([x, context], dim=-1)
        cells: list[tuple[Tensor, ...]] = []
        for i, (cell, before) in enumerate(zip(self.decoder, state.cells, strict=True)):
            after = cell(below, before if len(before) > 1 else before[0])
            cells.append(after if isinstance(after, tuple) else (after,))
            below = cells[i][0] if i + 1 == len(self.decoder) else self.dropout(cells[i][0])
        state.cells = cells
        return self.dropout(torch.tanh(self.join(torch.cat([below, context], dim=-1))))

    def _context(self, hidden: Tensor, state: RNNState) -> Tensor:
        B = len(state.mask)
        hidden = hidden.view(B, -1, hidden.shape[-1])  # (B, W, D)
        if self.attention is None:
            return state.values.expand(B, hidden.shape[1], -1).flatten(0, 1)
        return self.attention(hidden, state.keys, state.values, state.mask).flatten(0, 1)  # (B·W, 2D)

    def _first_cells(self, backward: Tensor) -> list[tuple[Tensor, ...]]:
        hidden = [torch.tanh(start(h)).to(h.dtype) for start, h in zip(self.start, backward, strict=True)]
        return [(h, torch.zeros_like(h)) if self.options.cell == "lstm" else (h,) for h in hidden]

    def _blank_cells(self, sentences: int) -> list[tuple[Tensor, ...]]:
        parts = 2 if self.options.cell == "lstm" else 1
        blank = self.output.weight.new_zeros(sentences, self.options.width)
        return [(blank,) * parts for _ in range(self.options.layers)]

    def _initialise(self) -> None:
        """As the Transformer: Glorot uniform, biases zero, embeddings of small variance; recurrences orthogonal."""
        for name, parameter in self.named_parameters():
            if "weight_hh" in name:
                for gate in parameter.split(parameter.shape[1]):  # each gate's matrix (Saxe et al. 2014)
                    nn.init.orthogonal_(gate)
            elif isinstance(self.get_submodule(name.rpartition(".")[0]), nn.Embedding) or name == "attention.v":
                nn.init.normal_(parameter, std=self.options.width**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)
