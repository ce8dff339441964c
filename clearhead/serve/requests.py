"""What /v1 takes: dataclasses, of which /spec is written too, so that it is true."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from clearhead.options import from_dict

from .bodies import MESSAGE
from .options import Limits
from .refusal import bad_request

T = TypeVar("T")


def about(text: str, **bounds: int | float | list[str]) -> dict[str, Any]:
    """Metadata of a field: what it is, and JSON Schema's words for its bounds."""
    return {"about": text, "bounds": bounds}


def optional(text: str) -> Any:
    return field(default=None, metadata=about(text))


Head = list[str | int]  # such as ["cross", 0, 3]
KINDS = ["encoder", "decoder", "cross"]
MODEL, SOURCE, TARGET = "A name of /v1/models", "A language code, or auto", "A language code"


@dataclass(frozen=True, kw_only=True)
class TranslateRequest:
    """Body of /v1/translate."""

    texts: list[str] = field(metadata=about("What to translate", minItems=1, maxItems=128))
    model: str | None = optional(MODEL)
    source: str | None = optional(SOURCE)
    target: str | None = optional(TARGET)
    beam: int | None = field(default=None, metadata=about("Width of the search", minimum=1, maximum=8))
    n_best: int = field(default=1, metadata=about("Translations of each text; at most the beam", minimum=1, maximum=8))
    prefix: str = field(default="", metadata=about("How every translation has to begin", maxLength=500))
    tokens: bool = field(default=False, metadata=about("Whether the probability of each token is wanted"))
    stream: bool = field(default=False, metadata=about("Server-sent events while one text is being translated"))
    timeout: float | None = field(default=None, metadata=about("Seconds", minimum=0.001, maximum=30))


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """Body of /v1/generate."""

    prompt: str = field(default="", metadata=about("How the text begins"))
    model: str | None = optional(MODEL)
    length: int = field(default=120, metadata=about("Tokens to write at most", minimum=1, maximum=1 << 16))
    beam: int | None = field(default=None, metadata=about("Search instead of sampling", minimum=1, maximum=8))
    temperature: float | None = field(
        default=None,
        metadata=about("0.8 unless there is a beam; 0 takes the likeliest word each time", minimum=0, maximum=100),
    )
    top_p: float = field(
        default=0.95, metadata=about("Sample from the words that have this probability", minimum=0.001, maximum=1)
    )
    top_k: int = field(default=0, metadata=about("Sample from the k likeliest words; 0: all", minimum=0, maximum=9999))
    seed: int = field(default=1, metadata=about("Of sampling", minimum=0, maximum=1 << 31))
    stream: bool = field(default=False, metadata=about("Server-sent events while the text is being written"))
    timeout: float | None = field(default=None, metadata=about("Seconds", minimum=0.001, maximum=30))


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """Body of /v1/score: as many translations as sources."""

    sources: list[str] = field(metadata=about("Source texts", minItems=1, maxItems=128))
    targets: list[str] = field(metadata=about("Their translations, as many", minItems=1, maxItems=128))
    model: str | None = optional(MODEL)
    source: str | None = optional(SOURCE)
    target: str | None = optional(TARGET)


@dataclass(frozen=True, kw_only=True)
class TokenizeRequest:
    """Body of /v1/tokenize."""

    texts: list[str] = field(metadata=about("What to cut into tokens", minItems=1, maxItems=128))
    side: str = field(default="source", metadata=about("Whose tokenizer", enum=["source", "target"]))
    model: str | None = optional(MODEL)
    source: str | None = optional(SOURCE)
    target: str | None = optional(TARGET)


@dataclass(frozen=True, kw_only=True)
class InspectRequest:
    """Body of /v1/inspect."""

    text: str = field(metadata=about("What to look at", minLength=1))
    translation: str | None = field(default=None, metadata=about("Looked at instead of the model's own", minLength=1))
    prefix: list[int] | None = field(
        default=None, metadata=about("Ids of tokens that it has to begin with; the rest is searched", maxItems=511)
    )
    off: list[Head] | None = field(
        default=None, metadata=about("Heads that are switched off: kind, layer and head, from 0", maxItems=512)
    )
    model: str | None = optional(MODEL)
    source: str | None = optional(SOURCE)
    target: str | None = optional(TARGET)


