"""Forward, backward and Adam of `tiny`, `small` and `base`, side by side with torch.nn.Transformer.

The peer is set up as its documentation and tutorial say: embedding times √width, sinusoids with dropout,
nn.Transformer with causal and padding masks, a linear layer, CrossEntropyLoss, Adam; all with their defaults.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from benchmarks.machine import Timing, interleaved, peak_gflops, ratios
from clearhead.data.batching import Batch, make_batch
from clearhead.data.tokenizer import PAD, SPECIALS
from clearhead.model import SIZES, TransformerOptions
from clearhead.model.linear import multiply_in
from clearhead.model.positions import sinusoidal
from clearhead.model.transformer import Transformer
from clearhead.training.step import make_optimizer, update
from clearhead.versions import has_bfloat16

VOCABULARY, PAIRS, TOKENS, SMOOTHING, RATE = 8000, 256, 14, 0.1, 1e-4  # tokens: 13 words and EOS
ROUNDS = {"tiny": 11, "small": 7, "base": 3}
TARGETS = {("tiny", "float32"): 1.3, ("small", "float32"): 1.15, ("base", "float32"): 1.0}
TARGETS |= {("small", "bfloat16"): 1.7, ("base", "bfloat16"): 1.7}


class Peer(nn.Module):
    """torch.nn.Transformer with what it needs around it."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.width = options.width
        self.embedding = nn.Embedding(options.source_vocabulary, options.width)
        self.register_buffer("table", sinusoidal(torch.arange(512), options.width))
        self.dropout = nn.Dropout(options.dropout)
        self.transformer = nn.Transformer(
            options.width,
            options.heads,
            options.encoder_blocks,
            options.decoder_blocks,
            options.feed_forward,
            options.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(options.width, options.target_vocabulary, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, batch: Batch) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(batch.tgt_in.shape[1])
        src_padding, tgt_padding = batch.src == PAD, batch.tgt_in == PAD
        hidden = self.transformer(
            self._embed(batch.src),
            self._embed(batch.tgt_in),
            tgt_mask=causal,
            src_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_padding.float().masked_fill(tgt_padding, float("-inf")),
            memory_key_padding_mask=src_padding,
            tgt_is_causal=True,
        )
        return self.output(hidden)

    def _embed(self, ids: Tensor) -> Tensor:
        positions = self.get_buffer("table")[: ids.shape[1]]
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + positions)


def peer_step(model: Peer, batch: Batch, optimizer: torch.optim.Optimizer, low: bool) -> None:
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        loss = criterion(model(batch).flatten(0, 1), batch.tgt_out.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def step_gflop(options: TransformerOptions) -> float:
    """Multiplications and additions of all matrix products in a step; backward counts twice forward."""
    D, F, V, N = options.width, options.feed_forward, options.target_vocabulary, PAIRS * TOKENS
    attention = 4 * D * D + 2 * TOKENS * D  # projections and W_O; scores and weighted sum
    encoder = options.encoder_blocks * (attention + 2 * D * F)
    decoder = options.decoder_blocks * (2 * attention + 2 * D * F)
    return 3 * 2 * N * (encoder + decoder + V * D) / 1e9


@dataclass(frozen=True)
class Row:
    size: str
    precision: str
    ours: Timing
    theirs: Timing
    gflop: float
    peak: float

    @property
    def ratio(self) -> str:
        return ratios(self.ours, self.theirs)

    @property
    def cells(self) -> list[str]:
        speed = self.gflop / self.ours.median
        target = TARGETS.get((self.size, self.precision))
        return [
            self.size,
            self.precision,
            f"{self.ours}",
            f"{self.theirs}",
            self.ratio,
            f"{target}×" if target else "–",
            f"{speed:.0f}",
            f"{speed / self.peak:.0%}",
        ]


def measure(threads: int) -> list[Row]:
    torch.set_num_threads(threads)
    precisions = ["float32", "bfloat16"] if has_bfloat16() else ["float32"]
    return [_measure_size(size, precision) for size in ROUNDS for precision in precisions]


def _measure_size(size: str, precision: str) -> Row:
    named = SIZES[size]
    assert isinstance(named, TransformerOptions)
    options = replace(named, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    torch.manual_seed(1)
    low = precision == "bfloat16"
    batch = _random_batch()
    ours, theirs = Transformer(options), Peer(options)
    multiply_in(ours, torch.bfloat16 if low else torch.float32)
    optimizer, peers_optimizer = make_optimizer(ours), torch.optim.Adam(theirs.parameters(), lr=RATE)
    timings = interleaved(
        {
            "ours": lambda: update(ours, [batch], optimizer, RATE, SMOOTHING),
            "theirs": lambda: peer_step(theirs, batch, peers_optimizer, low),
        },
        ROUNDS[size],
    )
    peak = peak_gflops(torch.bfloat16 if low else torch.float32)
    return Row(size, precision, timings["ours"], timings["theirs"], step_gflop(options), peak)


def _random_batch() -> Batch:
    ids = torch.randint(SPECIALS, VOCABULARY, (2, PAIRS, TOKENS - 1)).tolist()
    return make_batch(list(zip(*ids, strict=True)))


HEADER = ["size", "precision", "ours, ms", "nn.Transformer, ms", "ratio", "aim", "GFLOP/s", "of peak"]
