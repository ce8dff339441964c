"""Routes that tell of the server itself: is it alive, is it ready, what does it serve, how is it doing."""

import os
from dataclasses import asdict
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

import clearhead

from .openapi import document
from .service import Service

PROC = Path("/proc")


async def livez(request: Request) -> Response:  # noqa: ARG001
    """The front answers."""
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> Response:
    """The engine is there, and nobody has asked the server to stop; LibreTranslate's /health too."""
    service: Service = request.app.state.service
    state = service.state
    if state == "ready":
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": state}, 503, {"retry-after": "1"})


async def models(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse({"models": service.models})


async def info(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse(
        {
            "name": "clearhead",
            "version": clearhead.__version__,
            "status": service.state,
            "models": service.models,
            "limits": asdict(service.limits),
            "key_required": service.keys is not None,
        }
    )


async def spec(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse(document(service.limits, service.keys is not None, service.models))


async def metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    ours, supervisor = service.metrics, service.supervisor
    engine = supervisor.engine
    ours.in_flight.set(service.in_flight)
    ours.queue_texts.set(service.batcher.waiting)
    ours.engine_up.set(float(supervisor.state == "ready"))
    ours.heartbeat.set(engine.silence if engine else 0.0)
    ours.batch_age.set(engine.age if engine else 0.0)
    for cause, count in supervisor.restarts.items():
        ours.restarts.set(count, cause)
    ours.model.values = {(model["name"], model["sha256"], clearhead.__version__): 1.0 for model in service.models}
    _set_process_metrics(service)
    return PlainTextResponse(ours.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _set_process_metrics(service: Service) -> None:
    """Where the system tells."""
    engine = service.supervisor.engine
    for name, pid in (("front", os.getpid()), ("engine", engine.pid if engine else 0)):
        statm = PROC / str(pid) / "statm"
        if pid and statm.exists():
            pages = int(statm.read_text(encoding="ascii").split()[1])
            service.metrics.memory.set(pages * os.sysconf("SC_PAGE_SIZE"), name)
    if (PROC / "self/fd").exists():
        service.metrics.files.set(len(list((PROC / "self/fd").iterdir())))
