"""Servers under load: one client, many clients, and ten times what ours can do.

Clients ask for the sentences of the sample in turn, each as soon as it has its answer. FastAPI around CTranslate2 is
what people write themselves; LibreTranslate gets the same weights as an Argos package. The overload is an open loop
on an engine of ours that is held to 40 texts a second; there the clients have one core and the server the others.
"""

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import ROOT, python_of
from benchmarks.load import Load, answers_alone, closed_loop, open_loop
from benchmarks.peers import PeerError
from benchmarks.results import HIGHER, LOWER, Cell, Column, Table
from benchmarks.sample import sample, trained_model
from benchmarks.translation import percentile
from clearhead.checkpoint.model_folder import read_config
from clearhead.data.folders import tokenizer_files
from clearhead.engines.ct2_form import ct2_form

ASKS = "How does it serve?"
ONE, MANY = 1, 64  # clients
LINES, QUICK_LINES = 211, 53  # different sentences
HELD = 40  # texts a second of the engine that is overloaded
STUB = ("en", "zh")  # its languages
STUB_WORDS = ("poison", "sleep", "number", "nan")  # at which it does something else
PATIENCE = 120.0
RATE = Column("answers/s", HIGHER)
MIDDLE, SLOWEST = Column("p50, ms", LOWER), Column("p99, ms", LOWER)
GAIN, CPU, MEMORY = Column("of one client"), Column("CPU ms an answer"), Column("MiB", LOWER)
OTHER, DIFFERENT = Column("errors"), Column("other texts than alone")
SHARE, REFUSED, SLOW_REFUSAL = Column("of its peak"), Column("refused/s"), Column("refusal p99, ms")
ALIVE = Column("/livez p99, ms")
OURS, FASTAPI, LIBRETRANSLATE = "Clearhead", "FastAPI + CTranslate2", "LibreTranslate"


