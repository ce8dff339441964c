"""What every request passes before it is routed: a name that is ours, an origin that is ours, a key; and what every
answer gets: headers for browsers, a line in the log without any text, and its place in the metrics.

Faults F47 and F48 of the fault matrix.
"""

import ipaddress
import secrets
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .log import log
from .options import LOOPBACK
from .refusal import RefusedError
from .service import Service

OPEN = {"/livez", "/readyz", "/health", "/languages", "/frontend/settings", "/spec"}  # without a key
KEY_IN_BODY = {"/translate", "/detect", "/translate_file", "/suggest"}  # as LibreTranslate's clients send it
SAFE = ("GET", "HEAD")
REASONS = {
    "body": ("too_large",),
    "queue": ("queue_full", "draining", "starting"),
    "rate": ("too_many_requests",),
    "deadline": ("deadline_exceeded",),
    "auth": ("key_needed", "invalid_key"),
    "host": ("bad_host", "foreign_origin"),
}
REASON = {code: reason for reason, codes in REASONS.items() for code in codes}
SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
RAW = [(name.encode(), value.encode()) for name, value in SECURITY.items()]  # as they are sent


class Gate:
    """An ASGI app around the routes. `pages` are the paths of the page's files, which need no key."""

    def __init__(self, app: ASGIApp, service: Service, routes: set[str], pages: set[str]) -> None:
        self._app, self._service, self._routes, self._pages = app, service, routes, pages
        ours = service.options.host, *service.options.public_hosts
        self._hosts = {*LOOPBACK, *(name.lower() for name in ours)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        visit = Visit(self._service, self._route(scope["path"]), scope)

        async def send_with_headers(message: Message) -> None:
            visit.see(message)
            await send(message)

        self._service.in_flight += 1
        try:
            self._check(scope)
            await self._app(scope, receive, send_with_headers)
        except RefusedError as refusal:
            await refusal_response(refusal, visit.id)(scope, receive, send_with_headers)
        finally:
            self._service.in_flight -= 1
            visit.end()

    def _route(self, path: str) -> str:
        """A label of a closed set."""
        if path.startswith("/v1/inspect/"):
            return "/v1/inspect/{id}"
        return path if path in self._routes else "other"

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        if scope["method"] not in SAFE:
            self._check_origin(headers)
        path = scope["path"]
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if self._service.keys is None or path in OPEN or path in self._pages:
            return
        if scheme.lower() == "bearer":
            label = self._service.keys.label(key.strip())
            if label is None:
                raise RefusedError(403, "invalid_key", "Invalid API key")
            scope["state"]["label"] = label
        elif path not in KEY_IN_BODY:
            raise RefusedError(403, "key_needed", "Please contact the server operator to get an API key")

    def _check_host(self, headers: Headers) -> None:
        """Against DNS rebinding: a page of another site that has got our address still has its own name."""
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or name not in self._hosts:
            if not self._service.options.is_local and name is not None and _is_address(name):
                return  # no name to rebind
            message = "this server is not called by this name; use its own, or start it with --public-host"
            raise RefusedError(421, "bad_host", message)

    def _check_origin(self, headers: Headers) -> None:
        """A page of another site may not make its visitors ask us."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_foreign = origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
        if is_foreign or site in ("cross-site", "same-site"):
            raise RefusedError(403, "foreign_origin", "pages of other sites may not use this server")


class Visit:
    """One request, as far as it may be known afterwards."""

    def __init__(self, service: Service, route: str, scope: Scope) -> None:
        self._service, self._route, self._method = service, route, scope["method"]
        self.id = secrets.token_hex(8)
        self._started = time.monotonic()
        self._status = 499  # the client left
        scope["state"] = self._state = {"id": self.id}

    def see(self, message: Message) -> None:
        if message["type"] != "http.response.start":
            return
        self._status = message["status"]
        headers = message["headers"]
        own = {name for name, _ in headers}
        headers += [pair for pair in RAW if pair[0] not in own]
        headers.append((b"x-request-id", self.id.encode()))
        if self._service.is_draining or self._status == 413:
            headers.append((b"connection", b"close"))

    def end(self) -> None:
        seconds = time.monotonic() - self._started
        metrics, state = self._service.metrics, self._state
        method = self._method if self._method in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        metrics.requests.add(1, self._route, method, str(self._status))
        metrics.duration.observe(seconds, self._route)
        facts = {name: state[name] for name in ("texts", "characters", "label", "code") if name in state}
        if "code" in facts:
            metrics.rejected.add(1, REASON.get(str(facts["code"]), "bad_request"))
        known: Mapping[str, Any] = {"route": self._route, "method": method, "status": self._status}
        log("request", id=self.id, **known, seconds=round(seconds, 4), **facts)


def refusal_response(refusal: RefusedError, request_id: str) -> JSONResponse:
    return JSONResponse(refusal.body(request_id), refusal.status, refusal.headers())


def host_name(host: str) -> str | None:
    """Without the port; none if it cannot be one."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
