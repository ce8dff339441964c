"""The OpenAPI document of /spec, made of the same dataclasses and limits by which requests are checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import clearhead

from .options import Limits
from .requests import (
    GenerateRequest,
    InspectRequest,
    ScoreRequest,
    TokenizeRequest,
    TranslateRequest,
    schema_of,
)

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
SURE: Json = {"type": ["number", "null"]}


def document(limits: Limits, needs_key: bool, models: Sequence[Mapping[str, Any]]) -> Json:
    """OpenAPI 3.1, with the languages of these models."""
    translating = [model for model in models if model["task"] == "translate"]
    sources = sorted({model["source"] for model in translating})
    targets = sorted({model["target"] for model in translating} | set(sources))
    paths = {
        "/translate": {
            "post": _libretranslate(
                "Translate, as LibreTranslate does", _translate_body(limits, sources, targets), _TRANSLATED
            )
        },
        "/detect": {"post": _libretranslate("Which language a text is in", _detect_body(limits), _DETECTED)},
        "/languages": {"get": _get("Source languages and their targets", _array(_LANGUAGE))},
        "/frontend/settings": {"get": _get("What LibreTranslate's page asks for", {"type": "object"})},
        "/v1/translate": {"post": _native("Translate", TranslateRequest, limits, _TRANSLATIONS)},
        "/v1/generate": {"post": _native("Continue a text", GenerateRequest, limits, _GENERATED)},
        "/v1/score": {"post": _native("How likely given translations are", ScoreRequest, limits, _SCORES)},
        "/v1/tokenize": {"post": _native("A text in tokens", TokenizeRequest, limits, _TOKENIZED)},
        "/v1/inspect": {"post": _native("What every head looked at", InspectRequest, limits, _TRACE)},
        "/v1/inspect/{id}": {"get": _trace()},
        "/v1/models": {"get": _get("The models", _object({"models": _array(_MODEL)}))},
        "/v1/info": {"get": _get("Version, models and limits", {"type": "object"})},
        "/livez": {"get": _get("Whether the server runs", _STATUS)},
        "/readyz": {"get": _get("Whether it can translate", _STATUS)},
        "/health": {"get": _get("Whether it can translate", _STATUS)},
        "/metrics": {"get": _metrics()},
        "/spec": {"get": _get("This document", {"type": "object"})},
    }
    for path in ("/v1/translate", "/v1/generate"):
        paths[path]["post"]["responses"]["200"]["content"]["text/event-stream"] = {"schema": _EVENT}
    schemes: Json = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Clearhead", "version": clearhead.__version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}, **({"securitySchemes": schemes} if needs_key else {})},
        **({"security": [{"key": []}]} if needs_key else {}),
    }


def _object(properties: Json, optional: tuple[str, ...] = ()) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


_ERROR = _object({"error": TEXT, "code": TEXT, "request_id": TEXT})
_STATUS = _object({"status": TEXT})
_LANGUAGE = _object({"code": TEXT, "name": TEXT, "targets": _array(TEXT)})
_MODEL = _object(
    {
        "name": TEXT,
        "task": {"enum": ["translate", "generate"]},
        "source": TEXT,
        "target": TEXT,
        "engine": TEXT,
        "example": TEXT,
        "sha256": TEXT,
    }
)
_GUESS = _object({"confidence": NUMBER, "language": TEXT})
_DETECTED = _array(_GUESS)
_TEXT_OR_LIST: Json = {"oneOf": [TEXT, _array(TEXT)]}
_TRANSLATED = _object(
    {
        "translatedText": _TEXT_OR_LIST,
        "alternatives": {"type": "array"},
        "detectedLanguage": {"oneOf": [_GUESS, _array(_GUESS)]},
    },
    optional=("alternatives", "detectedLanguage"),
)
_TOKEN = _object({"piece": TEXT, "log_probability": NUMBER})
_PART = _object({"source": TEXT, "target": TEXT})
_RESULT = _object(
    {
        "text": TEXT,
        "score": NUMBER,
        "confidence": SURE,
        "warnings": _array(TEXT),
        "details": {"type": "object", "additionalProperties": _array(TEXT)},
        "alternatives": _array(_object({"text": TEXT, "score": NUMBER, "confidence": SURE})),
        "tokens": _object({"source": _array(TEXT), "target": _array(_TOKEN), "parts": _array(_PART)}),
    },
    optional=("tokens",),
)
_SECONDS = _object({"queue": NUMBER, "total": NUMBER})
_TRANSLATIONS = _object({"model": _MODEL, "results": _array(_RESULT), "seconds": _SECONDS})
_WRITTEN = _object({"text": TEXT, "prompt": TEXT, "continuation": TEXT, "score": NUMBER, "tokens": {"type": "integer"}})
_GENERATED = _object({"model": _MODEL, "results": _array(_WRITTEN), "seconds": _SECONDS})
_SCORE = _object({"log_probability": NUMBER, "mean": NUMBER, "tokens": _array(_TOKEN)})
_SCORES = _object({"model": _MODEL, "results": _array(_SCORE)})
_PIECES = _object({"ids": _array({"type": "integer"}), "pieces": _array(TEXT)})
_TOKENIZED = _object({"model": _MODEL, "results": _array(_PIECES)})
_EVENT = _object({"event": {"enum": ["partial", "result", "error"]}, "data": TEXT})
_TRACE = _object({"id": TEXT, "trace": {"type": "object"}})


def _translate_body(limits: Limits, sources: list[str], targets: list[str]) -> Json:
    text = {"type": "string", "minLength": 1, "maxLength": limits.characters}
    texts = {"type": "array", "minItems": 1, "maxItems": limits.texts, "items": {**text, "minLength": 0}}
    return {
        "type": "object",
        "properties": {
            "q": {"oneOf": [text, texts]},
            "source": {"enum": [*sources, "auto"]},
            "target": {"enum": targets},
            "format": {"enum": ["text"]},
            "alternatives": {"type": "integer", "minimum": 0, "maximum": limits.alternatives},
            "api_key": {"type": ["string", "null"]},
        },
        "required": ["q", "source", "target"],
    }


def _detect_body(limits: Limits) -> Json:
    text = {"type": "string", "minLength": 1, "maxLength": limits.characters}
    return {
        "type": "object",
        "properties": {"q": text, "api_key": {"type": ["string", "null"]}},
        "required": ["q"],
    }


def _answers(schema: Json, codes: dict[str, str]) -> Json:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    good = {"200": {"description": "Done", "content": {"application/json": {"schema": schema}}}}
    return good | {code: {"description": text, "content": error} for code, text in codes.items()}


def _get(summary: str, schema: Json) -> Json:
    answers = _answers(schema, {"403": "No key or another host", "421": "Not this server's name"})
    if schema is _STATUS:
        answers["503"] = {"description": "Not now", "content": {"application/json": {"schema": _STATUS}}}
    return {"summary": summary, "responses": answers}


_POST_ANSWERS = {
    "400": "A field is missing or wrong",
    "403": "No key, or a page of another site",
    "408": "Sent too slowly",
    "413": "Too large",
    "415": "Neither JSON nor a form",
    "421": "Not this server's name",
    "429": "Too many requests a minute",
    "500": "This text kills the engine",
    "503": "Too busy, starting, stopping, or no answer in time",
}


def _libretranslate(summary: str, body: Json, answer: Json) -> Json:
    content = {"application/json": {"schema": body}, "application/x-www-form-urlencoded": {"schema": _as_form(body)}}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": _answers(answer, _POST_ANSWERS),
    }


def _as_form(body: Json) -> Json:
    """In a form `q` is a single text."""
    properties = dict(body["properties"])
    if "oneOf" in properties["q"]:
        properties["q"] = properties["q"]["oneOf"][0]
    return {**body, "properties": properties}


def _native(summary: str, request: type, limits: Limits, answer: Json) -> Json:
    content = {"application/json": {"schema": schema_of(request, limits)}}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": _answers(answer, _POST_ANSWERS),
    }


def _trace() -> Json:
    parameter = {"name": "id", "in": "path", "required": True, "schema": TEXT}
    answers = _answers(_TRACE, {"403": "No key", "404": "Not kept any more", "421": "Not this server's name"})
    return {"summary": "A trace once more", "parameters": [parameter], "responses": answers}


def _metrics() -> Json:
    answers = _answers({}, {"403": "No key", "421": "Not this server's name"})
    answers["200"]["content"] = {"text/plain": {"schema": TEXT}}
    return {"summary": "For Prometheus", "responses": answers}
