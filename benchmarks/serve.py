"""The server under load: against one client at a time, at ten times what it can do, and against its peers.

    python -m benchmarks.serve RUN [--seconds 20] [--fastapi PYTHON] [--libretranslate PYTHON] [--json FILE]

RUN is a model of Multi30k, English to German. Clients ask for the sentences of Test2016 in turn, each as soon as it has
its answer. The overload is an open loop on an engine that is held to 40 texts a second; there the clients have one
core and the server the other. FastAPI with CTranslate2 and LibreTranslate run in environments of their own, given by
their Python; LibreTranslate gets the same weights as an Argos package.
"""

import argparse
import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.folders import tokenizer_files
from clearhead.engines.ct2_form import ct2_form

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT.parent / "shared" / "data" / "multi30k" / "test_2016_flickr.en"
HELD = 40  # texts a second of the engine that is overloaded
STUB = ("en", "zh")  # its languages
CLIENTS = 64
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

    def summary(self) -> dict[str, Any]:
        return {
            "answers_per_second": round(len(self.good) / self.seconds, 1),
            "p50_ms": _percentile(self.good, 50),
            "p99_ms": _percentile(self.good, 99),
            "refused_per_second": round(len(self.refused) / self.seconds, 1),
            "refused_p99_ms": _percentile(self.refused, 99),
            "other_answers": self.wrong,
            "livez_p99_ms": _percentile(self.alive, 99),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--sentences", type=Path, default=SENTENCES)
    parser.add_argument("--fastapi", help="a Python with fastapi, uvicorn, ctranslate2 and sentencepiece")
    parser.add_argument("--libretranslate", help="a Python with libretranslate")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    lines = asked.sentences.read_text(encoding="utf-8").splitlines()
    results = {"clearhead": measure_ours(asked.run, lines, asked.seconds)}
    results["overload"] = measure_overload(asked.run, lines, asked.seconds)
    for name, command in peers(asked.run, asked.fastapi, asked.libretranslate):
        results[name] = measure_peer(name, command, lines, asked.seconds)
    text = json.dumps(results, indent=2)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")


def measure_ours(run: Path, lines: Sequence[str], seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "clearhead", "serve", str(run), "--port", "5311"]
    data = read_config(find_model(run)).get("data", {})
    pair = data.get("source_language") or "und", data.get("target_language") or "und"
    with running(command, 5311) as process:
        alone = asyncio.run(closed_loop(5311, 1, lines, seconds, pair))
        before = memory_of(process)
        many = asyncio.run(closed_loop(5311, CLIENTS, lines, seconds, pair))
        after = memory_of(process)
    gain = (len(many.good) / many.seconds) / (len(alone.good) / alone.seconds)
    return {
        "one client": alone.summary(),
        f"{CLIENTS} clients": many.summary(),
        "gain": round(gain, 2),
        "memory_mib": {"before": before, "after": after},
    }


def measure_overload(run: Path, lines: Sequence[str], seconds: float) -> dict[str, Any]:
    """Peak by a closed loop, then ten times that; clients on the first core, the server on the others."""
    stub = [sys.executable, "-m", "tests.serve.stub_engine", str(1 / HELD)]
    options = {"models": [str(run)], "port": 5312, "engine_command": stub}
    cores = sorted(os.sched_getaffinity(0))
    with running([sys.executable, "-m", "tests.serve.start", json.dumps(options)], 5312, cores[1:] or cores):
        os.sched_setaffinity(0, cores[:1])
        peak = asyncio.run(closed_loop(5312, 16, lines, seconds, STUB))
        over = asyncio.run(open_loop(5312, 10 * HELD, lines, seconds, STUB))
        calm = asyncio.run(closed_loop(5312, 1, lines, 5.0, STUB))
        os.sched_setaffinity(0, cores)
    kept = (len(over.good) / over.seconds) / (len(peak.good) / peak.seconds)
    return {
        "peak": peak.summary(),
        "ten times": over.summary(),
        "goodput_of_peak": round(kept, 3),
        "afterwards": calm.summary(),
    }


def measure_peer(
    name: str, command: tuple[list[str], dict[str, str], int] | str, lines: Sequence[str], seconds: float
) -> Any:
    """A peer that does not start is listed with its error."""
    if isinstance(command, str):
        return {"error": command}
    arguments, environment, port = command
    try:
        with running(arguments, port, environment=environment):
            alone = asyncio.run(closed_loop(port, 1, lines, seconds))
            many = asyncio.run(closed_loop(port, CLIENTS, lines, seconds))
    except (RuntimeError, OSError) as error:
        return {"error": f"{name}: {error}"}
    return {"one client": alone.summary(), f"{CLIENTS} clients": many.summary()}


def peers(
    run: Path, fastapi: str | None, libretranslate: str | None
) -> Iterator[tuple[str, tuple[list[str], dict[str, str], int] | str]]:
    folder = find_model(run)
    form, files = ct2_form(folder), tokenizer_files(folder)
    models = [
        str(next((file for file in files if file.name == f"{side}.model"), files[0])) for side in ("source", "target")
    ]
    beam = str(read_config(folder).get("decoding", {}).get("beam", 5))
    handler = str(ROOT / "benchmarks" / "peers" / "fastapi_ct2.py")
    if fastapi:
        yield "fastapi + ctranslate2", ([fastapi, handler, str(form), *models, beam, "5313"], {}, 5313)
    if libretranslate:
        packages = Path(tempfile.mkdtemp())
        write_argos_package(packages, form, Path(models[0]))
        command = [libretranslate, "-m", "libretranslate.main", "--port", "5314", "--disable-web-ui"]
        settings = {"ARGOS_PACKAGES_DIR": str(packages), "ARGOS_CHUNK_TYPE": "NONE", "LT_UPDATE_MODELS": "false"}
        yield "libretranslate", (command, settings, 5314)


def write_argos_package(packages: Path, form: Path, sentencepiece: Path) -> None:
    """As argospm installs it: a folder with metadata, the CTranslate2 model and the SentencePiece model."""
    folder = packages / "translate-en_de-1_0"
    shutil.copytree(form, folder / "model")
    shutil.copy(sentencepiece, folder / "sentencepiece.model")
    about = {"package_version": "1.0", "argos_version": "1.9", "from_code": "en", "from_name": "English"}
    (folder / "metadata.json").write_text(json.dumps({**about, "to_code": "de", "to_name": "German"}), encoding="utf-8")
    with zipfile.ZipFile(packages / "translate-en_de-1_0.argosmodel", "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(packages))


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
    raise RuntimeError(f"it did not start (exit code {process.poll()})")


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


def _percentile(values: Sequence[float], percent: int) -> float | None:
    ranked = sorted(values)
    return round(1e3 * ranked[min(len(ranked) - 1, len(ranked) * percent // 100)], 1) if ranked else None


if __name__ == "__main__":
    main()
