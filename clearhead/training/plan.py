"""Before step one: options that fit the corpus, what is fast on this machine, and what the run will cost.

All of it is decided once, stored in the run, and read on resume; nothing later depends on a clock.
"""

import math
import os
import time
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from clearhead.checkpoint.model_folder import KINDS
from clearhead.data.batching import Parts, epoch_batches
from clearhead.data.prepare import Prepared
from clearhead.data.readers import READERS
from clearhead.model import SIZES, ModelOptions, RNNOptions, TransformerOptions, build
from clearhead.options import from_dict

from .loss import LOGITS_PER_CHUNK
from .options import TrainingOptions
from .rehearsal import fastest, precisely
from .settings import Request, Settings, kind_of
from .validation import translated_at_the_end


@dataclass(frozen=True)
class Fitting:
    """What fits a corpus of up to so many pairs."""

    pairs: float
    preset: str
    dropout: float
    peak_rate: float
    warmup: int
    epochs: float
    tokens_per_batch: int
    optimizer: str


TABLE = [
    Fitting(5_000, "tiny", 0.3, 3e-3, 200, 80, 512, "muon"),
    Fitting(20_000, "tiny", 0.3, 3e-3, 300, 50, 768, "muon"),
    Fitting(100_000, "tiny", 0.3, 4e-3, 500, 30, 2048, "muon"),
    Fitting(500_000, "small", 0.1, 2e-3, 1000, 15, 4096, "muon"),
    Fitting(math.inf, "base", 0.1, 7e-4, 4000, 5, 6144, "adam"),
]
# Instead of the presets', which are the paper's, where the norm is not said: no long warm-up is needed, and in the
# first minutes such a model is far ahead (benchmarks/LOG.md).
LEARNS_SOON = {"norm": "pre", "positions": "rotary"}
# Where minutes allow fewer epochs than these, dropout is at most this: what is seen seldom is not learned by heart.
DROPOUTS = ((4, 0.0), (8, 0.1), (12, 0.2))
FEWEST_STEPS = 50
ENOUGH_STEPS = 1500  # where a time allows fewer, the next smaller model gets it; a judgement, not yet measured
VALIDATIONS = 12  # in a run
STARTING, SAVING = 5.0, 0.5  # seconds: until processes are at work; of a checkpoint
SURE = 0.97  # of the time that is left for steps: the machine may be slower later


@dataclass(frozen=True)
class Plan:
    """What the run is and costs; `plan.json` holds it as it is."""

    prepared: str  # the cache folder
    prints: dict[str, str]  # of the files
    languages: list[str]
    pairs: int
    parameters: int
    tokens_per_epoch: int
    tokens_per_batch: int
    batches_per_epoch: int
    steps: int
    precision: str
    processes: int
    threads: int
    seconds_per_step: float
    memory_mib: int

    def lines(self, settings: Settings) -> list[str]:
        """For the terminal."""
        source, target = self.languages
        model, training = settings.model, settings.training
        epochs = self.steps / self.batches_per_epoch
        twice = f", pairs read twice (R-Drop, α {training.agreement:g})" if training.agreement else ""
        kind = f"{model.norm}-norm transformer" if isinstance(model, TransformerOptions) else kind_of(model)
        width = f"{kind}, preset {settings.preset}, width {model.width}, dropout {model.dropout}"
        rows = [
            f"languages   {source} → {target}",
            f"corpus      {self.pairs:,} pairs, {self.tokens_per_epoch:,} target tokens",
            f"vocabulary  {settings.data.tokenizer}, {vocabularies(settings)}",
            f"model       {width}: {self.parameters:,} parameters",
            f"training    {self.steps:,} steps of {self.tokens_per_batch:,} tokens, {epochs:.1f} epochs, "
            f"peak rate {training.peak_rate}, {training.warmup} steps of warm-up{twice}",
            f"machine     {self.processes} × {self.threads} threads, {self.precision}, about {self.memory_mib:,} MiB",
            f"time        about {self.steps * self.seconds_per_step / 60:.0f} min "
            f"({self.tokens_per_epoch / self.batches_per_epoch / self.seconds_per_step:,.0f} target tokens/s)",
        ]
        if isinstance(model, TransformerOptions) and model.norm == "none":
            rows.append('note        without normalisation deep stacks train badly; model.norm = "post" or "pre" helps')
        return rows


def vocabularies(settings: Settings) -> str:
    """Of both sides; a source of numbers has features instead."""
    model = settings.model
    if model.features is None:
        return f"{model.source_vocabulary:,} and {model.target_vocabulary:,}"
    return f"{model.target_vocabulary:,}; the source has {model.features} features, a 1/{2**model.strides} of its steps"


