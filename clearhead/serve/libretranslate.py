"""The routes that LibreTranslate's clients know, with its fields and its sentences.

Unknown fields are ignored as there; what it answers with 500 (a list of numbers, alternatives that are none) is a 400.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .batcher import Task
from .bodies import read_values
from .options import Limits
from .refusal import RefusedError, bad_request
from .requests import require_sizes
from .service import AUTO, TRANSLATE, Model, Service


@dataclass(frozen=True)
class Asked:
    """Body of /translate."""

    texts: list[str]
    is_list: bool
    source: str
    target: str
    alternatives: int


async def translate(request: Request) -> Response:
    service: Service = request.app.state.service
    service.require_ready()
    values, is_form = await read_values(request, service.limits)
    service.require_key(request, _text(values, "api_key"))
    service.require_task(TRANSLATE)
    asked = _asked(values, is_form, service.limits)
    service.admit(request, len(asked.texts), require_sizes(asked.texts, service.limits))
    detected = [service.languages(text)[0] if asked.source == AUTO else (asked.source, 100.0) for text in asked.texts]
    models = [_model(service, source, asked.target) for source, _ in detected]
    jobs = [
        service.job(request, _task(model, asked.alternatives), text)
        for model, text in zip(models, asked.texts, strict=True)
        if model is not None and text
    ]
    answers = iter(await service.ask(request, jobs) if jobs else [])
    found = [
        next(answers) if model is not None and text else {"text": text, "alternatives": [], "warnings": []}
        for model, text in zip(models, asked.texts, strict=True)
    ]
    for answer in found:
        for warning in answer["warnings"]:
            service.metrics.warnings.add(1, warning)
    return JSONResponse(_answer(asked, found, detected))


async def detect(request: Request) -> Response:
    service: Service = request.app.state.service
    service.require_ready()
    values, _ = await read_values(request, service.limits)
    service.require_key(request, _text(values, "api_key"))
    service.require_task(TRANSLATE)
    text = values.get("q")
    if not isinstance(text, str) or not text:
        raise bad_request("Invalid request: missing q parameter", "missing_field")
    service.admit(request, 1, require_sizes([text], service.limits))
    found = [{"confidence": confidence, "language": language} for language, confidence in service.languages(text)]
    return JSONResponse(found)


async def languages(request: Request) -> Response:
    """Each source language, with itself among the targets: such a text is copied."""
    service: Service = request.app.state.service
    targets: dict[str, list[str]] = {}
    for model in service.translating:
        targets.setdefault(model["source"], [model["source"]]).append(model["target"])
    return JSONResponse(
        [
            {"code": code, "name": language_name(code), "targets": sorted(set(some))}
            for code, some in sorted(targets.items())
        ]
    )


async def settings(request: Request) -> Response:
    service: Service = request.app.state.service
    source, target = next(((model["source"], model["target"]) for model in service.translating), ("", ""))
    return JSONResponse(
        {
            "apiKeys": service.keys is not None,
            "charLimit": service.limits.characters,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": service.keys is not None,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )


async def translate_file(request: Request) -> Response:  # noqa: ARG001
    raise RefusedError(403, "no_files", "Files translation are disabled on this server.")


async def suggest(request: Request) -> Response:  # noqa: ARG001
    raise RefusedError(403, "no_suggestions", "Suggestions are disabled on this server.")


@cache
def language_name(code: str) -> str:
    """In English; the code itself if it is none that is known."""
    from babel import Locale

    return str(Locale("en").languages.get(code.replace("-", "_"), code))


def _asked(values: dict[str, Any], is_form: bool, limits: Limits) -> Asked:
    for name in ("q", "source", "target"):
        if values.get(name) in (None, "", []):
            raise bad_request(f"Invalid request: missing {name} parameter", "missing_field")
    q = values["q"]
    texts = [q] if isinstance(q, str) else q
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad_request("Invalid request: q is no text and no list of texts", "bad_field")
    form = values.get("format", "text")
    if form != "text":
        shown = form[:60] if isinstance(form, str) else "this"
        raise bad_request(f"{shown} format is not supported; expected text, without mark-up", "format_not_supported")
    return Asked(
        texts,
        isinstance(q, list),
        _text(values, "source") or "",
        _text(values, "target") or "",
        _alternatives(values.get("alternatives", 0), is_form, limits),
    )


def _text(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"Invalid request: {name} is no text", "bad_field")
    return value


def _alternatives(value: Any, is_form: bool, limits: Limits) -> int:
    if is_form and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.alternatives:
        message = f"Invalid request: alternatives is no whole number from 0 to {limits.alternatives}"
        raise bad_request(message, "bad_field")
    return value


def _model(service: Service, source: str, target: str) -> Model | None:
    """None: source and target are one language, and the text is copied."""
    model = service.model_for(source, target)
    if model is not None:
        return model
    sources = {model["source"] for model in service.translating}
    targets = {model["target"] for model in service.translating}
    if source not in sources:
        raise bad_request(f"{source[:60]} is not supported", "language_not_supported")
    if source == target:
        return None
    if target not in targets:
        raise bad_request(f"{target[:60]} is not supported", "language_not_supported")
    names = [f"{language_name(code)} ({code})" for code in (target, source)]
    raise bad_request(f"{names[0]} is not available as a target language from {names[1]}", "language_not_supported")


def _task(model: Model, alternatives: int) -> Task:
    options = {"beam": max(model["beam"], 1 + alternatives), "n_best": 1 + alternatives, "prefix": "", "tokens": False}
    return Task("translate", model["name"], tuple(options.items()))


def _answer(asked: Asked, found: list[dict[str, Any]], detected: list[tuple[str, float]]) -> dict[str, Any]:
    """A list for a list, and for a text a text."""
    columns: dict[str, list[Any]] = {"translatedText": [one["text"] for one in found]}
    if asked.alternatives:
        columns["alternatives"] = [[other["text"] for other in one["alternatives"]] for one in found]
    if asked.source == AUTO:
        columns["detectedLanguage"] = [
            {"confidence": confidence, "language": language} for language, confidence in detected
        ]
    return {name: column if asked.is_list else column[0] for name, column in columns.items()}
