"""The time of one step of beam search as the target grows: 64 sentences × beam 5, `tiny`, reordering included."""

import statistics
import time
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding import DecodingOptions
from clearhead.decoding.beam import beam_search
from clearhead.model import SIZES, TransformerOptions
from clearhead.model.linear import Linear
from clearhead.model.transformer import DecoderState, Transformer

VOCABULARY, SENTENCES, BEAM, SOURCE, ROUNDS = 8000, 64, 5, 20, 5
STEPS = [10, 50, 100, 200]
WINDOW = 3  # a step's time is the median of those from step - 3 to step + 3


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


def measure(threads: int) -> dict[int, list[float]]:
    """Seconds of a step around each of STEPS, for each round."""
    torch.set_num_threads(threads)
    named = SIZES["tiny"]
    assert isinstance(named, TransformerOptions)
    torch.manual_seed(1)
    model = Transformer(replace(named, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)).eval()
    src, src_mask = pad_sources(torch.randint(SPECIALS, VOCABULARY, (SENTENCES, SOURCE)).tolist())
    longest = max(STEPS) + WINDOW + 1
    options = DecodingOptions(beam=BEAM, min_length=longest, max_length=longest)  # nobody leaves early
    seconds: dict[int, list[float]] = {step: [] for step in STEPS}
    for turn in range(ROUNDS + 1):
        clocked = Clocked(model)
        beam_search(clocked, src, src_mask, options)
        steps = [after - before for before, after in zip(clocked.begun, clocked.begun[1:], strict=False)]
        for step in STEPS if turn else []:
            seconds[step].append(statistics.median(steps[step - WINDOW : step + WINDOW + 1]))
    return seconds
