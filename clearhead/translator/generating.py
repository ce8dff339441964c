"""Text that goes on: what a model without a source says after a beginning that it is given."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clearhead.decoding import DecodingOptions, Demand
from clearhead.errors import BAD_DATA, USAGE, UserError

from . import guards
from .tasks import require_task
from .translation import Decoded, Translation
from .translator import Translator, load

TEMPERATURE = 0.8


@dataclass(frozen=True)
class Wishes:
    """How to go on. A beam searches the likeliest text; else it is sampled, from a temperature of 0 greedily."""

    length: int = 120  # tokens that are written at most
    samples: int = 1  # texts
    beam: int | None = None
    temperature: float | None = None  # none given: 0.8, or with a beam none
    top_p: float = 0.95  # sample from the words that have this probability
    top_k: int = 0  # sample from the k likeliest words; 0: from all
    seed: int = 1  # of sampling

    def decoding(self, own: DecodingOptions) -> DecodingOptions:
        """These wishes in the words of the search; `own` are the model's options."""
        own = replace(own, min_length=0, max_length=None)
        temperature = self.temperature if self.temperature is not None or self.beam else TEMPERATURE
        if self.beam and temperature:
            message = f"a beam of {self.beam} searches, and a temperature of {temperature} samples"
            raise UserError("OPTIONS", f"{message}; expected one of them; leave out the other", USAGE)
        try:
            if not temperature:
                beam = self.beam or self.samples
                return replace(own, temperature=None, beam=beam, n_best=self.samples)
            sampled = replace(own, temperature=temperature, top_p=self.top_p, top_k=self.top_k, seed=self.seed)
            return replace(sampled, n_best=self.samples)
        except ValueError as error:
            raise UserError("OPTIONS", f"{error}; correct it and try again", USAGE) from error


@dataclass(frozen=True)
class Written:
    """A text so far: what was given, what was added to it, and all its tokens."""

    given: str
    added: str
    tokens: list[int]

    @property
    def text(self) -> str:
        return self.given + self.added


def load_generator(path: Path) -> Translator:
    """The model in a run folder or a model folder, if it was trained to continue text."""
    translator = load(path, engine="native")
    require_task(translator.task, "generate")
    return translator


def generate(translator: Translator, prompts: str | Sequence[str], wishes: Wishes) -> list[list[Translation]]:
    """For each prompt the n best continuations, or as many samples; the text includes the prompt."""
    prompts = [prompts] if isinstance(prompts, str) else prompts
    demands = [_demand(translator, prompt, wishes.length) for prompt in prompts]
    found = translator.engine.translate([[] for _ in prompts], wishes.decoding(translator.decoding), demands)
    decode = translator.target_tokenizer.decode
    return [
        [Translation(decode(h.tokens), h.score, decoded=(Decoded([], h.tokens),)) for h in hypotheses]
        for hypotheses in found
    ]


def write(
    translator: Translator, prompt: str, wishes: Wishes, between: Callable[[], None] = lambda: None
) -> Iterator[Written]:
    """One text as it is written: after each token, or with a beam at its end; `between` is called after each step."""
    from clearhead.engines.native import NativeEngine

    native = translator.native()
    assert isinstance(native, NativeEngine)
    options, demand = wishes.decoding(translator.decoding), _demand(translator, prompt, wishes.length)
    if options.beam > 1 and options.temperature is None:
        tokens = native.search([[]], options, [demand], between)[0][0].tokens
        yield _written(translator, tokens, len(demand.prefix))
        return
    tokens = []
    for token in native.search_steps([], options, demand):
        tokens.append(token)
        between()
        if len(tokens) > len(demand.prefix):
            yield _written(translator, tokens, len(demand.prefix), is_whole=False)
    yield _written(translator, tokens, len(demand.prefix))


def print_written(translator: Translator, prompt: str, wishes: Wishes) -> None:
    """On a terminal as it is written; elsewhere the whole text at its end."""
    shown = ""
    written = None
    for written in write(translator, prompt, wishes):
        if sys.stdout.isatty() and written.text.startswith(shown):
            print(written.text[len(shown) :], end="", flush=True)
            shown = written.text
    assert written is not None
    print(written.text[len(shown) :])


def mean_log_probability(translator: Translator, written: Written) -> float:
    """Of all its tokens, the prompt's and the end included."""
    (scores,) = translator.engine.score([[]], [written.tokens])
    return sum(scores) / len(scores)


def _demand(translator: Translator, prompt: str, length: int) -> Demand:
    guards.require_unicode([prompt])
    ids, most = translator.target_tokenizer.encode(prompt), translator.most_positions
    if len(ids) >= most:
        message = f"the prompt has {len(ids)} tokens; the model knows {most} positions; give the end of it alone"
        raise UserError("TOO_LONG", message, BAD_DATA)
    return Demand(prefix=ids, max_length=min(len(ids) + length, most))


def _written(translator: Translator, tokens: Sequence[int], given: int, is_whole: bool = True) -> Written:
    """Half a character is not shown before its other half is there, if there can be one."""
    decode = translator.target_tokenizer.decode
    text, prompt = decode(list(tokens)), decode(list(tokens[:given]))
    if not is_whole:
        text = text.rstrip("\ufffd")
    return Written(prompt, text.removeprefix(prompt), list(tokens))
