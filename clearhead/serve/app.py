"""The routes, and how what goes wrong in them is told."""

from collections.abc import Awaitable, Callable
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import api, describing, libretranslate
from .front_page import page_files
from .gate import Gate, refusal_response
from .refusal import RefusedError
from .service import GoneError, Service

Endpoint = Callable[[Request], Awaitable[Response]]
CODES = {404: "not_found", 405: "method_not_allowed"}


def make_app(service: Service) -> Gate:
    routes = [
        Route("/translate", libretranslate.translate, methods=["POST"]),
        Route("/detect", libretranslate.detect, methods=["POST"]),
        Route("/languages", libretranslate.languages),
        Route("/frontend/settings", libretranslate.settings),
        Route("/translate_file", libretranslate.translate_file, methods=["POST"]),
        Route("/suggest", libretranslate.suggest, methods=["POST"]),
        Route("/v1/translate", api.translate, methods=["POST"]),
        Route("/v1/generate", api.generate, methods=["POST"]),
        Route("/v1/score", api.score, methods=["POST"]),
        Route("/v1/tokenize", api.tokenize, methods=["POST"]),
        Route("/v1/inspect", api.inspect, methods=["POST"]),
        Route("/v1/inspect/{id}", api.trace),
        Route("/v1/models", describing.models),
        Route("/v1/info", describing.info),
        Route("/spec", describing.spec),
        Route("/health", describing.readyz),
        Route("/livez", describing.livez),
        Route("/readyz", describing.readyz),
        Route("/metrics", describing.metrics),
    ]
    pages = [Route(path, _file(content, kind)) for path, (content, kind) in page_files().items()]
    known = {route.path for route in [*routes, *pages]}
    handlers = {RefusedError: _refused, HTTPException: _not_routed, GoneError: _gone, Exception: _failed}
    app = Starlette(routes=[*routes, *pages], exception_handlers=handlers)
    app.router.redirect_slashes = False
    libretranslate.language_name("en")  # loads all names, before anybody waits for them
    app.state.service = service
    return Gate(app, service, known, {page.path for page in pages})


def _file(content: bytes, kind: str) -> Endpoint:
    async def send_file(request: Request) -> Response:  # noqa: ARG001
        return Response(content, media_type=kind)

    return send_file


async def _refused(request: Request, error: Exception) -> Response:
    refusal = cast(RefusedError, error)
    request.scope["state"]["code"] = refusal.code
    return refusal_response(refusal, request.scope["state"]["id"])


async def _not_routed(request: Request, error: Exception) -> Response:
    """No such path, or no such method there: the headers say which there are."""
    found = cast(HTTPException, error)
    message = f"{found.detail}; GET /spec says what there is"
    response = await _refused(
        request, RefusedError(found.status_code, CODES.get(found.status_code, "refused"), message)
    )
    response.headers.update(found.headers or {})
    return response


async def _gone(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)


async def _failed(request: Request, error: Exception) -> Response:
    """A bug of ours: the traceback is for the log, without any text."""
    del error
    bug = RefusedError(
        500, "internal_error", "something is wrong with the server; please report it with this request's id"
    )
    return refusal_response(bug, request.scope["state"]["id"])
