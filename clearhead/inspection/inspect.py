"""A text and its translation, looked at once more: search watched from outside, then one recorded pass over the result.

B sentences, H heads, Q positions that look, K positions that are looked at, d head width, D model width.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch, make_batch, pad_sources
from clearhead.data.features import Source
from clearhead.data.tokenizer import EOS, Tokenizer
from clearhead.decoding import DecodingOptions, Demand, search
from clearhead.decoding.some_words import SomeWords
from clearhead.errors import USAGE, UserError
from clearhead.model import ModelOptions, RNNOptions, Seq2Seq, TransformerOptions
from clearhead.model.attention import MultiHeadAttention
from clearhead.model.linear import multiply_in
from clearhead.model.transformer import Transformer

from .effects import occlusion, silenced, source_contributions, without_each_head
from .heads import HeadStats, head_stats
from .lattice import Lattice, Watched
from .record import Place, Recording, attention_layers, hooked, record
from .tokens import Side, piece_of, shown, source_side, step_side, target_side
from .trace import HeadDetail, PositionTable, Step, Trace

MOST_TOKENS = 512  # of either side
# Every word is occluded and every head switched off as long as that takes no more products, and no more tokens.
EFFECTS, FEW_TOKENS = 1e11, 128
SHOWN_POSITIONS = 64  # rows of the table of positions
RUNNERS_UP = 5
DETAIL_BYTES = 280_000  # of exact numbers that a trace carries
ALIKE = ("sinusoidal", "sinusoidal-half", "learned", "own")  # positions that are added to the embeddings


@dataclass(frozen=True)
class Subject:
    """What is looked into: a model with its tokenizers."""

    model: Seq2Seq
    options: ModelOptions
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    languages: tuple[str, str]
    name: str = ""
    sha256: str = ""
    said: Sequence[int] | None = None  # the words that a search considers; none: all


@dataclass(frozen=True)
class Question:
    """Which text; with a target, that one is looked at instead of the model's own."""

    text: str
    target: str | None
    decoding: DecodingOptions
    demand: Demand
    runners_up: int = RUNNERS_UP
    heads: tuple[tuple[str, int, int], ...] = ()  # whose exact numbers are wanted, beside the usual ones
    features: np.ndarray | None = None  # what a model whose sources are files is given of this one
    labels: Sequence[str] = ()  # what the steps that the encoder sees of them are called
    off: tuple[tuple[str, int, int], ...] = ()  # switched off in all that is done


def inspect(subject: Subject, question: Question) -> Trace:
    """Translate, unless a target is given, and look at every layer, head and step of it."""
    multiply_exactly(subject.model)
    with hooked(silenced(subject.model, question.off)):
        return _inspect(subject, question)


def _inspect(subject: Subject, question: Question) -> Trace:
    source: Source = subject.source_tokenizer.encode(question.text) if question.features is None else question.features
    _require_size("source", question.text, len(question.labels or source))
    lattice, begin = None, question.demand.prefix
    if question.target is not None:
        target = subject.target_tokenizer.encode(question.target)
        _require_size("target", question.target, len(target))
    elif begin and begin[-1] == EOS:
        target = begin[:-1]
    else:
        target, lattice = _translate(subject, source, question)
    batch = make_batch([(source, target)])
    seen = record(subject.model, batch)
    sides = _sides(subject, question, source, target)
    length = len(question.labels or source)
    products = _parameters(subject.model) * length * (length + len(target))
    is_short = products <= EFFECTS and max(length, len(target)) < FEW_TOKENS
    stats = _stats(subject, seen, batch, sides, with_effects=is_short)
    trace = Trace(
        model=_about(subject),
        source=sides[0],
        target=sides[1],
        forced=question.target is not None,
        begun=len(begin),
        off=list(question.off),
        attention={place: look.weights[0].cpu().numpy() for place, look in seen.looks.items()},
        stats=stats,
        steps=_steps(subject, seen, batch, question.runners_up, is_short),
        beam=lattice,
        beam_text=[_shown(subject.target_tokenizer, node.id) for node in lattice.nodes] if lattice else [],
        details=[],
        residual=[_stream(stream) for stream in seen.streams],
        positions=_positions(subject, batch, len(sides[0].tokens)),
        occlusion=occlusion(subject.model, batch, len(sides[0].tokens)).cpu().numpy() if is_short else None,
        notes=[] if is_short else ["too long for this model's size to switch off heads and take away words one by one"],
    )
    return replace(trace, details=_details(subject, seen, trace, question.heads))


