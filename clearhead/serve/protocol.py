"""HTTP/1.1 on uvicorn and h11, with what they lack: deadlines for slow senders and readers, and a stricter parser.

Faults F43 and F44 of the fault matrix.
"""

import asyncio
import json
import secrets
from collections import Counter
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from .options import LOOPBACK, Limits

DEADLINE_MESSAGE = "the request did not arrive in time"


class StrictConnection(h11.Connection):
    """Refuses what a proxy in front of us might read otherwise: a length and chunks, or headers without end."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(h11.SERVER, limits.header_bytes)
        self._limits = limits

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            if event.http_version not in (b"1.0", b"1.1"):
                raise h11.RemoteProtocolError("another version of HTTP", error_status_hint=505)
            names = [name for name, _ in event.headers]
            size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
            if len(names) > self._limits.headers or size > self._limits.header_bytes:
                raise h11.RemoteProtocolError("the headers are too large", error_status_hint=431)
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("both a content length and a transfer encoding")
        return event


class Connections:
    """How many there are, and from where."""

    def __init__(self) -> None:
        self.total = 0
        self.by_address: Counter[str] = Counter()

    def change(self, address: str, by: int) -> None:
        self.total += by
        self.by_address[address] += by
        if not self.by_address[address]:
            del self.by_address[address]

    def is_too_many(self, address: str, limits: Limits) -> bool:
        is_near = address in LOOPBACK or address.startswith("127.")
        return self.total > limits.connections or (
            not is_near and self.by_address[address] > limits.connections_per_address
        )


class DeadlineProtocol(H11Protocol):
    """A connection that is closed if its client takes too long to ask, or to read."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None,
        limits: Limits,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = StrictConnection(limits)
        self._limits, self._all = limits, connections
        self._address = ""
        self._arrival: asyncio.TimerHandle | None = None  # until when the request has to be here
        self._stall: asyncio.TimerHandle | None = None  # until when what was sent has to be read
        self._has_headers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._all.change(self._address, +1)
        transport.set_write_buffer_limits(high=0)  # so that pause_writing tells of anything that is not read
        if self._all.is_too_many(self._address, self._limits):
            self._say(503, "too_many_connections", "there are too many connections; try again later")
        else:
            self._arrival = self.loop.call_later(self._limits.header_seconds, self._is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.change(self._address, -1)
        for timer in (self._arrival, self._stall, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._arrival is None and self._is_between_requests():
            self._arrival = self.loop.call_later(self._limits.header_seconds, self._is_late)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        del msg  # uvicorn's
        self._say(400, "bad_http", "the request is no HTTP/1.1 that can be trusted; mend it and try again")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def shutdown(self) -> None:
        """Idle connections are closed at once; half a request is an idle one."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def _is_between_requests(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and self.conn.their_state is h11.IDLE)

    def _set_deadline(self) -> None:
        """Headers have theirs; with them known, the whole request has one; when it is here, none."""
        state = self.conn.their_state
        if state is h11.SEND_BODY and not self._has_headers:
            self._has_headers = True
            self._rearm(self._limits.request_seconds)
        elif state is not h11.SEND_BODY and state is not h11.IDLE:
            self._has_headers = False
            self._rearm(None)
        elif state is h11.IDLE:
            self._has_headers = False

    def _rearm(self, seconds: float | None) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
        self._arrival = None if seconds is None else self.loop.call_later(seconds, self._is_late)

    def _is_late(self) -> None:
        self._arrival = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._say(408, "too_slow", DEADLINE_MESSAGE)

    def _say(self, status: int, code: str, message: str) -> None:
        """An answer without the app, unless one was begun; then the end."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            request_id = secrets.token_hex(8)
            content = json.dumps({"error": message, "code": code, "request_id": request_id}).encode()
            head = [
                f"HTTP/1.1 {status} {STATUS_PHRASES[status].decode()}",
                "content-type: application/json",
                f"content-length: {len(content)}",
                "x-content-type-options: nosniff",
                "cache-control: no-store",
                *(["retry-after: 1"] if status == 503 else []),
                "connection: close",
            ]
            self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + content)
        self.transport.close()