def parsed(request: type[T], values: Mapping[str, Any], limits: Limits) -> T:
    """The request in these values; unknown fields, wrong types and what is out of bounds are refused by name."""
    try:
        result = from_dict(request, values, "request")
    except ValueError as error:
        raise bad_request(str(error)[:MESSAGE], "bad_field") from error
    for one in fields(request):  # type: ignore[arg-type]
        value = getattr(result, one.name)
        if value is None and one.default is None:
            continue
        for bound, limit in bounds_of(one, limits).items():
            if not _WITHIN[bound](value, limit):
                raise bad_request(f"{one.name} is out of bounds; expected {bound} {limit}", "out_of_bounds")
    return result


def bounds_of(one: "Field[Any]", limits: Limits) -> dict[str, Any]:
    """As the field has them, where the server's limits are not lower."""
    ours = {"texts": limits.texts, "sources": limits.texts, "targets": limits.texts, "beam": limits.beam}
    ours |= {"length": limits.length}
    bounds = dict(one.metadata["bounds"])
    if one.name in ours:
        most = "maxItems" if "maxItems" in bounds else "maximum"
        bounds[most] = min(bounds[most], ours[one.name])
    if one.name == "timeout":
        bounds["maximum"] = min(bounds["maximum"], limits.deadline)
    return bounds


def heads_of(off: list[Head] | None) -> tuple[tuple[str, int, int], ...]:
    """Each a kind, a layer and a head; whether the model has them is the engine's to say."""
    heads = []
    for one in off or []:
        kind, layer, head = one if len(one) == 3 else ("", "", "")
        are_numbers = isinstance(layer, int) and isinstance(head, int) and layer >= 0 and head >= 0
        if not are_numbers or kind not in KINDS:
            message = f"off has something that is no head; expected a kind of {', '.join(KINDS)}, a layer and a head"
            raise bad_request(f"{message}, counted from 0", "bad_field")
        heads.append((str(kind), int(layer), int(head)))
    return tuple(heads)


def require_sizes(texts: list[str], limits: Limits) -> int:
    """Characters of all of them, if they are within the limits."""
    longest, total = max(map(len, texts), default=0), sum(map(len, texts))
    if longest > limits.characters:
        raise bad_request(f"Invalid request: request ({longest}) exceeds text limit ({limits.characters})", "too_long")
    if len(texts) > limits.texts:
        raise bad_request(f"Invalid request: request ({len(texts)}) exceeds batch limit ({limits.texts})", "too_many")
    if total > limits.request_characters:
        message = f"Invalid request: request ({total}) exceeds text limit ({limits.request_characters}) of all texts"
        raise bad_request(message, "too_long")
    return total


def schema_of(request: type, limits: Limits) -> dict[str, Any]:
    """JSON Schema."""
    kinds = typing.get_type_hints(request)
    properties = {
        one.name: {
            **_schema(kinds[one.name], bounds_of(one, limits)),
            "description": one.metadata["about"],
            **({"default": one.default} if one.default not in (MISSING, None) else {}),
        }
        for one in fields(request)
    }
    for name, least in (("texts", 0), ("sources", 1), ("targets", 1)):
        if name in properties:
            properties[name]["items"] |= {"minLength": least, "maxLength": limits.characters}
    for name in ("text", "translation", "prompt"):
        if name in properties:
            properties[name]["maxLength"] = limits.characters
    return {
        "type": "object",
        "properties": properties,
        "required": [one.name for one in fields(request) if one.default is MISSING],
        "additionalProperties": False,
    }


def _schema(kind: Any, bounds: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, types.UnionType):
        (inner,) = (one for one in typing.get_args(kind) if one is not type(None))
        whole = _schema(inner, bounds)
        return {**whole, "type": [whole["type"], "null"]}
    if kind == Head:
        places = [{"enum": KINDS}, {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 0}]
        return {"type": "array", "prefixItems": places, "minItems": 3, "maxItems": 3}
    if typing.get_origin(kind) is list:
        (inner,) = typing.get_args(kind)
        return {"type": "array", "items": _schema(inner, {}), **bounds}
    return {"type": _NAMES[kind], **bounds}


_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_WITHIN: dict[str, Any] = {
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "enum": lambda value, limit: value in limit,
}
