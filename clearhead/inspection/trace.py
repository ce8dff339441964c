"""What was seen of one translation: the one object that page, report, terminal, notebook and figures are made of."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import clearhead
from clearhead.errors import USAGE, UserError

from .arrays import packed, packed_top, packed_weights
from .heads import FORMULA, HeadStats
from .lattice import Lattice
from .record import KINDS, Place
from .tokens import Side

FORMAT = "trace/1"
FULL = 128  # tokens up to which every weight is kept
WEIGHT_BYTES = 600_000  # for all weights of a report
TOPS = (8, 6, 4, 3, 2)  # else the largest so many of each row, which may take half as much again
UNREAD = 0.1  # a source word that the aligning head never gives more than this
LOW_CONTRIBUTION = 0.2  # a target word whose distribution would be nearly the same without the source


@dataclass(frozen=True)
class Step:
    """The writing of target token t."""

    t: int
    chosen: int
    logp: float
    entropy: float  # of the distribution, in nats
    top: list[tuple[int, float]]  # the likeliest ids with their log-probabilities
    top_text: list[str]
    source_contrib: float | None  # see effects.source_contributions


@dataclass(frozen=True)
class HeadDetail:
    """The exact numbers of one head: what the six steps are computed from."""

    kind: str
    layer: int
    head: int
    scale: float
    q: np.ndarray  # (Q, d)
    k: np.ndarray  # (K, d)
    v: np.ndarray
    out: np.ndarray  # (Q, d)
    mask: str | None  # causal, or nothing is hidden
    x: np.ndarray | None  # (Q, D)
    memory: np.ndarray | None  # (K, D); none: the same as x
    # W_Q, W_K, W_V (d, D) and their biases (d,); none where q and k are turned by their positions. For lack of room
    # these go first, then x and memory.
    projections: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class PositionTable:
    kind: str
    table: np.ndarray  # (n, D)
    embedding_norms: list[float]  # of the source tokens, as they are added to it
    position_norms: list[float]


@dataclass(frozen=True)
class Trace:
    """One sentence, its translation, and what the model did; `clearhead.load(folder).inspect(text)` makes one."""

    model: dict[str, Any]
    source: Side
    target: Side
    forced: bool  # the target was given, not found
    attention: dict[Place, np.ndarray]  # each (H, Q, K), rows sum to one; row r of the decoder writes token r + 1
    stats: list[HeadStats]
    steps: list[Step]
    beam: Lattice | None
    beam_text: list[str]  # of its nodes
    details: list[HeadDetail]
    residual: list[dict[str, Any]]
    positions: PositionTable | None
    occlusion: np.ndarray | None  # (T, S)
    notes: list[str]
    begun: int = 0  # tokens, EOS too, that the search was made to begin with
    off: list[tuple[str, int, int]] = field(default_factory=list)  # heads that were switched off
    command: str = ""
    made: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    @property
    def aligning(self) -> HeadStats | None:
        """The head of cross-attention that follows the words best."""
        return next(iter(self.by_alignment()), None)

    def by_alignment(self) -> list[HeadStats]:
        cross = [stats for stats in self.stats if stats.align_score is not None]
        return sorted(cross, key=lambda stats: -(stats.align_score or 0.0))

    def weights(self, kind: str, layer: int, head: int) -> np.ndarray:
        """(Q, K) of one head; layers and heads count from 0."""
        layers = sorted(place.layer for place in self.attention if place.kind == kind)
        heads = len(self.attention[Place(kind, layers[0])]) if layers else 0
        if layer not in layers or not 0 <= head < heads:
            has = f"layers 1 to {layers[-1] + 1} with heads 1 to {heads}" if layers else "none of that kind"
            asked = f"{kind}:{layer + 1}:{head + 1}"
            raise UserError("HEAD", f"there is no head {asked}, counted from 1; the model has {has}", USAGE)
        return self.attention[Place(kind, layer)][head]

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """Who looks, by the token that it writes in the decoder, and what is looked at."""
        source = [token.text for token in self.source.tokens]
        target = [token.text for token in self.target.tokens]
        return {
            "encoder": (source, source),
            "decoder": (target[1:], target[:-1]),
            "cross": (target[1:], source),
        }[kind]

    def to_dict(self) -> dict[str, Any]:
        """trace/1: what the page, `--json` and the server give out."""
        maps, limits = self._maps()
        return {
            "format": FORMAT,
            "tool": f"clearhead {clearhead.__version__}",
            "made": self.made,
            "command": self.command,
            "model": self.model,
            "source": asdict(self.source),
            "target": {**asdict(self.target), "forced": self.forced, "begun": self.begun},
            "off": self.off,
            "attention": maps,
            "alignment": self._alignment(),
            "stats": [_rounded(asdict(stats)) for stats in self.stats],
            "steps": [_rounded(asdict(step)) for step in self.steps],
            "beam": self._beam(),
            "head_detail": [_detail(detail) for detail in self.details],
            "residual": _rounded(self.residual),
            "positions": self._positions(),
            "occlusion": None
            if self.occlusion is None
            else {"axes": ["target", "source"], **packed(self.occlusion, "f16")},
            "health": _rounded(self.health()),
            "limits": limits,
            "notes": self.notes,
        }

    def health(self) -> dict[str, Any]:
        """Signs of trouble in this one translation."""
        words = [token.i for token in self.source.tokens if not token.special]
        best = self.aligning
        reads = self.weights(best.kind, best.layer, best.head).max(axis=0) if best else np.zeros(0)
        texts = [token.text for token in self.target.tokens if not token.special]
        cross = [stats.special_mass for stats in self.stats if stats.kind == "cross"]
        low = [s.t for s in self.steps[:-1] if s.source_contrib is not None and s.source_contrib < LOW_CONTRIBUTION]
        return {
            "unread": [i for i in words if len(reads) and reads[i] < UNREAD],
            "coverage": reads.tolist(),
            "repeated": _repeated(texts),
            "special_share": float(np.mean(cross)) if cross else None,
            "low_contribution": low,
            "length_ratio": len(texts) / max(1, len(words)),
        }

    def _maps(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Every weight in a byte, or if that is too much the largest of each row."""
        longest = max(len(self.source.tokens), len(self.target.tokens))
        rows = sum(weights.shape[0] * weights.shape[1] for weights in self.attention.values())
        is_reduced = longest > FULL or sum(weights.size for weights in self.attention.values()) > WEIGHT_BYTES
        k = next((k for k in TOPS if rows * (3 * k + 1) <= 1.5 * WEIGHT_BYTES), TOPS[-1])
        maps = []
        for place in sorted(self.attention, key=lambda place: (KINDS.index(place.kind), place.layer)):
            weights = self.attention[place]
            about = {
                "kind": place.kind,
                "layer": place.layer,
                "axes": ["head", "query", "key"],
                "query_tokens": "source" if place.kind == "encoder" else "target",
                "key_tokens": "target" if place.kind == "decoder" else "source",
                "query_shift": 0 if place.kind == "encoder" else 1,
            }
            maps.append({**about, **(packed_top(weights, k) if is_reduced else packed_weights(weights))})
        note = f"{longest} tokens: of each row the {k} largest weights and the sum of the rest" if is_reduced else ""
        return maps, {"reduced": is_reduced, "quantisation_max_error": 1 / 255, "note": note}

    def _alignment(self) -> dict[str, Any] | None:
        if not self.by_alignment():
            return None
        best, *others = [_which(stats) for stats in self.by_alignment()[:4]]
        return {**best, "formula": FORMULA, "runners_up": others}

    def _beam(self) -> dict[str, Any] | None:
        if self.beam is None:
            return None
        nodes = [{**_rounded(asdict(n)), "text": text} for n, text in zip(self.beam.nodes, self.beam_text, strict=True)]
        return {**asdict(self.beam), "nodes": nodes}

    def _positions(self) -> dict[str, Any] | None:
        if self.positions is None:
            return None
        return {**_rounded(asdict(self.positions)), "table": packed(self.positions.table, "f16")}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """By the ending of the name: .html the report, .json the numbers, .svg or .png the head that aligns best."""
        from .saving import save

        save([self], Path(path))

    def svg(self, kind: str = "cross", layer: int | None = None, head: int | None = None) -> str:
        """A figure of one head, or without a head of all heads of a layer, or of all layers."""
        from .figure import head_figure, heads_figure

        if layer is not None and head is not None:
            return head_figure(self, kind, layer, head)
        return heads_figure(self, kind, layer)

    def show(self, height: int = 800) -> Any:
        """The whole report in a notebook."""
        from .notebook import framed

        return framed(self, height)

    def print(self, width: int | None = None) -> None:
        from .terminal import print_trace

        print_trace(self, width)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002
        from .notebook import table
        from .terminal import plain_text

        return {"text/plain": plain_text(self), "text/html": table(self)}

    def __repr__(self) -> str:
        return f"<Trace of {len(self.source.tokens)} → {len(self.target.tokens)} tokens, {len(self.stats)} heads>"


def _which(stats: HeadStats) -> dict[str, Any]:
    return {"kind": stats.kind, "layer": stats.layer, "head": stats.head, "score": round(stats.align_score or 0.0, 4)}


def _detail(detail: HeadDetail) -> dict[str, Any]:
    names = ("kind", "layer", "head", "scale", "mask")
    arrays = {"q": detail.q, "k": detail.k, "v": detail.v, "out": detail.out, "x": detail.x, "memory": detail.memory}
    optional = {name: detail.projections.get(name) for name in ("w_q", "w_k", "w_v", "b_q", "b_k", "b_v")}
    return {
        **{name: getattr(detail, name) for name in names},
        **{name: None if a is None else packed(a, "f32") for name, a in {**arrays, **optional}.items()},
    }


def _repeated(texts: Sequence[str], n: int = 3) -> list[list[str]]:
    """Runs of n tokens that come more than once."""
    grams = [tuple(texts[i : i + n]) for i in range(len(texts) - n + 1)]
    return [list(gram) for gram in dict.fromkeys(grams) if grams.count(gram) > 1]


def _rounded(value: Any) -> Any:
    """Six figures are enough to read; arrays are packed elsewhere."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value