@dataclass(frozen=True)
class Server:
    """How one of them is started, and where it listens."""

    command: list[str]
    port: int
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One measurement of one server."""

    load: Load
    cpu_ms: float  # of the server's processes, per answer
    memory: float  # MiB of them at the end


def measure(quick: bool) -> list[Table]:
    seconds, rounds, count = (2.0, 1, QUICK_LINES) if quick else (12.0, 3, LINES)
    model = trained_model()
    lines = sample().sources
    with tempfile.TemporaryDirectory() as scratch:
        tables = _measure_loads(model, Path(scratch), lines[:count], seconds, rounds)
    fair = [line for line in lines if not any(word in line for word in STUB_WORDS)][:count]
    return [*tables, _measure_overload(model, fair, seconds, rounds)]


# -- side by side ------------------------------------------------------------------------------------------------------


def _measure_loads(model: Path, scratch: Path, lines: Sequence[str], seconds: float, rounds: int) -> list[Table]:
    """All servers stay up; in every round each is asked in turn, by one client and by many."""
    errors: dict[str, str] = {}
    seen: dict[int, dict[str, list[Seen]]] = {ONE: {}, MANY: {}}
    with ExitStack() as stack:
        ready: dict[str, tuple[Server, subprocess.Popen[bytes], Mapping[str, str]]] = {}
        for name, server in _servers(model, scratch, errors).items():
            try:
                process = stack.enter_context(running(server))
                ready[name] = server, process, _known(server, lines)
            except (PeerError, OSError) as error:
                errors[name] = str(error)
        for _ in range(rounds):
            for name, (server, process, known) in ready.items():
                for clients, found in seen.items():
                    found.setdefault(name, []).append(_measure_once(server, process, known, clients, seconds))
    about = f"Beam {_beam(model)}, {seconds:g} seconds a round; the clients run on the same cores."
    rows = {clients: {name: _cells(each) for name, each in found.items()} for clients, found in seen.items()}
    for name, cells in rows[MANY].items():
        pairs = zip(seen[MANY][name], seen[ONE][name], strict=True)
        cells[GAIN.name] = [many.load.rate / max(one.load.rate, 1e-9) for many, one in pairs]
    shared = [RATE, MIDDLE, SLOWEST, CPU, MEMORY, OTHER]
    return [
        Table("One client", shared, rows[ONE], [OURS], dict(errors), about),
        Table(f"{MANY} clients at once", [*shared, GAIN, DIFFERENT], rows[MANY], [OURS], dict(errors)),
    ]


def _known(server: Server, lines: Sequence[str]) -> Mapping[str, str]:
    """What it says to each line alone; it warms the server up as well."""
    known = asyncio.run(answers_alone(server.port, lines, sample().languages))
    unanswered = sum(not text for text in known.values())
    if unanswered:
        raise PeerError(f"{unanswered} of {len(known)} sentences were not answered")
    return known


def _measure_once(
    server: Server, process: "subprocess.Popen[bytes]", known: Mapping[str, str], clients: int, seconds: float
) -> Seen:
    before = _cpu_of(process)
    load = asyncio.run(closed_loop(server.port, clients, known, seconds, sample().languages))
    return Seen(load, 1e3 * (_cpu_of(process) - before) / max(1, len(load.good)), _memory_of(process))


def _cells(rounds: Sequence[Seen]) -> dict[str, Cell]:
    loads = [seen.load for seen in rounds]
    if not all(load.good for load in loads):
        return {RATE.name: f"no answers; {sum(load.wrong for load in loads)} errors"}
    return {
        RATE.name: [load.rate for load in loads],
        MIDDLE.name: [1e3 * percentile(load.good, 50) for load in loads],
        SLOWEST.name: [1e3 * percentile(load.good, 99) for load in loads],
        CPU.name: [seen.cpu_ms for seen in rounds],
        MEMORY.name: [seen.memory for seen in rounds],
        OTHER.name: str(sum(load.wrong for load in loads)),
        DIFFERENT.name: f"{sum(load.different for load in loads) / sum(len(load.good) for load in loads):.2%}",
    }


def _servers(model: Path, scratch: Path, errors: dict[str, str]) -> dict[str, Server]:
    form, files = ct2_form(model), tokenizer_files(model)
    pieces = [
        str(next((file for file in files if file.name == f"{side}.model"), files[0])) for side in ("source", "target")
    ]
    peers = ROOT / "benchmarks" / "peers"
    servers = {OURS: Server([sys.executable, "-m", "clearhead", "serve", str(model), "--port", "5311"], 5311)}
    try:
        command = [str(python_of("fastapi")), str(peers / "fastapi_ct2.py"), str(form), *pieces, _beam(model), "5313"]
        servers[FASTAPI] = Server(command, 5313)
    except PeerError as error:
        errors[FASTAPI] = str(error)
    try:
        python = str(python_of("libretranslate"))
        write_argos_packages(scratch / "packages", form, Path(pieces[0]), sample().languages)
        command = [python, str(peers / "libretranslate_offline.py"), "--port", "5314", "--disable-web-ui"]
        settings = {"ARGOS_PACKAGES_DIR": str(scratch / "packages"), "ARGOS_BEAM_SIZE": _beam(model)}
        servers[LIBRETRANSLATE] = Server(command, 5314, {**settings, "HOME": str(scratch)})
    except PeerError as error:
        errors[LIBRETRANSLATE] = str(error)
    return servers


def _beam(model: Path) -> str:
    return str(read_config(model).get("decoding", {}).get("beam", 5))


def write_argos_packages(packages: Path, form: Path, sentencepiece: Path, pair: tuple[str, str]) -> None:
    """As argospm installs them: folders with metadata, the CTranslate2 model and the SentencePiece model.

    Below two packages LibreTranslate looks for more on the network, so there is one for the other direction too, which
    nobody asks for.
    """
    for source, target in (pair, pair[::-1]):
        folder = packages / f"translate-{source}_{target}-1_0"
        shutil.copytree(form, folder / "model")
        shutil.copy(sentencepiece, folder / "sentencepiece.model")
        about = {"package_version": "1.0", "argos_version": "1.9", "from_code": source, "from_name": source}
        text = json.dumps({**about, "to_code": target, "to_name": target})
        (folder / "metadata.json").write_text(text, encoding="utf-8")


# -- too much ----------------------------------------------------------------------------------------------------------


def _measure_overload(model: Path, lines: Sequence[str], seconds: float, rounds: int) -> Table:
    """Peak by a closed loop, then ten times that; clients on the first core, the server on the others."""
    stub = [sys.executable, "-m", "tests.serve.stub_engine", str(1 / HELD)]
    options = {"models": [str(model)], "port": 5312, "engine_command": stub}
    cores = sorted(os.sched_getaffinity(0))
    known = {line: line for line in lines}  # it copies
    found: list[tuple[Load, Load, Load]] = []
    for _ in range(rounds):
        server = Server([sys.executable, "-m", "tests.serve.start", json.dumps(options)], 5312)
        with running(server, cores[1:] or cores):
            os.sched_setaffinity(0, cores[:1])
            peak = asyncio.run(closed_loop(5312, 16, known, seconds, STUB))
            over = asyncio.run(open_loop(5312, 10 * HELD, known, seconds, STUB))
            calm = asyncio.run(closed_loop(5312, 1, known, seconds / 2, STUB))
            os.sched_setaffinity(0, cores)
        found.append((peak, over, calm))
    peaks, overs, calms = zip(*found, strict=True)
    rows = {
        name: _overload_cells(loads, peaks)
        for name, loads in (("Clearhead at its peak", peaks), ("at ten times that", overs), ("afterwards", calms))
    }
    about = f"An engine that is held to {HELD} texts a second; refusals come at once, with a time to come back."
    shown = [Column(column.name) for column in (RATE, MIDDLE, SLOWEST)]
    return Table("Overload", [*shown, SHARE, REFUSED, SLOW_REFUSAL, ALIVE], rows, about=about)


def _overload_cells(loads: Sequence[Load], peaks: Sequence[Load]) -> dict[str, Cell]:
    refusals = [load.refused for load in loads if load.refused]
    return {
        RATE.name: [load.rate for load in loads],
        MIDDLE.name: [1e3 * percentile(load.good, 50) for load in loads if load.good],
        SLOWEST.name: [1e3 * percentile(load.good, 99) for load in loads if load.good],
        SHARE.name: [load.rate / max(peak.rate, 1e-9) for load, peak in zip(loads, peaks, strict=True)],
        REFUSED.name: [len(load.refused) / load.seconds for load in loads],
        SLOW_REFUSAL.name: [1e3 * percentile(each, 99) for each in refusals] or "–",
        ALIVE.name: [1e3 * percentile(load.alive, 99) for load in loads if load.alive],
    }


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
                raise PeerError(f"it did not start (exit code {process.poll()}): {last[:300]}")
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


def _pids_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """The server, and if it has one its engine."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [process.pid, *map(int, children[:1])]


def _cpu_of(process: "subprocess.Popen[bytes]") -> float:
    """Seconds so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in _pids_of(process)]
    return sum(int(ticks) for pair in fields for ticks in pair) / os.sysconf("SC_CLK_TCK")


def _memory_of(process: "subprocess.Popen[bytes]") -> float:
    """MiB."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _pids_of(process)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