def fitting(pairs: int) -> Fitting:
    return next(row for row in TABLE if pairs <= row.pairs)


def dropout_for(epochs: float, usual: float) -> float:
    return min([usual, *(most for enough, most in DROPOUTS if epochs < enough)])


def _rows(request: Request, pairs: int) -> list[Fitting]:
    """The one that fits, and what may take its place where time is short: rows with smaller models."""
    rows = [fitting(pairs)]
    if request.training.minutes is not None and request.preset is None:
        smaller = [row for row in reversed(TABLE) if row.pairs < rows[0].pairs]
        rows += [row for before, row in pairwise([rows[0], *smaller]) if row.preset != before.preset]
    return rows


def as_used(settings: Settings, plan: Plan, row: Fitting) -> Fitting:
    """The row with what the options and the time have made of it."""
    training = settings.training
    return Fitting(
        row.pairs,
        settings.preset,
        settings.model.dropout,
        training.peak_rate or row.peak_rate,
        row.warmup if training.warmup is None else training.warmup,
        round(plan.steps / plan.batches_per_epoch, 1),
        plan.tokens_per_batch,
        training.optimizer or row.optimizer,
    )


def table_lines(row: Fitting, used: Fitting) -> list[str]:
    """The defaults by corpus size; in place of `row` what the run has, with a mark."""
    rows = ["  pairs up to  preset  dropout  peak rate  warm-up  epochs  tokens  optimizer"]
    for fits in TABLE:
        mark, one = ("→", used) if fits is row else (" ", fits)
        size = "more" if math.isinf(one.pairs) else f"{one.pairs:,}"
        values = f"{one.dropout:>7}  {one.peak_rate:>9}  {one.warmup:>7}  {one.epochs:>6}  {one.tokens_per_batch:>6}"
        rows.append(f"{mark} {size:>11}  {one.preset:<6}  {values}  {one.optimizer}")
    return rows


def _resolve(request: Request, prepared: Prepared, row: Fitting) -> Settings:
    """Every option that was left open, from the table; steps stay open while a time is to decide them."""
    preset = request.preset or row.preset
    model = _model_options(request, preset, row, prepared)
    training = request.training
    # A budget in steps of the source, of which the encoder sees one in so many.
    tokens = row.tokens_per_batch * (1 if model.features is None else 2**model.strides)
    training = replace(training, tokens_per_batch=training.tokens_per_batch or tokens)
    optimizer = row.optimizer if isinstance(model, TransformerOptions) else "adam"
    defaults: dict[str, Any] = {"peak_rate": row.peak_rate, "optimizer": optimizer}
    if training.minutes is None:
        batches = len(_batches(prepared, training))
        steps = training.steps or max(200, round(batches * row.epochs))
        defaults |= {"steps": steps, "warmup": row.warmup, **_intervals(steps)}
    training = replace(training, **{k: v for k, v in defaults.items() if getattr(training, k) is None})
    return Settings(
        [str(f) for f in request.train],
        [str(f) for f in request.valid],
        preset,
        str(request.init_from or ""),
        request.data,
        model,
        training,
        request.decoding,
    )


