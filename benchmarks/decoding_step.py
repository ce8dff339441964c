"""The time of one step of our beam search as the target grows, reordering included, and its share of the peak."""

import statistics
import time
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from benchmarks.machine import THREADS, peak_gflops
from benchmarks.results import Cell, Column, Table
from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding import DecodingOptions
from clearhead.decoding.beam import beam_search
from clearhead.model import SIZES, TransformerOptions
from clearhead.model.linear import Linear
from clearhead.model.transformer import DecoderState, Transformer

ASKS = "What does a step of beam search take?"
VOCABULARY, SENTENCES, BEAM, SOURCE = 8000, 64, 5, 20
STEPS = {"tiny": [10, 50, 100, 200], "base": [10, 20]}
ROUNDS = {"tiny": 5, "base": 3}
WINDOW = 3  # a step's time is the median of those from step - 3 to step + 3
TIME, SHARE = Column("ms"), Column("of the peak")
ABOUT = f"""{SENTENCES} sentences × beam {BEAM} = {SENTENCES * BEAM} rows, sources of {SOURCE} tokens, vocabulary
{VOCABULARY:,}: the whole step of our native engine, from one call of the decoder to the next. The peak is that of a
plain product of two 1,024² matrices."""


@dataclass
class Clocked:
    """A model that notes when each decoding step begins; from one to the next is a whole step of the search."""

    model: Transformer
    begun: list[float] = field(default_factory=list)

    @property
    def output(self) -> Linear:
        return self.model.output

    def encode(self, src: Tensor, src_mask: Tensor) -> DecoderState:
        return self.model.encode(src, src_mask)

    def decode(self, tgt: Tensor, state: DecoderState) -> Tensor:
        self.begun.append(time.perf_counter())
        return self.model.decode(tgt, state)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.model.logits(hidden)

    def __call__(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        return self.model(src, src_mask, tgt)


def measure(quick: bool) -> list[Table]:
    torch.set_num_threads(THREADS)
    tables = []
    for size in ["tiny"] if quick else STEPS:
        options = replace(_named(size), source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
        seconds = seconds_of_steps(options, STEPS[size], 1 if quick else ROUNDS[size])
        peak = peak_gflops()
        rows: dict[str, dict[str, Cell]] = {
            f"step {step}": {TIME.name: [1e3 * one for one in each], SHARE.name: _share(options, step, each, peak)}
            for step, each in seconds.items()
        }
        tables.append(Table(f"`{size}`", [TIME, SHARE], rows))
    return [replace(tables[0], about=ABOUT), *tables[1:]]


def _named(size: str) -> TransformerOptions:
    named = SIZES[size]
    assert isinstance(named, TransformerOptions)
    return named


def _share(options: TransformerOptions, step: int, seconds: list[float], peak: float) -> str:
    gflops = step_gflop(options, step) / statistics.median(seconds)
    return f"{gflops / peak:.0%} ({gflops:,.0f} of {peak:,.0f} GFLOP/s)"


def step_gflop(options: TransformerOptions, step: int) -> float:
    """Multiplications and additions of all products in one step; keys and values of the source are already there."""
    D, F, V = options.width, options.feed_forward, options.target_vocabulary
    block = 4 * D * D + 2 * D * D + 2 * D * F + 2 * step * D + 2 * SOURCE * D
    return 2 * SENTENCES * BEAM * (options.decoder_blocks * block + V * D) / 1e9


def seconds_of_steps(options: TransformerOptions, wanted: list[int], rounds: int) -> dict[int, list[float]]:
    """Seconds of a step around each of those wanted, for each round."""
    torch.manual_seed(1)
    model = Transformer(options).eval()
    src, src_mask = pad_sources(torch.randint(SPECIALS, VOCABULARY, (SENTENCES, SOURCE)).tolist())
    longest = max(wanted) + WINDOW + 1
    search = DecodingOptions(beam=BEAM, min_length=longest, max_length=longest)  # nobody leaves early
    seconds: dict[int, list[float]] = {step: [] for step in wanted}
    for turn in range(rounds + 1):
        clocked = Clocked(model)
        beam_search(clocked, src, src_mask, search)
        steps = [after - before for before, after in zip(clocked.begun, clocked.begun[1:], strict=False)]
        for step in wanted if turn else []:
            seconds[step].append(statistics.median(steps[step - WINDOW : step + WINDOW + 1]))
    return seconds
