"""Target tokens per second of a bare training step: forward, backward and optimizer of one batch, no data pipeline."""

import json
import statistics
from dataclasses import asdict, replace

import torch

from benchmarks.machine import NOT_IN_HARDWARE, THREADS, peak_gflops
from benchmarks.peers import Sizes
from benchmarks.results import HIGHER, Cell, Column, Table
from benchmarks.rounds import Start, started
from clearhead.model import SIZES, TransformerOptions
from clearhead.versions import has_bfloat16

ASKS = "How fast does it train?"
VOCABULARY, PAIRS, TOKENS = 8000, 256, 14  # tokens: 13 words and EOS
ROUNDS = {"tiny": 9, "small": 5, "base": 3}
QUICK_ROUNDS = {"tiny": 3}
ABOUT = f"""A bare step (forward, backward, optimizer; no data pipeline) on {PAIRS} pairs of {TOKENS} tokens,
vocabulary {VOCABULARY:,}, label smoothing, embeddings tied, {THREADS} threads. The peers have their own defaults in
all else. The second column is the same step with bfloat16: ours by its own option, theirs under `torch.autocast`. The
peak is that of a plain product of two 1,024² matrices in float32 (in bfloat16 for the second column)."""

SPEED = Column("float32, target tokens/s", HIGHER)
LOW_SPEED = Column("bfloat16, target tokens/s", HIGHER)
SHARE = Column("of the peak")
LOW_SHARE = Column("of the bfloat16 peak")


def measure(quick: bool) -> list[Table]:
    tables = [
        measure_step(f"`{name}`", sizes_of(name), rounds)
        for name, rounds in (QUICK_ROUNDS if quick else ROUNDS).items()
    ]
    return [replace(tables[0], about=ABOUT), *tables[1:]]


def sizes_of(name: str, vocabulary: int = VOCABULARY, pairs: int = PAIRS, tokens: int = TOKENS) -> Sizes:
    named = SIZES[name]
    assert isinstance(named, TransformerOptions)
    return Sizes(
        named.width,
        named.heads,
        named.feed_forward,
        named.encoder_blocks,
        named.decoder_blocks,
        vocabulary,
        pairs,
        tokens,
        THREADS,
        named.dropout,
    )


def starts(sizes: Sizes) -> dict[str, Start]:
    asked = [json.dumps(asdict(sizes))]
    return {
        "Clearhead": Start("step_clearhead", asked),
        "torch.nn.Transformer": Start("step_torch", asked),
        "transformers (Marian)": Start("step_transformers", asked, "transformers"),
        "JoeyNMT": Start("step_joeynmt", asked, "joeynmt"),
        "Eole": Start("step_eole", asked, "eole"),
    }


def measure_step(title: str, sizes: Sizes, rounds: int) -> Table:
    """All peers, in float32 and, where the machine multiplies it, in bfloat16."""
    torch.set_num_threads(sizes.threads)
    target_tokens = sizes.pairs * sizes.tokens
    with started(starts(sizes)) as field:
        speeds = field.each_round(rounds, lambda _, peer, __: target_tokens / peer.step())
        low: dict[str, list[float]] = {}
        if has_bfloat16():
            low = field.each_round(rounds, lambda _, peer, __: target_tokens / peer.step(low=True))
        peak = peak_gflops()
        rows: dict[str, dict[str, Cell]] = {
            name: {
                SPEED.name: each,
                SHARE.name: share(sizes, each, peak),
                LOW_SPEED.name: low.get(name, NOT_IN_HARDWARE),
            }
            for name, each in speeds.items()
        }
        if low:
            low_peak = peak_gflops(torch.bfloat16)
            for name, each in low.items():
                rows[name][LOW_SHARE.name] = share(sizes, each, low_peak)
        columns = [SPEED, SHARE, LOW_SPEED, *([LOW_SHARE] if low else [])]
        return Table(title, columns, rows, ["Clearhead"], dict(field.errors))


def share(sizes: Sizes, speeds: list[float], peak: float) -> str:
    gflops = statistics.median(speeds) / (sizes.pairs * sizes.tokens) * step_gflop(sizes)
    return f"{gflops / peak:.0%} ({gflops:,.0f} of {peak:,.0f} GFLOP/s)"


def step_gflop(sizes: Sizes) -> float:
    """Multiplications and additions of all matrix products in a step; backward counts twice forward."""
    D, F, V, N = sizes.width, sizes.feed_forward, sizes.vocabulary, sizes.pairs * sizes.tokens
    attention = 4 * D * D + 2 * sizes.tokens * D  # projections and W_O; scores and weighted sum
    encoder = sizes.encoder_blocks * (attention + 2 * D * F)
    decoder = sizes.decoder_blocks * (2 * attention + 2 * D * F)
    return 3 * 2 * N * (encoder + decoder + V * D) / 1e9
