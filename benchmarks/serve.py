"""The server under load: against one client at a time, at ten times what it can do, and against its peers.

    python -m benchmarks.serve RUN [--fastapi PYTHON] [--libretranslate PYTHON] [--seconds 15] [--rounds 3]

RUN is a `tiny` model of Multi30k, English to German, with one tokenizer for both. Clients ask for sentences of Test2016
in turn, each as soon as it has its answer. All servers are started first; in every round each is measured in turn, with
one client and with 64. The overload is an open loop on an engine that is held to 40 texts a second; there the clients
have one core and the server the other. FastAPI with CTranslate2 (`pip install fastapi uvicorn ctranslate2
sentencepiece`) and LibreTranslate (`pip install libretranslate`) run in environments of their own, given by their
Python, with the same weights and beam. Writes SERVE.md and SERVE.json; about eight minutes.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load import answers_alone, closed_loop, open_loop
from benchmarks.machine import describe
from benchmarks.serve_page import page
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.folders import tokenizer_files
from clearhead.engines.ct2_form import ct2_form

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT.parent / "shared" / "data" / "multi30k" / "test_2016_flickr.en"
LINES = 211
HELD = 40  # texts a second of the engine that is overloaded
STUB = ("en", "zh")  # its languages
STUB_WORDS = ("poison", "sleep", "number", "nan")  # at which it does something else
CLIENTS = 64
PATIENCE = 120.0


@dataclass(frozen=True)
class Server:
    """How one of them is started, and where it listens."""

    name: str
    command: list[str]
    port: int
    environment: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seconds", type=float, default=15.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=LINES, help="different sentences")
    parser.add_argument("--sentences", type=Path, default=SENTENCES)
    parser.add_argument("--fastapi", help="a Python with fastapi, uvicorn, ctranslate2 and sentencepiece")
    parser.add_argument("--libretranslate", help="a Python with libretranslate")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks", help="the folder of SERVE.md and SERVE.json")
    asked = parser.parse_args()
    lines = asked.sentences.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        servers = list(servers_of(asked.run, asked.fastapi, asked.libretranslate, Path(scratch)))
        rows, errors = measure(servers, _pair(asked.run), lines[: asked.lines], asked.seconds, asked.rounds)
    fair = [line for line in lines if not any(word in line for word in STUB_WORDS)][: asked.lines]
    results = {
        "machine": describe(len(os.sched_getaffinity(0))),
        "command": " ".join(["python -m benchmarks.serve", *(Path(one).name for one in sys.argv[1:])]),
        "versions": peer_versions(asked.fastapi, asked.libretranslate),
        "seconds": asked.seconds,
        "servers": rows,
        "errors": errors,
        "overload": [measure_overload(asked.run, fair, asked.seconds) for _ in range(asked.rounds)],
    }
    (asked.out / "SERVE.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (asked.out / "SERVE.md").write_text(page(results), encoding="utf-8")
    print(page(results))


# -- side by side ------------------------------------------------------------------------------------------------------


def measure(
    servers: Sequence[Server], pair: tuple[str, str], lines: Sequence[str], seconds: float, rounds: int
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """For each server what each round showed; a server that does not start or answer is listed with its error."""
    rows: dict[str, list[dict[str, Any]]] = {}
    errors: dict[str, str] = {}
    with ExitStack() as stack:
        ready: dict[str, tuple[Server, subprocess.Popen[bytes], Mapping[str, str]]] = {}
        for server in servers:
            try:
                process = stack.enter_context(running(server))
                known = asyncio.run(answers_alone(server.port, lines, pair))
                if not all(known.values()):
                    raise RuntimeError(f"{sum(not text for text in known.values())} of {len(known)} were not answered")
                ready[server.name] = server, process, known
            except (RuntimeError, OSError) as error:
                errors[server.name] = str(error)
        for _ in range(rounds):
            for name, (server, process, said) in ready.items():
                rows.setdefault(name, []).append(measure_once(server, process, said, seconds, pair))
    return rows, errors


def measure_once(
    server: Server,
    process: "subprocess.Popen[bytes]",
    known: Mapping[str, str],
    seconds: float,
    pair: tuple[str, str],
) -> dict[str, Any]:
    alone, _ = _watched(process, lambda: asyncio.run(closed_loop(server.port, 1, known, seconds, pair)))
    many, cpu = _watched(process, lambda: asyncio.run(closed_loop(server.port, CLIENTS, known, seconds, pair)))
    ratio = (len(many.good) / many.seconds) / max(len(alone.good) / alone.seconds, 1e-9)
    memory = memory_of(process)
    return {"one": alone.summary(), "many": many.summary(), "gain": ratio, "cpu_ms": cpu, "memory_mib": memory}


def _watched(process: "subprocess.Popen[bytes]", call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What the call gives, and the milliseconds of CPU that an answer took in each process."""
    before = {name: cpu_of(pid) for name, pid in pids_of(process).items()} | {"clients": time.process_time()}
    load = call()
    after = {name: cpu_of(pid) for name, pid in pids_of(process).items()} | {"clients": time.process_time()}
    answers = max(1, len(load.good))
    return load, {name: round(1e3 * (after[name] - before[name]) / answers, 2) for name in after if name in before}