def multiply_exactly(model: Seq2Seq) -> None:
    """In float32: a search may have left the model multiplying in bfloat16."""
    if isinstance(model, nn.Module):
        multiply_in(model, torch.float32)


def _require_size(side: str, text: str, tokens: int) -> None:
    if not text.strip():
        raise UserError("EMPTY", f"the {side} is empty; expected a sentence to look at", USAGE)
    if tokens >= MOST_TOKENS:
        message = f"the {side} has {tokens} tokens; at most {MOST_TOKENS - 1} can be looked at: give a part of it"
        raise UserError("TOO_LONG", message, USAGE)


def _translate(subject: Subject, source: Source, question: Question) -> tuple[list[int], Lattice | None]:
    """As the native engine does it, a sentence alone; the lattice of search, none of sampling."""
    options = replace(question.decoding, n_best=question.decoding.beam)
    if options.temperature is not None:
        options = replace(options, temperature=None)
    among = None if subject.said is None else SomeWords(subject.model, subject.said)
    if among is None or not among.can_meet(question.demand):
        watched = Watched(subject.model, options)
        (found,) = search(watched, *pad_sources([source]), options, [question.demand])
        return found[0].tokens, watched.lattice(found)
    watched = Watched(among, options)
    (found,) = search(watched, *pad_sources([source]), options, [among.numbered(question.demand)])
    return among.named(found)[0].tokens, watched.lattice(found).named(among.words)


def _sides(subject: Subject, question: Question, source: Source, target: list[int]) -> tuple[Side, Side]:
    said = subject.target_tokenizer.decode(target)
    return (
        source_side(subject.source_tokenizer, subject.languages[0], question.text, source)
        if isinstance(source, list)
        else step_side(question.text, question.labels),
        target_side(subject.target_tokenizer, subject.languages[1], said, target),
    )


def _stats(
    subject: Subject, seen: Recording, batch: Batch, sides: tuple[Side, Side], with_effects: bool
) -> list[HeadStats]:
    special = {
        "source": np.array([token.special for token in sides[0].tokens]),
        "target": np.array([token.special for token in sides[1].tokens[:-1]]),
    }
    heads = len(next(iter(seen.looks.values())).weights[0]) if seen.looks else 0
    changes = without_each_head(subject.model, batch, heads) if with_effects else {}
    stats: list[HeadStats] = []
    for place, look in seen.looks.items():
        keys = special["target" if place.kind == "decoder" else "source"]
        for one in head_stats(*place, look.weights[0].cpu().numpy(), keys):
            stats.append(replace(one, ablate_dlogp=changes[place][one.head] if place in changes else None))
    return stats


def _steps(subject: Subject, seen: Recording, batch: Batch, most: int, with_effects: bool) -> list[Step]:
    log_p = seen.log_p[0]  # (T, V)
    shares: Sequence[float | None] = [None] * len(log_p)
    if with_effects:
        shares = source_contributions(subject.model, batch, log_p)
    top = log_p.topk(min(most, log_p.shape[1]), dim=1)
    entropies = -(log_p.exp() * log_p.clamp(min=-1e30)).sum(dim=1)
    steps = []
    for t, chosen in enumerate(batch.tgt_out[0].tolist()):
        ids = top.indices[t].tolist()
        texts = [_shown(subject.target_tokenizer, id) for id in ids]
        likeliest = list(zip(ids, top.values[t].tolist(), strict=True))
        steps.append(Step(t + 1, chosen, float(log_p[t, chosen]), float(entropies[t]), likeliest, texts, shares[t]))
    return steps


def _shown(tokenizer: Tokenizer, id: int) -> str:
    return shown(piece_of(tokenizer, id)) if id >= 0 else ""


def _stream(stream: Any) -> dict[str, Any]:
    norms = {"norm_in": stream.norm_in[0].tolist(), "norm_out": stream.norm_out[0].tolist()}
    return {"stack": stream.stack, "layer": stream.layer, "sublayer": stream.sublayer, **norms}


def _parameters(model: Seq2Seq) -> int:
    return sum(p.numel() for p in model.parameters()) if isinstance(model, nn.Module) else 0


