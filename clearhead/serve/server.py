"""`clearhead serve`: bind, start the front and the engine, and stop in good order.

Faults F51, F54 and F55 of the fault matrix.
"""

import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

from uvicorn import Config, Server
from uvicorn.server import ServerState

from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.errors import DISK, INTERRUPTED, OK, TRY_AGAIN, USAGE, UserError, warning_line

from .app import make_app
from .log import log, take_over_logging
from .options import ServeOptions
from .protocol import Connections, DeadlineProtocol
from .refusal import RefusedError
from .service import Service

BACKLOG = 1024  # connections that wait to be accepted
SEND_BUFFER = 1 << 17  # bytes of answers that the system keeps for a client that does not read
SPARE_FILES = 40  # that are not connections
NOT_DRAINED = 1  # exit code: some requests had to be refused
LAST_ANSWERS = 3.0  # seconds for answers that are on their way


class QuietServer(Server):
    """uvicorn's, but signals are ours: it would end with the signal's exit code."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(options: ServeOptions) -> int:
    """Until a signal; the exit code."""
    _require_safe(options)
    for model in options.models:
        read_config(find_model(model))  # what is wrong with a name is said before anything is started
    listener = _bind(options)
    take_over_logging()
    try:
        with asyncio.Runner() as runner:
            return runner.run(Front(options, listener).run())
    finally:
        listener.close()


class Front:
    """The front process from its start to its end."""

    def __init__(self, options: ServeOptions, listener: socket.socket) -> None:
        self._options, self._listener = options, listener
        self._service = Service(options)
        self._connections = Connections()
        config = Config(
            make_app(self._service),
            http=self._protocol,  # type: ignore[arg-type]
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=int(options.limits.idle_seconds),
            timeout_graceful_shutdown=int(LAST_ANSWERS),
        )
        self._server = QuietServer(config)
        self._stop = asyncio.Event()
        self._exit_code = OK
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ask_to_stop, OK)
        loop.add_signal_handler(signal.SIGINT, self._ask_to_stop, INTERRUPTED)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        self._raise_file_limit()
        supervising = asyncio.create_task(self._service.supervisor.run())
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        stopping = asyncio.create_task(self._stop.wait())
        host, port = self._listener.getsockname()[:2]
        log("listening", host=host, port=port, pid=os.getpid())
        try:
            await asyncio.wait({supervising, serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if supervising.done():
                supervising.result()  # a UserError: the models cannot be had
            is_drained = await self._drain()
            return self._exit_code if is_drained else NOT_DRAINED
        finally:
            self._server.should_exit = True
            await asyncio.wait({serving})
            await self._service.supervisor.close()
            supervising.cancel()
            log("stopped")

    def _protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> DeadlineProtocol:
        limits = self._options.limits
        return DeadlineProtocol(config, server_state, app_state, _loop, limits, self._connections)

    def _ask_to_stop(self, exit_code: int) -> None:
        if self._stop.is_set():
            log("stopped", reason="a second signal")
            os._exit(NOT_DRAINED)
        self._exit_code = exit_code
        self._service.is_draining = True
        self._stop.set()

    def _reload(self) -> None:
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._service.supervisor.reload())

    async def _drain(self) -> bool:
        """Whether all that had been begun was answered."""
        service = self._service
        log("draining", in_flight=service.in_flight)
        patience = asyncio.get_running_loop().time() + self._options.limits.drain_seconds
        while service.in_flight and asyncio.get_running_loop().time() < patience:
            await asyncio.sleep(0.02)
        if not service.in_flight:
            return True
        service.batcher.refuse_all(RefusedError(503, "draining", "the server had to stop; try another", 5.0))
        await asyncio.sleep(0.1)
        return False

    def _raise_file_limit(self) -> None:
        """As many open files as we may have; with fewer, fewer connections."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = self._options.limits.connections + SPARE_FILES
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if most > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _require_safe(options: ServeOptions) -> None:
    if options.is_local or options.api_keys is not None:
        return
    if not options.allow_anonymous:
        message = (
            f"--host {options.host} lets other machines in, and there are no API keys; expected --api-keys FILE, "
            "or --allow-anonymous if everybody may use it"
        )
        raise UserError("API_KEYS", message, USAGE)
    warning = f"--host {options.host} lets other machines in, and nobody needs a key"
    print(warning_line("ANONYMOUS", warning), file=sys.stderr, flush=True)


def _bind(options: ServeOptions) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        message = f"--host {options.host} is no address of this machine ({error.strerror}); expected such as 127.0.0.1"
        raise UserError("HOST", message, USAGE) from error
    listener = socket.socket(family, kind, number)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    if family == socket.AF_INET6 and options.host == "::":
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_bind(options, error) from error
    return listener


def _cannot_bind(options: ServeOptions, error: OSError) -> UserError:
    where = f"port {options.port} of {options.host}"
    if error.errno == errno.EADDRINUSE:
        message = f"{where} is in use; expected a free one; stop the other server, or use --port"
        return UserError("PORT_IN_USE", message, TRY_AGAIN)
    if error.errno == errno.EACCES:
        message = f"this user may not use {where}; expected a port that is allowed; use --port with one above 1023"
        return UserError("PORT", message, DISK)
    message = f"cannot listen on {where}: {error.strerror}; expected an address of this machine; use --host"
    return UserError("HOST", message, USAGE)
