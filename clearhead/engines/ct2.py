"""The engine on CTranslate2: sorted by length, batched by tokens, several batches at once; without torch.

Its search is CTranslate2's own, with our scores: the sum of log-probabilities, EOS's included, over the number of
tokens to the power alpha. Where CTranslate2 counts otherwise (words that were ruled out lose their probability to
the others, forced ones cost nothing, what reaches the length limit never ends) the beam's hypotheses are scored
once more, as `score` does it, and ranked by that. Two differences in the search itself remain: it stops as soon as W
hypotheses were found, and an empty source gets the empty target without being asked. Words that no training target
has are left out where that saves time, unless a prefix has one.

One worker per core, each of one thread: for many sentences on two cores that was 1.5 to 3 times as fast as one
worker of two threads. CTranslate2 has one setting per translator, so a single sentence has one thread too.
"""

import atexit
import contextlib
import json
import math
import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakSet

from clearhead.convert.ctranslate2 import MADE_OF, SAID
from clearhead.data.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.errors import BAD_DATA, UserError

from . import in_order
from .batches import batches_by_length
from .memory import keep_memory

TOKENS_PER_BATCH = 512  # source tokens; larger batches take longer, 4,096 half as long again at beam 5
BATCHES_PER_WORKER = 3  # that are waiting or being done
NEVER_SAID = [[SPECIAL_PIECES[PAD]], [SPECIAL_PIECES[BOS]]]
ROOM = 50  # tokens that a target may have more than its source (paper 6.1), as in decoding.constraints


@dataclass(frozen=True)
class Job:
    """A sentence to be translated, and what its target must be like."""

    source: list[int]
    prefix: list[int]
    limit: int  # tokens that the target may have, EOS not counted
    scored: bool


Conversation = Generator[None, None, list[list[Hypothesis]]]


