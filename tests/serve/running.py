"""A server in a process of its own, and clients for it."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 60.0  # seconds; the machine may be busy


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Running:
    """What was started, and its log as it comes."""

    def __init__(self, process: "subprocess.Popen[str]", host: str) -> None:
        self.process, self.host = process, host
        self.lines: list[str] = []
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def events(self, name: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in list(self.lines) if line.startswith("{")]
        return [entry for entry in entries if entry["event"] == name]

    def event(self, name: str, count: int = 1) -> dict[str, Any]:
        """The count-th of this name, waited for."""
        with self._grown:
            came = self._grown.wait_for(
                lambda: len(self.events(name)) >= count or not self._reader.is_alive(), PATIENCE
            )
        found = self.events(name)
        assert came, f"no {name} in the log: {self.lines}"
        assert len(found) >= count, f"no {name} in the log: {self.lines}"
        return found[count - 1]

    def engine(self) -> int:
        """The process id of the newest engine."""
        self.event("engine_ready")
        return self.events("engine_ready")[-1]["pid"]

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request on a connection of its own; a dict is sent as JSON."""
        started = time.perf_counter()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        kind = {"content-type": "application/json"} if isinstance(body, dict) else {}
        with contextlib.closing(connection):
            connection.request(method, path, content, {**kind, **(headers or {})})
            answer = connection.getresponse()
            received = answer.read()
        seconds = time.perf_counter() - started
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, received, seconds)

    def translate(self, text: Any, **fields: Any) -> Answer:
        return self.ask("POST", "/translate", {"q": text, "source": "en", "target": "zh", **fields})

    def metric(self, name: str) -> float:
        """The sum over all labels."""
        lines = self.ask("GET", "/metrics").content.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def work(self) -> tuple[float, float]:
        """Texts that the engine was given, and seconds that it has worked."""
        return self.metric("clearhead_batch_rows_sum"), self.metric("clearhead_batch_duration_seconds_sum")

    def wait_until_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while self.ask("GET", "/readyz").status != 200:
            assert time.monotonic() < until, self.lines
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        self._reader.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self.lines.append(line.rstrip("\n"))
                self._grown.notify_all()
        with self._grown:
            self._grown.notify_all()


def start_process(command: list[str], environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=known, cwd=ROOT)


@contextlib.contextmanager
def started(command: list[str], host: str = "127.0.0.1", is_ready: bool = True) -> Iterator[Running]:
    process = start_process(command)
    running = Running(process, host)
    try:
        running.port = running.event("listening")["port"]
        if is_ready:
            running.wait_until_ready()
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        running.close()


def real(*models: Path, flags: tuple[str, ...] = ()) -> list[str]:
    """`clearhead serve`."""
    return [sys.executable, "-m", "clearhead", "serve", *map(str, models), "--port", "0", *flags]


def with_options(model: Path, **given: Any) -> list[str]:
    """The real server with other options; with `seconds`, an engine that copies and takes so long for each text."""
    seconds = given.pop("seconds", None)
    if seconds is not None:
        given["engine_command"] = [sys.executable, "-m", "tests.serve.stub_engine", str(seconds)]
    values = {"models": [str(model)], "port": 0, **given}
    return [sys.executable, "-m", "tests.serve.start", json.dumps(values)]


async def ask(
    port: int, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """As `Running.ask`, for hundreds at once."""
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes(method, path, body, headers))
        received = await reader.read()
    finally:
        writer.close()
    head, _, content = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(status.split()[1]), fields, content, time.perf_counter() - started)


def request_bytes(
    method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    fields = {"host": "127.0.0.1", "connection": "close", **(headers or {})}
    if body is not None:
        fields |= {"content-type": "application/json", "content-length": str(len(content))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def question(text: str | list[str], **fields: Any) -> dict[str, Any]:
    return {"q": text, "source": "en", "target": "zh", **fields}
