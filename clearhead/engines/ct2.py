"""The engine on CTranslate2: sorted by length, batched by tokens, several batches at once; without torch.

Its search is CTranslate2's own, with our scores: the sum of log-probabilities, EOS's included, over the number of
tokens to the power alpha. Where CTranslate2 counts otherwise (words that were ruled out lose their probability to
the others, forced ones cost nothing, what reaches the length limit never ends) the beam's hypotheses are scored
once more, as `score` does it, and ranked by that. Two differences in the search itself remain: it stops as soon as W
hypotheses were found, and an empty source gets the empty target without being asked. Words that no training target
has are left out where that saves time, unless a prefix has one.

Alignments are the attention that CTranslate2 (4.8.4) shows beside a search: without EOS's column, which is what is
missing to one, and where many sentences are searched by beam, with a first row of another sentence. All that is asked
of the first row is what a greedy search of one step shows, so that is asked beside it; and of what did not come out
of the search as it is here, the way there once more, with the target as a forced prefix.

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
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from clearhead.convert.ctranslate2 import FOUND, MADE_OF, SAID
from clearhead.data.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.errors import BAD_DATA, UserError

from . import in_order
from .batches import batches_by_length
from .memory import keep_memory

if TYPE_CHECKING:
    import numpy as np

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
    aligned: bool


Conversation = Generator[None, None, list[list[Hypothesis]]]


class Ct2Engine:
    """Runs the model in a CTranslate2 folder that we wrote; `deterministic`, each sentence for itself.

    `among_all`: no word is left out of a search.
    """

    name = "ct2"
    aligns = False
    works_ahead = True
    expects_more = False

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
        made_of = _read(form / MADE_OF)
        self.longest: int | None = made_of["longest"]  # tokens of a source or target, EOS counted
        self.aligns = "alignment" in made_of or FOUND in made_of

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

    def align(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list["np.ndarray"]:
        results = [result.result() for result in self._submit_alignments(sources, targets)]
        return [
            _weights(result.attention[0] if source else [], source, target)
            for result, source, target in zip(results, sources, targets, strict=True)
        ]

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
            jobs.append(Job(source, demand.prefix, most, demand.scored, demand.aligned and self.aligns))
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
            return_attention=any(job.aligned for job in jobs),
        )

    def _submit_first_rows(self, jobs: Sequence[Job], options: DecodingOptions) -> list[Any]:
        """Where the first word looks, which no search by beam shows for many sentences."""
        if options.beam == 1 or len(jobs) == 1 or not any(job.aligned for job in jobs):
            return []
        pieces = [self._pieces(job.source) for job in jobs]
        return self._translator.translate_batch(
            pieces,
            asynchronous=True,
            beam_size=1,
            max_decoding_length=1,
            max_input_length=0,
            return_attention=True,
            return_end_token=True,
        )

    def _submit_alignments(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[Any]:
        """With the whole target forced, and one word more: where EOS looks does not depend on its being said."""
        if not self.aligns:
            raise ValueError(f"{self.form} does not say which of its heads align; make it anew from its model")
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        self._require_positions(lengths)
        submitted: list[Any] = [None] * len(lengths)
        for places in self._batches(lengths):
            results = self._translator.translate_batch(
                [self._pieces(sources[place]) for place in places],
                [[self._target_tokens[i] for i in targets[place]] for place in places],
                asynchronous=True,
                beam_size=1,
                max_decoding_length=max(len(targets[place]) for place in places) + 1,
                max_input_length=0,
                return_attention=True,
                return_end_token=True,
            )
            for place, result in zip(places, results, strict=True):
                submitted[place] = result
        return submitted

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

        Hypotheses whose score is not yet ours are scored once more, all of them together; so are alignments.
        """
        results = self._submit(jobs, options)
        first_rows = self._submit_first_rows(jobs, options)
        yield
        found: list[list[Hypothesis]] = [[] for _ in jobs]
        unscored: set[int] = set()
        again: dict[int, Any] = {}
        for i, (job, result) in enumerate(zip(jobs, results, strict=True)):
            said = self._hypotheses(job, result.result(), first_rows[i].result() if first_rows else None)
            if not job.source:
                found[i] = [Hypothesis(job.prefix, math.nan)]
                unscored.add(i)
            elif not any(one.is_cut or _has_no_word(one) for one in said):
                found[i] = said
                if job.prefix or options.min_length or options.block_ngrams:
                    unscored.add(i)
            elif options.beam == 1 and not _has_no_word(said[0]):
                found[i] = said  # greedy search would have come this way too
                unscored.add(i)
            else:
                (again[i],) = self._submit([job], options, carefully=True)
                unscored.add(i)
        if again:
            yield
        for i, result in again.items():
            said = self._hypotheses(jobs[i], result.result(), None)
            # Where it finds too few, CTranslate2 fills up with PAD.
            found[i] = [one for one in said if not _has_no_word(one)] or [Hypothesis(jobs[i].prefix, math.nan)]
        for i in [i for i in unscored if options.beam == 1 and not jobs[i].scored]:
            found[i] = [replace(one, score=math.nan) for one in found[i]]
            unscored.remove(i)
        if unscored:
            pairs = [(jobs[i].source, one.tokens) for i in sorted(unscored) for one in found[i]]
            scores = iter(self._submit_scores([source for source, _ in pairs], [target for _, target in pairs]))
            yield
            for i in sorted(unscored):
                scored = [replace(one, score=_score(next(scores).result().log_probs, options)) for one in found[i]]
                found[i] = sorted(scored, key=lambda h: -h.score)[: options.n_best]
        unaligned = [(i, n) for i, job in enumerate(jobs) if job.aligned for n in _unaligned(found[i])]
        if unaligned:
            pairs = [(jobs[i].source, found[i][n].tokens) for i, n in unaligned]
            rows = self._submit_alignments([source for source, _ in pairs], [target for _, target in pairs])
            yield
            for (i, n), result in zip(unaligned, rows, strict=True):
                weights = _weights(result.result().attention[0], jobs[i].source, found[i][n].tokens)
                found[i][n] = replace(found[i][n], alignment=weights)
        return found

    def _hypotheses(self, job: Job, translation: Any, first: Any) -> list[Hypothesis]:
        """Without their EOS; what has none or is too long is cut. Alignments as far as they are there already."""
        found = []
        attention = translation.attention if job.aligned else None  # each time it is asked for, it is copied
        first_rows = first.attention[0][:1] if attention and first is not None else None
        for n, pieces in enumerate(translation.hypotheses):
            target = [self._target_ids[piece] for piece in pieces]
            tokens = target[:-1] if target[-1:] == [EOS] else target
            is_cut = len(tokens) == len(target) or len(tokens) > job.limit
            tokens = tokens[: job.limit]
            rows = attention[n] if attention else []
            is_there = len(rows) > len(tokens)  # a search that was cut did not go on to EOS
            first_row = first_rows or rows[:1]
            alignment = _weights([*first_row, *rows[1:]], job.source, tokens) if is_there else None
            score = translation.scores[n] if translation.scores else math.nan
            found.append(Hypothesis(tokens, score, alignment, is_cut))
        return found


# Threads that still hold a callback of Python's when the interpreter ends would take the process down with them.
_RUNNING: "WeakSet[Ct2Engine]" = WeakSet()


@atexit.register
def _end_threads() -> None:
    for engine in _RUNNING:
        engine.close()


def _has_no_word(one: Hypothesis) -> bool:
    """It has something in it that is no word, as no trained model says."""
    return PAD in one.tokens or BOS in one.tokens


def _score(log_probabilities: Sequence[float], options: DecodingOptions) -> float:
    return sum(log_probabilities) / len(log_probabilities) ** options.alpha


def _unaligned(hypotheses: Sequence[Hypothesis]) -> list[int]:
    return [n for n, one in enumerate(hypotheses) if one.alignment is None]


def _weights(rows: Sequence[Sequence[float]], source: list[int], target: list[int]) -> "np.ndarray":
    """(T + 1, S + 1) of what CTranslate2 shows, which is all but EOS's column."""
    import numpy as np

    if not source:
        return np.ones((len(target) + 1, 1), np.float32)
    words = np.array(rows[: len(target) + 1], np.float32)
    return np.concatenate([words, np.maximum(1 - words.sum(axis=1, keepdims=True), 0)], axis=1)


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
