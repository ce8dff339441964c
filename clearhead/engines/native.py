"""The engine on torch: sorted by length, batched by tokens, shared among processes where that is faster."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from clearhead.checkpoint.manifest import read_manifest
from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.model_folder import aligning_heads, said_words
from clearhead.checkpoint.weights import WEIGHTS
from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.features import Source
from clearhead.decoding import DecodingOptions, Demand, Hypothesis, search, search_steps
from clearhead.decoding.options import AligningHeads
from clearhead.decoding.pacing import Paced
from clearhead.decoding.scoring import score
from clearhead.decoding.some_words import SomeWords
from clearhead.model import Seq2Seq
from clearhead.model.linear import multiply_in, pack
from clearhead.versions import has_bfloat16

from . import in_order
from .alignment import aligning_attention, look
from .batches import batches_by_length
from .ct2_form import found_heads
from .memory import keep_memory
from .workers import Batches, Found, Workers

TOKENS_PER_BATCH = 8192  # source tokens times beam
ENOUGH = 128  # sentences that are worth a batch of their own
WORTH_STARTING = 5.0  # seconds of work that are left; processes take two or three to start


class NativeEngine:
    """Runs a model of ours on the device where it is; `deterministic`, each sentence for itself, whatever comes along.

    Among others a sentence's numbers differ in the last digits, because products of other shapes sum in another order.
    With `folder`, from which other processes can load the same model, the speed of one thread and of all of them is
    measured on the first batches of the first long work; where more processes of one thread each are faster, they are
    started, and kept. `in_bfloat16` a search multiplies; `score` is exact. A search considers the target words `said`,
    unless others are demanded, and its scores are the probability among them; none given: all. Alignments are read from
    these `heads`; none given: all heads of the last decoder block but one.
    """

    name = "native"
    aligns = False
    works_ahead = False
    expects_more = False

    def __init__(
        self,
        model: Seq2Seq,
        device: str = "cpu",
        *,
        deterministic: bool = False,
        folder: Path | None = None,
        in_bfloat16: bool = False,
        said: Sequence[int] | None = None,
        heads: AligningHeads | None = None,
    ) -> None:
        self._workers: Workers | None = None
        self.in_bfloat16 = in_bfloat16
        self.model = model
        self._some_words = None if said is None else SomeWords(model, said)
        self._attention, self._heads = aligning_attention(model, heads), heads
        self.aligns = self._attention is not None
        self.device = device
        self.deterministic = deterministic
        self._folder = folder if device == "cpu" and not deterministic else None
        self.weights_sha256 = read_manifest(folder)[WEIGHTS].sha256 if folder else ""
        self._is_warm = False  # a first batch lays weights out and starts threads: its speed says little
        self._speeds: dict[int, float] = {}  # source tokens per second by the number of threads

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:  # noqa: ARG002
        """Nothing: whatever the options can say was made for it."""
        return None

    def translate(
        self, sources: Sequence[Source], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]:
        return in_order(len(sources), self.translate_batches(sources, options, demands))

    def translate_batches(
        self, sources: Sequence[Source], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[Found]:
        batches = Batches(self._batches([len(source) for source in sources], options.beam), sources, options, demands)
        while len(batches):
            if self._workers and self._workers.are_ready and len(batches) > 1:
                yield from self._workers.translate(batches)
            places = batches.take()
            if places is not None:
                yield places, self._timed(batches, places)
                self._consider_workers(batches)

    def search(
        self,
        sources: Sequence[Source],
        options: DecodingOptions,
        demands: Sequence[Demand] | None = None,
        between: Callable[[], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """All of them in one batch, here; whatever `between` two steps raises ends it."""
        demands = demands or [Demand()] * len(sources)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        self._multiply_in(torch.bfloat16)
        for among in dict.fromkeys([self._some_words, None]):  # who needs all words is searched apart from the others
            places = [i for i, demand in enumerate(demands) if self._among(demand) is among]
            if not places:
                continue
            src, src_mask = (part.to(self.device) for part in pad_sources([sources[i] for i in places]))
            asked = [demands[i] if among is None else among.numbered(demands[i]) for i in places]
            model = among or self.model
            answers = search(model if between is None else Paced(model, between), src, src_mask, options, asked)
            for place, some in zip(places, answers, strict=True):
                found[place] = some if among is None else among.named(some)
        if self.aligns and any(demand.aligned for demand in demands):
            self._add_alignments(sources, demands, found)
        return found

    def score(self, sources: Sequence[Source], targets: Sequence[list[int]]) -> list[list[float]]:
        results: list[list[float]] = [[] for _ in sources]
        self._multiply_in(torch.float32)
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for places in self._batches(lengths, beam=1):
            batch = make_batch([(sources[place], targets[place]) for place in places]).to(self.device)
            for place, log_probabilities in zip(places, score(self.model, batch), strict=True):
                results[place] = log_probabilities
        return results

    def align(self, sources: Sequence[Source], targets: Sequence[list[int]]) -> list[np.ndarray]:
        """By a second look at the targets, teacher-forced; only of a model with attention to its source."""
        if self._attention is None:
            raise ValueError("the model does not look at its source; expected one whose `aligns` is true")
        self._multiply_in(torch.float32)
        head = None if self._heads is None else self._heads.head
        results: list[np.ndarray] = [np.empty(0)] * len(sources)
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for places in self._batches(lengths, beam=1):
            pairs = [(sources[place], targets[place]) for place in places]
            for place, weights in zip(places, look(self.model, self._attention, head, pairs), strict=True):
                results[place] = weights
        return results

    def steps(self, source: Source, limit: int) -> Iterator[int]:
        """Greedy search as it goes: token by token, without EOS, at most `limit` of them."""
        return self.search_steps(source, DecodingOptions(beam=1), Demand(max_length=limit))

    def search_steps(self, source: Source, options: DecodingOptions, demand: Demand) -> Iterator[int]:
        """Greedy search, or with a temperature one sample, as it goes; what the demand forces is among the tokens."""
        src = pad_sources([source])[0].to(self.device)
        self._multiply_in(torch.bfloat16)
        among = self._among(demand)
        if among is None:
            return search_steps(self.model, src, options, demand)
        return (among.words[i] for i in search_steps(among, src, options, among.numbered(demand)))

    def close(self) -> None:
        """End the processes, if there are any; more work starts new ones."""
        if self._workers:
            self._workers.close()
        self._workers = None

    def __del__(self) -> None:
        self.close()

    def _add_alignments(
        self, sources: Sequence[Source], demands: Sequence[Demand], found: list[list[Hypothesis]]
    ) -> None:
        wanted = [(i, n) for i, demand in enumerate(demands) if demand.aligned for n in range(len(found[i]))]
        weights = self.align([sources[i] for i, _ in wanted], [found[i][n].tokens for i, n in wanted])
        for (i, n), one in zip(wanted, weights, strict=True):
            found[i][n] = replace(found[i][n], alignment=one)

    def _among(self, demand: Demand) -> SomeWords | None:
        """The words that a search considers who has to meet this; none: all."""
        return self._some_words if self._some_words is not None and self._some_words.can_meet(demand) else None

    def _multiply_in(self, product: torch.dtype) -> None:
        """Unless the precision is not ours to choose, as while the model is being trained."""
        if self.in_bfloat16 and isinstance(self.model, nn.Module):
            multiply_in(self.model, product)
            if self._some_words is not None:
                multiply_in(self._some_words.output, product)

    def _batches(self, lengths: Sequence[int], beam: int) -> list[list[int]]:
        """With several processes, as many for each of them: none waits long for the last."""
        most = 0 if self.deterministic else TOKENS_PER_BATCH // beam
        if self._workers and self._workers.are_ready:
            tokens, processes = sum(length + 1 for length in lengths), self._workers.count
            turns = -(-tokens // (most * processes))
            most = -(-tokens // (turns * processes)) if turns else most
        return list(batches_by_length(lengths, most, ENOUGH))

    def _timed(self, batches: Batches, places: list[int]) -> list[list[Hypothesis]]:
        """Search; while both are not known, the speed with one thread or with all that there are is noted."""
        sources, demands = batches.of(places)
        threads = torch.get_num_threads()
        now = 1 if self._folder and threads in self._speeds and 1 not in self._speeds else threads
        started = time.perf_counter()
        try:
            if now != threads:
                torch.set_num_threads(now)
            found = self.search(sources, batches.options, demands)
        finally:  # an interrupted search too leaves the threads as they were
            if now != threads:
                torch.set_num_threads(threads)
        if self._is_warm:
            self._speeds.setdefault(now, batches.tokens(places) / (time.perf_counter() - started))
        self._is_warm = True
        return found

    def _consider_workers(self, batches: Batches) -> None:
        threads = torch.get_num_threads()
        if self._folder is None or self._workers or threads == 1 or 1 not in self._speeds:
            return
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads
        together, apart = self._speeds[threads], self._speeds[1] * cores
        is_worth_it = self.expects_more or batches.tokens_left() / together > WORTH_STARTING
        if apart > 1.1 * together and is_worth_it:
            product = "bfloat16" if self.in_bfloat16 else "float32"
            self._workers = Workers(self._folder, self.weights_sha256, cores, product)


def open_native(folder: Path, *, deterministic: bool = False) -> NativeEngine:
    """The engine of a model folder; with products in bfloat16 where the CPU has it: emulated it is far slower."""
    model, config, folder = load_model(folder)
    pack(model)
    keep_memory()
    in_bfloat16 = has_bfloat16() and not deterministic
    return NativeEngine(
        model,
        deterministic=deterministic,
        folder=folder,
        in_bfloat16=in_bfloat16,
        said=said_words(config),
        heads=aligning_heads(config) or found_heads(folder),
    )
