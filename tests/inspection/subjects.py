"""Small models to look into, every character a token."""

from dataclasses import replace

from clearhead.data.tokenizer import Characters
from clearhead.decoding import DecodingOptions, Demand
from clearhead.inspection.inspect import Question, Subject, inspect
from clearhead.inspection.trace import Trace
from clearhead.model import ModelOptions
from tests.samples import LSTM, PAPER, make_model

TOKENIZER = Characters("abcdefghijklm 你好<>&")
SIZE = len(TOKENIZER)
TRANSFORMER = replace(PAPER, source_vocabulary=SIZE, target_vocabulary=SIZE)
RNN = replace(LSTM, source_vocabulary=SIZE, target_vocabulary=SIZE)
DECODING = DecodingOptions(beam=3)


def subject(options: ModelOptions = TRANSFORMER, seed: int = 7) -> Subject:
    return Subject(make_model(options, seed), options, TOKENIZER, TOKENIZER, ("en", "zh"), "runs/toy", "0" * 64)


def question(text: str = "bad cab", target: str | None = None, max_length: int = 11) -> Question:
    return Question(text, target, DECODING, Demand(max_length=max_length))


def trace_of(options: ModelOptions = TRANSFORMER, text: str = "bad cab", target: str | None = None) -> Trace:
    return inspect(subject(options), question(text, target))