def make_plan(request: Request, prepared: Prepared, started: float | None = None) -> tuple[Settings, Plan, Fitting]:
    """Resolve the options, measure what is still open, and settle it; also the row of the table that was used.

    `started` is when the run's minutes began, by the clock of perf_counter; none: now.
    """
    started = time.perf_counter() if started is None else started
    steps = 0
    for row in _rows(request, len(prepared)):
        settings = _resolve(request, prepared, row)
        training, seconds = fastest(settings, prepared)
        settings = replace(settings, training=training)
        if training.minutes is None:
            break
        seconds = precisely(settings, prepared, seconds)
        left = training.minutes * 60 - (time.perf_counter() - started)
        steps = max(FEWEST_STEPS, int((left - _beside_steps(settings, prepared, seconds)) * SURE / seconds))
        if steps >= ENOUGH_STEPS:
            break
    if training.minutes is not None:
        warmup = min(row.warmup, max(10, steps // 8))
        wanted: dict[str, Any] = {"warmup": warmup, **_intervals(steps)}
        left_open = {k: v for k, v in wanted.items() if getattr(training, k) is None}
        training = replace(training, steps=steps, **left_open)
        if "dropout" not in request.model:
            dropout = dropout_for(steps / len(_batches(prepared, training)), row.dropout)
            settings = replace(settings, model=replace(settings.model, dropout=dropout))
    parameters = _count(settings.model)
    settings = _fit_memory(replace(settings, training=training), parameters)
    batches = _batches(prepared, training)
    plan = Plan(
        prepared=prepared.facts["folder"],
        prints=prepared.facts["prints"],
        languages=list(prepared.facts["languages"]),
        pairs=len(prepared),
        parameters=parameters,
        tokens_per_epoch=int((prepared.target.ids.lengths + 1).sum(dtype=np.int64)),
        tokens_per_batch=_tokens(training),
        batches_per_epoch=len(batches),
        steps=training.steps or 0,
        precision=training.precision,
        processes=training.processes or 1,
        threads=training.threads or 1,
        seconds_per_step=seconds,
        memory_mib=round(_memory(settings, parameters) / 2**20),
    )
    return settings, plan, row


def _beside_steps(settings: Settings, prepared: Prepared, seconds: float) -> float:
    """What a run of so many seconds a step spends on other things: validations, saving, and the model at the end.

    A forward pass costs a third of a step, a word that is said greedily as much as one that is trained on, and with a
    beam so many times that: roughly, on the CPU, by the speeds in benchmarks/RESULTS.md.
    """
    training = settings.training
    tokens = int((prepared.target.ids.lengths + 1).sum(dtype=np.int64))
    per_token = seconds * len(_batches(prepared, training)) / tokens
    lengths = prepared.valid_target.ids.lengths + 1
    read, said = float(lengths.sum()), float(lengths.mean())
    pairs, last = (min(n, len(lengths)) for n in (training.decode_pairs, translated_at_the_end(training)))
    once = per_token * (read / 3 + pairs * said) + SAVING
    end = per_token * (2 * read / 3 + last * said * settings.decoding.beam) + SAVING
    return STARTING + VALIDATIONS * once + end


def _intervals(steps: int) -> dict[str, int]:
    every = max(50, min(1000, -(-steps // VALIDATIONS)))
    return {"validate_every": every, "save_every": every}


def _model_options(request: Request, preset: str, row: Fitting, prepared: Prepared) -> ModelOptions:
    if preset not in SIZES:
        raise ValueError(f"preset is {preset!r}; expected one of {', '.join(SIZES)}")
    base = SIZES[preset]
    source_words, target_words = prepared.facts["vocabularies"]
    facts: dict[str, Any] = {"source_vocabulary": source_words, "target_vocabulary": target_words}
    if isinstance(base, TransformerOptions) and base.norm == "post" and "norm" not in request.model:
        # Steps of a recording look alike, and are told apart by where they are: they keep the paper's positions.
        facts |= LEARNS_SOON if prepared.source.scale is None else LEARNS_SOON | {"positions": base.positions}
    if prepared.source.scale is not None:
        strides = READERS[request.data.task].strides
        facts |= {"features": prepared.source.scale.features, "strides": strides, "tied": "target"}
    elif request.data.task == "generate":
        facts |= {"encoder_blocks": 0} if isinstance(base, TransformerOptions) else {"encoder": False, "tied": "all"}
    elif source_words != target_words or not request.data.joint:
        facts["tied"] = "target"
    return from_dict(KINDS[kind_of(base)], {**asdict(base), "dropout": row.dropout, **facts, **request.model}, "model")


def _batches(prepared: Prepared, training: TrainingOptions) -> list[Parts]:
    lengths = prepared.source.ids.lengths, prepared.target.ids.lengths
    return epoch_batches(*lengths, _tokens(training), training.seed, epoch=0)


def _tokens(training: TrainingOptions) -> int:
    assert training.tokens_per_batch is not None  # `resolve` has seen to it
    return training.tokens_per_batch


def _count(options: ModelOptions) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(options).parameters())


def _memory(settings: Settings, parameters: int) -> int:
    """Bytes, roughly: each process has torch, weights, gradients and Adam's two, and what backward needs."""
    training, model = settings.training, settings.model
    depth = model.layers * 2 if isinstance(model, RNNOptions) else model.encoder_blocks + model.decoder_blocks
    tokens = min(training.micro_tokens, _tokens(training)) // 2**model.strides
    activations = tokens * 4 * (model.width * 20 * depth + 3 * model.width) + LOGITS_PER_CHUNK * 4 * 2
    return (training.processes or 1) * (300 * 2**20 + parameters * 4 * 4 + activations)


def _fit_memory(settings: Settings, parameters: int) -> Settings:
    """With micro-batches halved until the run fits into the memory that is free now."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_AVPHYS_PAGES" in os.sysconf_names else None
    while free and _memory(settings, parameters) > 0.8 * free and settings.training.micro_tokens > 256:
        smaller = replace(settings.training, micro_tokens=settings.training.micro_tokens // 2)
        settings = replace(settings, training=smaller)
    return settings
