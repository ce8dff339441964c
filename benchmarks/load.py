"""Clients for a server that speaks LibreTranslate's /translate: so many at once, or so many questions a second."""

import asyncio
import gc
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PAUSE = 0.1  # seconds before a client that was refused asks again


@dataclass
class Load:
    """What clients saw, who ask for this pair of languages."""

    pair: tuple[str, str]
    seconds: float = 0.0
    good: list[float] = field(default_factory=list)  # seconds that each took
    refused: list[float] = field(default_factory=list)
    wrong: int = 0  # answers of another status, or none
    known: Mapping[str, str] = field(default_factory=dict)  # what the server says to a line that it is asked alone
    different: int = 0  # good answers that say something else
    alive: list[float] = field(default_factory=list)  # of /livez meanwhile

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.good) / self.seconds


async def answers_alone(port: int, lines: Sequence[str], pair: tuple[str, str]) -> dict[str, str]:
    """One line after the other; it warms the server up as well."""
    connection, known = Connection(port), {}
    for line in lines:
        received = await _exchange_with(connection, port, line, pair)
        known[line] = _text(received)
    connection.close()
    return known


async def closed_loop(port: int, clients: int, known: Mapping[str, str], seconds: float, pair: tuple[str, str]) -> Load:
    """Each client asks again when it has its answer; one that is refused waits as long as a client should."""
    load, turn = Load(pair, known=known), itertools.cycle(known)
    started = time.monotonic()

    async def client() -> None:
        connection = Connection(port)
        while time.monotonic() - started < seconds:
            if not await _ask(port, next(turn), load, connection):
                await asyncio.sleep(PAUSE)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)), _livez(port, started + seconds, load))
    load.seconds = time.monotonic() - started
    return load


async def open_loop(port: int, rate: float, known: Mapping[str, str], seconds: float, pair: tuple[str, str]) -> Load:
    """So many questions a second, whatever becomes of them."""
    load, turn = Load(pair, known=known), itertools.cycle(known)
    gc.disable()  # with thousands of requests under way it stopped the clients for 100 ms, which looked like the server
    started = time.monotonic()
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(_livez(port, started + seconds, load))]
    for n in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, started + n / rate - time.monotonic()))
        tasks.append(asyncio.create_task(_ask(port, next(turn), load)))
    await asyncio.gather(*tasks)
    load.seconds = time.monotonic() - started
    gc.enable()
    return load


async def _livez(port: int, until: float, load: Load) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(0.2)
        started = time.perf_counter()
        await _exchange(port, b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        load.alive.append(time.perf_counter() - started)


async def _ask(port: int, text: str, load: Load, connection: "Connection | None" = None) -> bool:
    """Whether it was answered."""
    started = time.perf_counter()
    received = await _exchange_with(connection, port, text, load.pair)
    seconds = time.perf_counter() - started
    status = received[9:12]
    if status == b"200":
        load.good.append(seconds)
        load.different += _text(received) != load.known[text]
    elif status in (b"503", b"429"):
        load.refused.append(seconds)
    else:
        load.wrong += 1
    return status == b"200"


async def _exchange_with(connection: "Connection | None", port: int, text: str, pair: tuple[str, str]) -> bytes:
    """On a connection that is kept, as clients do that ask often, or on one of its own."""
    body = json.dumps({"q": text, "source": pair[0], "target": pair[1]}).encode()
    head = f"POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
    kind = f"content-type: application/json\r\nconnection: {'keep-alive' if connection else 'close'}\r\n\r\n"
    request = head.encode() + kind.encode() + body
    return await (connection.exchange(request) if connection else _exchange(port, request))


def _text(received: bytes) -> str:
    content = received.partition(b"\r\n\r\n")[2]
    return json.loads(content)["translatedText"] if received[9:12] == b"200" else ""


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