def _about(subject: Subject) -> dict[str, Any]:
    options, model = subject.options, subject.model
    about = {
        "name": Path(subject.name).name,
        "sha256": subject.sha256,
        "params": _parameters(model),
        "dtype": "float32",
        "d_model": options.width,
        "vocabulary": options.target_vocabulary,
    }
    if isinstance(options, RNNOptions):
        layers = {"layers_enc": options.layers, "layers_dec": options.layers, "heads": int(options.attention)}
        return {**about, "kind": "rnn", "cell": options.cell, **layers}
    return {
        **about,
        "kind": "transformer",
        "layers_enc": options.encoder_blocks,
        "layers_dec": options.decoder_blocks,
        "heads": options.heads,
        "d_k": options.key_width,
        "d_ff": options.feed_forward,
        "scale": options.score_scale,
        **{name: asdict(options)[name] for name in ("norm", "positions", "dense", "activation", "skip")},
    }


@torch.inference_mode()
def _positions(subject: Subject, batch: Batch, steps: int) -> PositionTable | None:
    model = subject.model
    if not isinstance(model, Transformer) or model.options.positions not in ALIKE:
        return None
    tokens = min(SHOWN_POSITIONS, max(steps, batch.tgt_in.shape[1]))
    table = model.source_positions.add(torch.zeros(1, tokens, model.options.width), 0)[0]
    plain = model.source_embedding.read(batch.src, batch.src_mask)[0][0]
    return PositionTable(
        model.options.positions,
        table.numpy(),
        plain.norm(dim=1).tolist(),
        _norms(model, steps),
    )


def _norms(model: Transformer, tokens: int) -> list[float]:
    """How long the vectors of the first positions are."""
    return model.source_positions.add(torch.zeros(1, tokens, model.options.width), 0)[0].norm(dim=1).tolist()


def _details(
    subject: Subject, seen: Recording, trace: Trace, wanted: Sequence[tuple[str, int, int]]
) -> list[HeadDetail]:
    """Exact numbers of the heads that are asked for, of the one that aligns best and of one in each stack: as fit."""
    layers = attention_layers(subject.model)
    details: list[HeadDetail] = []
    room = DETAIL_BYTES
    for kind, layer, head in dict.fromkeys([*wanted, *_telling_heads(trace)]):
        trace.weights(kind, layer, head)  # that it exists
        attention = layers[Place(kind, layer)]
        if not isinstance(attention, MultiHeadAttention):
            continue
        detail = _detail(attention, Place(kind, layer), head, seen, subject.options)
        for shorter in (detail, replace(detail, projections={}), replace(detail, projections={}, x=None, memory=None)):
            size = _bytes(shorter)
            if size <= room:
                details.append(shorter)
                room -= size
                break
    return details


def _bytes(detail: HeadDetail) -> int:
    arrays = [detail.q, detail.k, detail.v, detail.out, detail.x, detail.memory, *detail.projections.values()]
    return sum(array.nbytes for array in arrays if array is not None)


def _telling_heads(trace: Trace) -> list[tuple[str, int, int]]:
    """The one that aligns best, and the sharpest of each kind."""
    heads = [trace.aligning] if trace.aligning else []
    for kind in ("encoder", "decoder"):
        heads += sorted((stats for stats in trace.stats if stats.kind == kind), key=lambda stats: stats.entropy)[:1]
    return [(stats.kind, stats.layer, stats.head) for stats in heads]


def _detail(
    attention: MultiHeadAttention, place: Place, head: int, seen: Recording, options: ModelOptions
) -> HeadDetail:
    look = seen.looks[place]
    assert look.q is not None
    assert look.k is not None
    assert look.v is not None
    assert look.x is not None
    is_turned = isinstance(options, TransformerOptions) and options.positions == "rotary" and place.kind != "cross"
    return HeadDetail(
        place.kind,
        place.layer,
        head,
        attention.dot_product.scale,
        q=_numbers(look.q[0, head]),
        k=_numbers(look.k[0, head]),
        v=_numbers(look.v[0, head]),
        out=_numbers(look.out[0, head]),
        mask="causal" if place.kind == "decoder" else None,
        x=_numbers(look.x[0]),
        memory=None if look.memory is None else _numbers(look.memory[0]),
        projections={} if is_turned else _projections(attention, head),
    )


def _projections(attention: MultiHeadAttention, head: int) -> dict[str, np.ndarray]:
    found = dict(zip(("w_q", "w_k", "w_v"), map(_numbers, attention.matrices(head)), strict=True))
    if attention.projections.bias is not None:
        biases = attention.projections.bias.view(3, attention.heads, -1)[:, head]
        found |= dict(zip(("b_q", "b_k", "b_v"), map(_numbers, biases), strict=True))
    return found


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()
