"""Starts the engine process, watches its heartbeat, starts another when it dies, and swaps it on SIGHUP."""

import asyncio
import contextlib
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Any

from clearhead.errors import UserError

from .log import log
from .messages import Message, packed, read_message
from .options import ServeOptions

FIRST_BEAT = 60.0  # seconds for Python to start on a busy machine
BACK_OFF = (0.5, 30.0)  # seconds before the first restart, and the most that it doubles to
STEADY = 60.0  # seconds of life after which the next death counts as the first
LAST_WORDS = 3.0  # seconds for an engine whose input was closed


class EngineProcess:
    """One engine, from its start to its end; `listener` gets what it answers."""

    def __init__(self, process: Process, listener: Callable[["EngineProcess", Message], None]) -> None:
        self._process, self._listener = process, listener
        self.models: list[dict[str, Any]] = []
        self.failure: UserError | None = None
        self.cause = "crash"  # of its end
        self.age = 0.0  # of the work that it is doing
        self.busy = 0  # batches that it has not answered
        self.started = time.monotonic()
        self.last_beat: float | None = None
        self.settled = asyncio.Event()  # ready, or at its end
        self.ended = asyncio.Event()
        self._tasks = [asyncio.create_task(self._listen())]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        return bool(self.models) and not self.ended.is_set()

    @property
    def silence(self) -> float:
        """Seconds since it was last heard of."""
        return time.monotonic() - (self.last_beat or self.started)

    def send(self, message: Message) -> None:
        assert self._process.stdin is not None
        self.busy += message["kind"] == "work"
        self._process.stdin.write(packed(message))  # to a dead process too: its end is seen elsewhere

    def watch(self, beat_seconds: float, stuck_seconds: float) -> None:
        self._tasks.append(asyncio.create_task(self._watch(beat_seconds, stuck_seconds)))

    def kill(self, cause: str) -> None:
        self.cause = cause
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Let it end by itself, and soon."""
        self.cause = "closed"
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self.ended.wait(), LAST_WORDS)
        except TimeoutError:
            self.kill("closed")
            await self.ended.wait()

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        while (message := await read_message(self._process.stdout)) is not None:
            self.last_beat = time.monotonic()
            if message["kind"] == "beat":
                self.age = message["age"]
            elif message["kind"] == "ready":
                self.models = message["models"]
                self.settled.set()
            elif message["kind"] == "failed":
                self.failure = UserError(message["code"], message["message"], message["exit_code"])
            else:
                self.busy -= message["kind"] == "done"
                self._listener(self, message)
        await self._process.wait()
        for task in self._tasks[1:]:
            task.cancel()
        self.ended.set()
        self.settled.set()

    async def _watch(self, beat_seconds: float, stuck_seconds: float) -> None:
        while True:
            await asyncio.sleep(min(0.5, beat_seconds / 4))
            patience = beat_seconds if self.last_beat else FIRST_BEAT
            if self.silence > patience or self.age > stuck_seconds:
                self.kill("hang")
                return


class Supervisor:
    """Keeps an engine running. `on_up` and `on_lost` are called when there is a new one and when one has died."""

    def __init__(
        self,
        options: ServeOptions,
        listener: Callable[[EngineProcess, Message], None],
        on_up: Callable[[], None],
        on_lost: Callable[[EngineProcess], None],
    ) -> None:
        self._options, self._listener, self._on_up, self._on_lost = options, listener, on_up, on_lost
        self.engine: EngineProcess | None = None
        self.models: list[dict[str, Any]] = []  # of the last engine that was ready
        self.restarts: dict[str, int] = {"crash": 0, "hang": 0}
        self._coming: EngineProcess | None = None
        self._changed = asyncio.Event()
        self._is_closing = False

    @property
    def state(self) -> str:
        """starting, ready or engine_down."""
        if self.engine is not None and self.engine.is_ready:
            return "ready"
        return "engine_down" if self.models else "starting"

    async def run(self) -> None:
        """Until it is closed; a UserError if the first engine says why it cannot load its models."""
        delay = BACK_OFF[0]
        while not self._is_closing:
            engine = self._coming = await self._start()
            await engine.settled.wait()
            if engine.is_ready:
                self._use(engine)
                await self._until_lost()
                engine = self.engine or engine
                self.engine = None
                self._on_lost(engine)
            elif engine.failure is not None and not self.models:
                raise engine.failure
            if self._is_closing:
                return
            delay = BACK_OFF[0] if time.monotonic() - engine.started > STEADY else delay
            self._note_death(engine, delay)
            await asyncio.sleep(delay)
            delay = min(2 * delay, BACK_OFF[1])

    async def reload(self) -> None:
        """Load the models anew in an engine beside the old one, and go on with it if that works out."""
        log("reload", state="begun")
        engine = await self._start()
        await engine.settled.wait()
        old = self.engine
        if not engine.is_ready or self._is_closing:
            why = engine.failure.line() if engine.failure else "the engine died while loading"
            log("reload", state="failed, the old models go on", error=why)
            await engine.close()
            return
        self._use(engine)
        log("reload", state="done", models=[model["name"] for model in engine.models])
        self._changed.set()
        if old is not None:
            await self._retire(old)

    async def close(self) -> None:
        self._is_closing = True
        self._changed.set()
        for engine in {self.engine, self._coming} - {None}:
            assert engine is not None
            if not engine.ended.is_set():
                await engine.close()

    def _note_death(self, engine: EngineProcess, delay: float) -> None:
        self.restarts[engine.cause] = self.restarts.get(engine.cause, 0) + 1
        error = {"error": engine.failure.line()} if engine.failure else {}
        log("engine_lost", cause=engine.cause, restart_in=delay, **error)

    async def _start(self) -> EngineProcess:
        command = [*self._options.engine_command, *(str(model) for model in self._options.models)]
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, limit=1 << 20)
        engine = EngineProcess(process, self._listener)
        engine.watch(self._options.limits.beat_seconds, self._options.limits.stuck_seconds)
        return engine

    def _use(self, engine: EngineProcess) -> None:
        self.engine = engine
        self.models = [{name: value for name, value in model.items() if name != "speed"} for model in engine.models]
        log("engine_ready", pid=engine.pid, seconds=round(time.monotonic() - engine.started, 3))
        self._on_up()

    async def _until_lost(self) -> None:
        """Until the engine that is in use has ended; it may be swapped for another one meanwhile."""
        while self.engine is not None and not self.engine.ended.is_set() and not self._is_closing:
            self._changed.clear()
            waits = [asyncio.ensure_future(self.engine.ended.wait()), asyncio.ensure_future(self._changed.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    async def _retire(self, engine: EngineProcess) -> None:
        """It has batches that were begun; when they are answered, or too old to matter, it ends."""
        patience = time.monotonic() + self._options.limits.deadline
        while engine.busy and time.monotonic() < patience and not engine.ended.is_set():
            await asyncio.sleep(0.05)
        await engine.close()
        self._on_lost(engine)