def servers_of(run: Path, fastapi: str | None, libretranslate: str | None, scratch: Path) -> Iterator[Server]:
    folder = find_model(run)
    form, files = ct2_form(folder), tokenizer_files(folder)
    models = [
        str(next((file for file in files if file.name == f"{side}.model"), files[0])) for side in ("source", "target")
    ]
    beam = str(read_config(folder).get("decoding", {}).get("beam", 5))
    peers = ROOT / "benchmarks" / "peers"
    yield Server("clearhead", [sys.executable, "-m", "clearhead", "serve", str(run), "--port", "5311"], 5311)
    if fastapi:
        command = [fastapi, str(peers / "fastapi_ct2.py"), str(form), *models, beam, "5313"]
        yield Server("FastAPI + CTranslate2", command, 5313)
    if libretranslate:
        write_argos_package(scratch / "packages", form, Path(models[0]))
        command = [libretranslate, str(peers / "libretranslate_offline.py"), "--port", "5314", "--disable-web-ui"]
        settings = {"ARGOS_PACKAGES_DIR": str(scratch / "packages"), "ARGOS_BEAM_SIZE": beam, "HOME": str(scratch)}
        yield Server("LibreTranslate", command, 5314, settings)


def write_argos_package(packages: Path, form: Path, sentencepiece: Path) -> None:
    """As argospm installs it: a folder with metadata, the CTranslate2 model and the SentencePiece model.

    Below two packages LibreTranslate looks for more on the network, so there is one for the other direction too, which
    nobody asks for.
    """
    names = {"en": "English", "de": "German"}
    for source, target in (("en", "de"), ("de", "en")):
        folder = packages / f"translate-{source}_{target}-1_0"
        shutil.copytree(form, folder / "model")
        shutil.copy(sentencepiece, folder / "sentencepiece.model")
        about = {"package_version": "1.0", "argos_version": "1.9"}
        about |= {"from_code": source, "from_name": names[source], "to_code": target, "to_name": names[target]}
        (folder / "metadata.json").write_text(json.dumps(about), encoding="utf-8")


def peer_versions(fastapi: str | None, libretranslate: str | None) -> dict[str, str]:
    wanted = {fastapi: ("fastapi", "uvicorn", "ctranslate2"), libretranslate: ("libretranslate", "ctranslate2")}
    return {
        f"{name} ({names[0]}'s environment)" if name == "ctranslate2" else name: _version(python, name)
        for python, names in wanted.items()
        if python
        for name in names
    }


def _version(python: str, name: str) -> str:
    code = f"import importlib.metadata as about; print(about.version({name!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip() or "?"


def _pair(run: Path) -> tuple[str, str]:
    data = read_config(find_model(run)).get("data", {})
    return data.get("source_language") or "und", data.get("target_language") or "und"


# -- too much ----------------------------------------------------------------------------------------------------------


def measure_overload(run: Path, lines: Sequence[str], seconds: float) -> dict[str, Any]:
    """Peak by a closed loop, then ten times that; clients on the first core, the server on the others."""
    stub = [sys.executable, "-m", "tests.serve.stub_engine", str(1 / HELD)]
    options = {"models": [str(run)], "port": 5312, "engine_command": stub}
    cores = sorted(os.sched_getaffinity(0))
    server = Server("held", [sys.executable, "-m", "tests.serve.start", json.dumps(options)], 5312)
    known = {line: line for line in lines}  # it copies
    with running(server, cores[1:] or cores):
        os.sched_setaffinity(0, cores[:1])
        peak = asyncio.run(closed_loop(5312, 16, known, seconds, STUB))
        over = asyncio.run(open_loop(5312, 10 * HELD, known, seconds, STUB))
        calm = asyncio.run(closed_loop(5312, 1, known, min(5.0, seconds), STUB))
        os.sched_setaffinity(0, cores)
    kept = (len(over.good) / over.seconds) / max(len(peak.good) / peak.seconds, 1e-9)
    return {"peak": peak.summary(), "over": over.summary(), "calm": calm.summary(), "goodput_of_peak": kept}


# -- processes ---------------------------------------------------------------------------------------------------------


@contextmanager
def running(server: Server, cores: Sequence[int] = ()) -> Iterator["subprocess.Popen[bytes]"]:
    """Until it answers; ended afterwards."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)  # which a child inherits
    known = {**os.environ, "PYTHONPATH": str(ROOT), **server.environment}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(server.command, stderr=said, stdout=said, env=known, cwd=ROOT)
        os.sched_setaffinity(0, before)
        try:
            if not _is_ready(process, server.port):
                said.seek(0)
                last = said.read().decode(errors="replace").strip().split("\n")[-1]
                raise RuntimeError(f"it did not start (exit code {process.poll()}): {last[:300]}")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE / 4)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        for path in ("readyz", "languages"):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5):
                    return True
            except urllib.error.HTTPError as error:
                if error.code != 404:  # only LibreTranslate has no /readyz
                    break
            except OSError:
                break
        time.sleep(0.2)
    return False


def pids_of(process: "subprocess.Popen[bytes]") -> dict[str, int]:
    """The server, and if it has one its engine."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {"server": process.pid, **({"engine": int(children[0])} if children else {})}


def cpu_of(pid: int) -> float:
    """Seconds so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory_of(process: "subprocess.Popen[bytes]") -> float:
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids_of(process).values()]
    return round(sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    main()
