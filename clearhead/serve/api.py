"""/v1: translations with scores, confidence and warnings, texts that go on, streams, scores, tokens, traces."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from .batcher import Job, Task
from .bodies import read_values
from .refusal import RefusedError, bad_request
from .requests import (
    GenerateRequest,
    InspectRequest,
    ScoreRequest,
    TokenizeRequest,
    TranslateRequest,
    heads_of,
    parsed,
    require_sizes,
)
from .service import GENERATE, TRANSLATE, Model, Service

KEPT = 64  # steps of a stream that wait for a slow reader


async def translate(request: Request) -> Response:
    service, values = await _opened(request)
    asked = parsed(TranslateRequest, values, service.limits)
    service.require_task(TRANSLATE, asked.model)
    service.admit(request, len(asked.texts), require_sizes(asked.texts, service.limits))
    model = service.choose(asked.model, asked.source, asked.target, " ".join(asked.texts))
    task = Task("translate", model["name"], tuple(_options(asked, model).items()))
    jobs = [service.job(request, task, text, asked.timeout) for text in asked.texts]
    if asked.stream:
        if len(jobs) != 1:
            raise bad_request(f"a stream is of one text, and there are {len(jobs)}; ask for each", "out_of_bounds")
        latest = Latest()
        steps = service.job(request, Task("steps", model["name"]), asked.texts[0], asked.timeout, latest.put)
        return _stream(service, request, model, (steps, jobs[0]), latest)
    results = await service.ask(request, jobs)
    return JSONResponse(_answer(service, model, results, jobs))


async def generate(request: Request) -> Response:
    service, values = await _opened(request)
    asked = parsed(GenerateRequest, values, service.limits)
    service.require_task(GENERATE, asked.model)
    if asked.beam and asked.temperature:
        raise bad_request("a beam searches, and a temperature samples; leave out one of them", "out_of_bounds")
    service.admit(request, 1, require_sizes([asked.prompt], service.limits))
    able = [model for model in service.models if model["task"] == GENERATE]
    model = service.choose(asked.model or able[0]["name"], None, None, "")
    names = ("length", "beam", "temperature", "top_p", "top_k", "seed", "stream")
    task = Task("generate", model["name"], tuple((name, getattr(asked, name)) for name in names))
    latest = Latest()
    job = service.job(request, task, asked.prompt, asked.timeout, latest.put)
    if asked.stream:
        return _stream(service, request, model, (job, job), latest)
    return JSONResponse(_answer(service, model, await service.ask(request, [job]), [job]))


async def score(request: Request) -> Response:
    service, values = await _opened(request)
    asked = parsed(ScoreRequest, values, service.limits)
    if len(asked.sources) != len(asked.targets):
        message = f"there are {len(asked.sources)} sources and {len(asked.targets)} targets; expected as many"
        raise bad_request(message, "bad_field")
    service.require_task(TRANSLATE, asked.model)
    service.admit(request, len(asked.sources), require_sizes([*asked.sources, *asked.targets], service.limits))
    model = service.choose(asked.model, asked.source, asked.target, " ".join(asked.sources))
    pairs = [list(pair) for pair in zip(asked.sources, asked.targets, strict=True)]
    results = await service.ask(request, [service.job(request, Task("score", model["name"]), pair) for pair in pairs])
    return JSONResponse({"model": model, "results": results})


async def tokenize(request: Request) -> Response:
    service, values = await _opened(request)
    asked = parsed(TokenizeRequest, values, service.limits)
    service.admit(request, len(asked.texts), require_sizes(asked.texts, service.limits))
    model = service.choose(asked.model, asked.source, asked.target, " ".join(asked.texts))
    task = Task("tokenize", model["name"], (("side", asked.side),))
    results = await service.ask(request, [service.job(request, task, text) for text in asked.texts])
    return JSONResponse({"model": model, "results": results})


async def inspect(request: Request) -> Response:
    service, values = await _opened(request)
    asked = parsed(InspectRequest, values, service.limits)
    service.admit(request, 1, require_sizes([asked.text, asked.translation or ""], service.limits))
    model = service.choose(asked.model, asked.source, asked.target, asked.text)
    options = {"cells": service.limits.attention_cells, "prefix": tuple(asked.prefix or ()), "off": heads_of(asked.off)}
    if asked.prefix and asked.translation:
        raise bad_request("there is a translation and a prefix of another; leave out one of them", "out_of_bounds")
    task = Task("inspect", model["name"], tuple(options.items()))
    (trace,) = await service.ask(request, [service.job(request, task, [asked.text, asked.translation])])
    return JSONResponse({"id": service.keep_trace(trace), "trace": trace})


async def trace(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse({"id": request.path_params["id"], "trace": service.trace(request.path_params["id"])})


async def _opened(request: Request) -> tuple[Service, dict[str, Any]]:
    """Refused before the body is read, if it must be."""
    service: Service = request.app.state.service
    service.require_ready()
    values, is_form = await read_values(request, service.limits)
    if is_form:
        raise RefusedError(415, "unsupported_media_type", "the body is a form; expected JSON (application/json)")
    return service, values


def _options(asked: TranslateRequest, model: Model) -> dict[str, Any]:
    beam = asked.beam or max(model["beam"], asked.n_best)
    if asked.n_best > beam:
        raise bad_request(f"n_best is {asked.n_best}, but a beam of {beam} finds no more than {beam}", "out_of_bounds")
    return {"beam": beam, "n_best": asked.n_best, "prefix": asked.prefix, "tokens": asked.tokens}


def _answer(service: Service, model: Model, results: list[Any], jobs: Sequence[Job]) -> dict[str, Any]:
    for result in results:
        for warning in result.get("warnings", ()):
            service.metrics.warnings.add(1, warning)
    entered = min(job.entered for job in jobs)
    begun = max(job.begun or job.entered for job in jobs)
    seconds = {"queue": round(begun - entered, 4), "total": round(time.monotonic() - entered, 4)}
    return {"model": model, "results": results, "seconds": seconds}


# -- streams ---------------------------------------------------------------------------------------------------------


def _stream(service: Service, request: Request, model: Model, jobs: tuple[Job, Job], latest: "Latest") -> Response:
    """The first job's steps, each with the whole text so far; then the result of the last, which may be the same."""
    jobs[0].answer.add_done_callback(lambda _: latest.end())
    service.batcher.submit(jobs[:1])  # while it can still be refused with a status
    events = _events(service, request, model, jobs, latest)
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(
    service: Service, request: Request, model: Model, jobs: tuple[Job, Job], latest: "Latest"
) -> AsyncIterator[str]:
    request_id = request.scope["state"]["id"]
    first, last = jobs
    try:
        async with asyncio.timeout(first.deadline - time.monotonic()):
            async for text in latest.texts():
                yield _event("partial", {"text": text})
        if last is not first:
            if not first.answer.cancelled():
                first.answer.exception()  # seen; the beam may still have an answer
            service.batcher.submit([last])
        async with asyncio.timeout(last.deadline - time.monotonic()):
            results = [await last.answer]
        yield _event("result", _answer(service, model, results, [last]))
    except TimeoutError:
        late = RefusedError(503, "deadline_exceeded", "there was no answer in time; ask for less, or try again later")
        yield _event("error", late.body(request_id))
    except RefusedError as refusal:
        yield _event("error", refusal.body(request_id))
    finally:
        service.batcher.cancel(jobs)


class Latest:
    """The newest of what comes; a slow reader misses some of it, and nothing piles up."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque(maxlen=KEPT)
        self._has_ended = False
        self._changed = asyncio.Event()

    def put(self, text: str) -> None:
        self._texts.append(text)
        self._changed.set()

    def end(self) -> None:
        self._has_ended = True
        self._changed.set()

    async def texts(self) -> AsyncIterator[str]:
        while not self._has_ended or self._texts:
            await self._changed.wait()
            while self._texts:
                yield self._texts.popleft()
            if not self._has_ended:
                self._changed.clear()


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
