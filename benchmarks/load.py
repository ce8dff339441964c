"""Servers that are started and clients that ask them: each again when it has its answer, or so many a second."""

import asyncio
import itertools
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.peers import PeerError

PATIENCE = 120.0


@dataclass
class Load:
    """What clients saw, who ask for this pair of languages."""

    pair: tuple[str, str]
    seconds: float = 0.0
    good: list[float] = field(default_factory=list)  # seconds that each took
    refused: list[float] = field(default_factory=list)
    wrong: int = 0
    alive: list[float] = field(default_factory=list)  # of /livez meanwhile

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.good) / self.seconds


@contextmanager
def running(
    command: list[str], port: int, cores: Sequence[int] = (), environment: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Until it answers; ended afterwards."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)  # which a child inherits
    known = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=known, cwd=ROOT)
    os.sched_setaffinity(0, before)
    try:
        _wait_until_ready(process, port)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        for path in ("readyz", "languages"):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5):
                    return
            except urllib.error.HTTPError as error:
                if error.code != 404:  # only LibreTranslate has no /readyz
                    break
            except OSError:
                break
        time.sleep(0.2)
    raise PeerError(f"did not start (exit code {process.poll()})")


def memory_of(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """Of the server and its engine."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    pids = {"front": process.pid, **({"engine": int(children[0])} if children else {})}
    pages = {name: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for name, pid in pids.items()}
    return {name: round(count * os.sysconf("SC_PAGE_SIZE") / 2**20, 1) for name, count in pages.items()}


# -- clients -----------------------------------------------------------------------------------------------------------


async def closed_loop(
    port: int, clients: int, lines: Sequence[str], seconds: float, pair: tuple[str, str] = ("en", "de")
) -> Load:
    """Each client asks again when it has its answer."""
    load, turn = Load(pair), itertools.cycle(lines)
    await _ask(port, next(turn), Load(pair))  # not counted
    started = time.monotonic()

    async def client() -> None:
        connection = Connection(port)
        while time.monotonic() - started < seconds:
            await _ask(port, next(turn), load, connection)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)), _livez(port, started + seconds, load))
    load.seconds = time.monotonic() - started
    return load


async def open_loop(port: int, rate: float, lines: Sequence[str], seconds: float, pair: tuple[str, str]) -> Load:
    """So many questions a second, whatever becomes of them."""
    load, turn = Load(pair), itertools.cycle(lines)
    started = time.monotonic()
    tasks = [asyncio.create_task(_livez(port, started + seconds, load))]
    for n in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, started + n / rate - time.monotonic()))
        tasks.append(asyncio.create_task(_ask(port, next(turn), load)))
    await asyncio.gather(*tasks)
    load.seconds = time.monotonic() - started
    return load


async def _livez(port: int, until: float, load: Load) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(0.2)
        started = time.perf_counter()
        await _exchange(port, b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        load.alive.append(time.perf_counter() - started)


async def _ask(port: int, text: str, load: Load, connection: "Connection | None" = None) -> None:
    """On a connection that is kept, as clients do that ask often, or on one of its own."""
    body = json.dumps({"q": text, "source": load.pair[0], "target": load.pair[1]}).encode()
    head = f"POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
    kind = f"content-type: application/json\r\nconnection: {'keep-alive' if connection else 'close'}\r\n\r\n"
    request = head.encode() + kind.encode() + body
    started = time.perf_counter()
    received = await (connection.exchange(request) if connection else _exchange(port, request))
    seconds = time.perf_counter() - started
    status = received[9:12]
    if status == b"200":
        load.good.append(seconds)
    elif status in (b"503", b"429"):
        load.refused.append(seconds)
    else:
        load.wrong += 1


class Connection:
    """Kept from one request to the next, and opened anew if the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, request: bytes) -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            received = head + await reader.readexactly(length)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return b""
        if b"connection: close" in head.lower():
            self.close()
        return received

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def _exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