class Ct2Engine:
    """Runs the model in a CTranslate2 folder that we wrote; `deterministic`, each sentence for itself.

    `among_all`: no word is left out of a search.
    """

    name = "ct2"
    works_ahead = True

    def __init__(
        self, form: Path, *, deterministic: bool = False, workers: int | None = None, among_all: bool = False
    ) -> None:
        import ctranslate2  # type: ignore[import-untyped]

        self.form = form
        self.deterministic = deterministic
        self.workers = workers or _cores()
        keep_memory()
        self._translator = ctranslate2.Translator(
            str(form), device="cpu", inter_threads=self.workers, intra_threads=1, max_queued_batches=-1
        )
        _RUNNING.add(self)
        self._source_tokens, self._target_tokens = _vocabularies(form)
        self._target_ids = {token: i for i, token in enumerate(self._target_tokens)}
        self._said = None if among_all else _said(form)
        self.longest: int | None = _read(form / MADE_OF)["longest"]  # tokens of a source or target, EOS counted

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:
        """What of this the engine cannot do, in a few words; none: it can do all of it."""
        if options.temperature is not None:
            return "sampling"
        if options.length_penalty != "mean":
            return f"length_penalty {options.length_penalty}"
        if any(demand.phrases for demand in demands or ()):
            return "required phrases"
        return None

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]:
        return in_order(len(sources), self.translate_batches(sources, options, demands))

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """As they are done; CTranslate2 is at work as soon as this returns."""
        missing = self.lacks(options, demands)
        if missing:
            raise ValueError(f"CTranslate2 has no {missing}; the native engine has")
        conversations = self._conversations(self._jobs(sources, options, demands), options)
        begun = deque(islice(conversations, BATCHES_PER_WORKER * self.workers))
        return self._go_on(begun, conversations)

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        return [result.result().log_probs for result in self._submit_scores(sources, targets)]

    def steps(self, source: list[int], limit: int) -> Iterator[int]:
        """Greedy search as it goes: token by token, without EOS, at most `limit` of them.

        Among all words: among some of them CTranslate2 (4.8.4) names the wrong ones step by step.
        """
        self._require_positions([len(source)])
        most = limit if self.longest is None else min(limit, self.longest - 1)
        results = self._translator.generate_tokens(
            self._pieces(source),
            max_decoding_length=most,
            min_decoding_length=0,
            suppress_sequences=NEVER_SAID,
            max_input_length=0,
        )
        with contextlib.closing(results):  # whoever has seen enough stops the search
            for result in results:
                if result.token != SPECIAL_PIECES[EOS]:
                    yield self._target_ids[result.token]

    def close(self) -> None:
        """Wait for CTranslate2's threads and end them; nothing can be asked afterwards."""
        self._translator = None

    # -- what is asked of CTranslate2 -------------------------------------------------------------------------------

    def _jobs(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None
    ) -> list[Job]:
        demands = [Demand()] * len(sources) if demands is None else demands
        self._require_positions([len(source) for source in sources])
        jobs = []
        for source, demand in zip(sources, demands, strict=True):
            said = options.max_length if demand.max_length is None else demand.max_length
            most = len(source) + 1 + ROOM if said is None else said
            if self.longest is not None:
                most = min(most, self.longest - 1)
            most = max(most, options.min_length, len(demand.prefix))
            jobs.append(Job(source, demand.prefix, most, demand.scored))
        return jobs

    def _batches_of(self, jobs: Sequence[Job]) -> Iterator[list[int]]:
        """Those with a prefix apart: CTranslate2 treats a whole batch otherwise if one of its sentences has one.

        Those whose prefix has a word that is not considered otherwise apart again: nobody else is to notice.
        """
        kinds: dict[tuple[bool, bool], list[int]] = {}
        for place, job in enumerate(jobs):
            kinds.setdefault((bool(job.prefix), self._is_said(job.prefix)), []).append(place)
        for _, places in sorted(kinds.items()):
            for batch in self._batches([len(jobs[place].source) for place in places]):
                yield [places[i] for i in batch]

    def _is_said(self, words: Sequence[int]) -> bool:
        return not words or self._said is None or all(self._target_tokens[i] in self._said for i in words)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Of few sentences each worker gets its share."""
        share = -(-sum(length + 1 for length in lengths) // self.workers)
        return batches_by_length(lengths, 0 if self.deterministic else min(TOKENS_PER_BATCH, share))

    def _submit(self, jobs: Sequence[Job], options: DecodingOptions, carefully: bool = False) -> list[Any]:
        """Results to be waited for. `carefully`: PAD and BOS, which no trained model says, are ruled out."""
        some_prefix = any(job.prefix for job in jobs)
        ranked_anew = carefully or some_prefix or options.min_length or options.block_ngrams
        # For each batch the weights of the words that are said are copied; one greedy search is done sooner without.
        is_worth_it = options.beam > 1 or len(jobs) > 1
        return self._translator.translate_batch(
            [self._pieces(job.source) for job in jobs],
            [[self._target_tokens[i] for i in job.prefix] for job in jobs] if some_prefix else None,
            asynchronous=True,
            beam_size=options.beam,
            num_hypotheses=options.beam if ranked_anew else options.n_best,
            length_penalty=options.alpha,
            min_decoding_length=options.min_length,
            max_decoding_length=max(job.limit for job in jobs),
            max_input_length=0,
            no_repeat_ngram_size=options.block_ngrams,
            suppress_sequences=NEVER_SAID if carefully else None,
            use_vmap=self._said is not None and is_worth_it and all(self._is_said(job.prefix) for job in jobs),
            return_scores=options.beam > 1 or any(job.scored for job in jobs),
            return_end_token=True,  # so that it is counted in the length, and one sees who has ended
        )

    def _submit_scores(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[Any]:
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        self._require_positions(lengths)
        submitted: list[Any] = [None] * len(lengths)
        for places in self._batches(lengths):
            some = [self._pieces(sources[place]) for place in places]
            wanted = [[self._target_tokens[i] for i in targets[place]] for place in places]
            results = self._translator.score_batch(some, wanted, max_input_length=0, asynchronous=True)
            for place, result in zip(places, results, strict=True):
                submitted[place] = result
        return submitted

    def _pieces(self, source: list[int]) -> list[str]:
        return [self._source_tokens[i] for i in source]

    def _require_positions(self, lengths: Sequence[int]) -> None:
        most = max(lengths, default=0) + 1
        if self.longest is not None and most > self.longest:
            raise UserError(
                "TOO_LONG",
                f"a sentence has {most} tokens, but this model has no more than {self.longest} positions in "
                "CTranslate2; cut it in two, or use --engine native",
                BAD_DATA,
            )

    # -- what it answers --------------------------------------------------------------------------------------------

    def _conversations(self, jobs: Sequence[Job], options: DecodingOptions) -> Iterator[tuple[list[int], Conversation]]:
        """Batch by batch: which of the jobs, and what was begun with them."""
        for places in self._batches_of(jobs):
            conversation = self._converse([jobs[place] for place in places], options)
            next(conversation)
            yield places, conversation

    def _go_on(
        self, begun: deque[tuple[list[int], Conversation]], others: Iterator[tuple[list[int], Conversation]]
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Wait for the oldest, and begin another when it has ended; one that has another question goes to the end."""
        while begun:
            places, conversation = begun.popleft()
            try:
                next(conversation)
                begun.append((places, conversation))
            except StopIteration as end:
                begun.extend(islice(others, 1))
                yield places, end.value

    def _converse(self, jobs: Sequence[Job], options: DecodingOptions) -> Conversation:
        """The n best of each job; stops after each question, so that others can be asked before the answer is needed.

        Hypotheses whose score is not yet ours are scored once more, all of them together.
        """
        results = self._submit(jobs, options)
        yield
        found: list[list[Hypothesis]] = [[] for _ in jobs]
        unscored: dict[int, list[list[int]]] = {}
        again: dict[int, Any] = {}
        for i, (job, result) in enumerate(zip(jobs, results, strict=True)):
            translation = result.result()
            targets = [[self._target_ids[token] for token in tokens] for tokens in translation.hypotheses]
            if not job.source:
                unscored[i] = [job.prefix]
            elif not all(_is_whole(target, job) for target in targets):
                if options.beam == 1 and not {PAD, BOS} & set(targets[0]):
                    unscored[i] = [targets[0][: job.limit]]  # greedy search would have come this way too
                else:
                    (again[i],) = self._submit([job], options, carefully=True)
            elif job.prefix or options.min_length or options.block_ngrams:
                unscored[i] = [target[:-1] for target in targets]
            else:
                scores = translation.scores or [math.nan] * len(targets)
                found[i] = [Hypothesis(target[:-1], score) for target, score in zip(targets, scores, strict=True)]
        if again:
            yield
        for i, result in again.items():
            targets = [[self._target_ids[token] for token in tokens] for tokens in result.result().hypotheses]
            ended = [target[: -1 if target[-1:] == [EOS] else None] for target in targets]
            # Where it finds too few, CTranslate2 fills up with PAD.
            unscored[i] = [target for target in ended if not {PAD, BOS} & set(target)] or [jobs[i].prefix]
        for i in [i for i in unscored if options.beam == 1 and not jobs[i].scored]:
            found[i] = [Hypothesis(target, math.nan) for target in unscored.pop(i)]
        if unscored:
            open_ = [(i, target) for i, targets in unscored.items() for target in targets]
            scores = self._submit_scores([jobs[i].source for i, _ in open_], [target for _, target in open_])
            yield
            for (i, target), result in zip(open_, scores, strict=True):
                probabilities = result.result().log_probs
                found[i].append(Hypothesis(target, sum(probabilities) / len(probabilities) ** options.alpha))
            for i in unscored:
                found[i] = sorted(found[i], key=lambda h: -h.score)[: options.n_best]
        return found


# Threads that still hold a callback of Python's when the interpreter ends would take the process down with them.
_RUNNING: "WeakSet[Ct2Engine]" = WeakSet()


@atexit.register
def _end_threads() -> None:
    for engine in _RUNNING:
        engine.close()


def _is_whole(target: list[int], job: Job) -> bool:
    """It has ended, in time, and has no word in it that is none."""
    return target[-1:] == [EOS] and len(target) <= job.limit + 1 and PAD not in target and BOS not in target


def _cores() -> int:
    """Those that this process may use, and no more than OMP_NUM_THREADS says."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    said = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(said)) if said.isdecimal() and int(said) else cores


def _vocabularies(form: Path) -> tuple[list[str], list[str]]:
    shared = form / "shared_vocabulary.json"
    if shared.exists():
        return _read(shared), _read(shared)
    return _read(form / "source_vocabulary.json"), _read(form / "target_vocabulary.json")


def _said(form: Path) -> frozenset[str] | None:
    """The words that a search considers; none: all."""
    path = form / SAID
    return frozenset(path.read_text(encoding="utf-8").strip("\t\n").split(" ")) if path.exists() else None


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
