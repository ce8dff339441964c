"""Servers under load: one client, many clients, and ten times what ours can do.

Clients ask for the sentences of the sample in turn, each as soon as it has its answer. FastAPI around CTranslate2 is
what people write themselves; LibreTranslate gets the same weights as an Argos package. The overload is an open loop
on an engine of ours that is held to 40 texts a second; there the clients have one core and the server the others.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import ROOT, python_of
from benchmarks.load import Load, closed_loop, memory_of, open_loop, running
from benchmarks.peers import PeerError
from benchmarks.results import HIGHER, LOWER, Cell, Column, Table
from benchmarks.sample import sample, trained_model
from benchmarks.translation import percentile
from clearhead.checkpoint.model_folder import read_config
from clearhead.engines.ct2_form import ct2_form

ASKS = "How does it serve?"
CLIENTS = (1, 64)
HELD = 40  # texts a second of the engine that is overloaded
STUB = ("en", "zh")  # its languages
RATE = Column("answers/s", HIGHER)
MIDDLE, SLOWEST = Column("p50, ms", LOWER), Column("p99, ms", LOWER)
SHARE, REFUSED, ALIVE = Column("of its peak"), Column("refused/s"), Column("/livez p99, ms")
OURS, FASTAPI, LIBRETRANSLATE = "Clearhead", "FastAPI + CTranslate2", "LibreTranslate"


@dataclass(frozen=True)
class Server:
    """How it is started, if it can be, and where it listens."""

    command: list[str]
    port: int
    environment: dict[str, str] = field(default_factory=dict)


def measure(quick: bool) -> list[Table]:
    seconds, rounds = (2.0, 1) if quick else (6.0, 3)
    model = trained_model()
    lines = sample().sources
    with tempfile.TemporaryDirectory() as scratch:
        tables = _measure_loads(model, Path(scratch), lines, seconds, rounds)
    return [*tables, _measure_overload(model, lines, 2 * seconds)]


def _measure_loads(model: Path, scratch: Path, lines: Sequence[str], seconds: float, rounds: int) -> list[Table]:
    """All servers stay up; each load asks them in turn, round by round."""
    errors: dict[str, str] = {}
    ports: dict[str, int] = {}
    loads: dict[int, dict[str, list[Load]]] = {clients: {} for clients in CLIENTS}
    with ExitStack() as stack:
        for name, server in _servers(model, scratch, errors).items():
            try:
                process = stack.enter_context(running(server.command, server.port, environment=server.environment))
            except PeerError as error:
                errors[name] = str(error)
                continue
            ports[name] = server.port
            if name == OURS:
                ours = process
        for clients in CLIENTS:
            for _ in range(rounds):
                for name, port in ports.items():
                    pair = sample().languages
                    load = asyncio.run(closed_loop(port, clients, lines, seconds, pair))
                    loads[clients].setdefault(name, []).append(load)
        memory = ", ".join(f"{part} {mib:,.0f}" for part, mib in memory_of(ours).items())
    tables = []
    for clients, found in loads.items():
        rows = {name: _cells(each) for name, each in found.items()}
        about = f"Beam {_beam(model)}, {seconds:g} seconds a round. Our memory at the end, MiB: {memory}." * (
            clients == 1
        )
        title = "One client" if clients == 1 else f"{clients} clients at once"
        tables.append(Table(title, [RATE, MIDDLE, SLOWEST], rows, [OURS], dict(errors), about))
    return tables


def _cells(loads: Sequence[Load]) -> dict[str, Cell]:
    if not all(load.good for load in loads):
        return {RATE.name: f"no answers; {sum(load.wrong for load in loads)} errors"}
    return {
        RATE.name: [load.rate for load in loads],
        MIDDLE.name: [1e3 * percentile(load.good, 50) for load in loads],
        SLOWEST.name: [1e3 * percentile(load.good, 99) for load in loads],
    }


def _servers(model: Path, scratch: Path, errors: dict[str, str]) -> dict[str, Server]:
    form, pieces = str(ct2_form(model)), str(model / "source.model")
    servers = {OURS: Server([sys.executable, "-m", "clearhead", "serve", str(model), "--port", "5311"], 5311)}
    try:
        python = str(python_of("fastapi"))
        script = str(ROOT / "benchmarks" / "peers" / "fastapi_ct2.py")
        servers[FASTAPI] = Server([python, script, form, pieces, pieces, _beam(model), "5313"], 5313)
    except PeerError as error:
        errors[FASTAPI] = str(error)
    try:
        python = str(python_of("libretranslate"))
        for pair in (sample().languages, sample().languages[::-1]):  # with less than two it asks the network for more
            write_argos_package(scratch, Path(form), Path(pieces), pair)
        command = [python, "-m", "libretranslate.main", "--port", "5314", "--disable-web-ui"]
        settings = {"ARGOS_PACKAGES_DIR": str(scratch), "ARGOS_CHUNK_TYPE": "NONE", "LT_UPDATE_MODELS": "false"}
        servers[LIBRETRANSLATE] = Server(command, 5314, settings)
    except PeerError as error:
        errors[LIBRETRANSLATE] = str(error)
    return servers


def _beam(model: Path) -> str:
    return str(read_config(model).get("decoding", {}).get("beam", 5))


def write_argos_package(packages: Path, form: Path, sentencepiece: Path, pair: tuple[str, ...]) -> None:
    """As argospm installs it: a folder with metadata, the CTranslate2 model and the SentencePiece model."""
    source, target = pair
    folder = packages / f"translate-{source}_{target}-1_0"
    shutil.copytree(form, folder / "model")
    shutil.copy(sentencepiece, folder / "sentencepiece.model")
    about = {"package_version": "1.0", "argos_version": "1.9", "from_code": source, "from_name": source}
    text = json.dumps({**about, "to_code": target, "to_name": target})
    (folder / "metadata.json").write_text(text, encoding="utf-8")
    with zipfile.ZipFile(packages / f"{folder.name}.argosmodel", "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(packages))


def _measure_overload(model: Path, lines: Sequence[str], seconds: float) -> Table:
    """Peak by a closed loop, then ten times that; clients on the first core, the server on the others."""
    stub = [sys.executable, "-m", "tests.serve.stub_engine", str(1 / HELD)]
    options = {"models": [str(model)], "port": 5312, "engine_command": stub}
    cores = sorted(os.sched_getaffinity(0))
    with running([sys.executable, "-m", "tests.serve.start", json.dumps(options)], 5312, cores[1:] or cores):
        os.sched_setaffinity(0, cores[:1])
        peak = asyncio.run(closed_loop(5312, 16, lines, seconds, STUB))
        over = asyncio.run(open_loop(5312, 10 * HELD, lines, seconds, STUB))
        calm = asyncio.run(closed_loop(5312, 1, lines, seconds / 2, STUB))
        os.sched_setaffinity(0, cores)
    rows: dict[str, dict[str, Cell]] = {
        name: {
            **_cells([load]),
            SHARE.name: f"{load.rate / peak.rate:.0%}",
            REFUSED.name: [len(load.refused) / load.seconds],
            ALIVE.name: [1e3 * percentile(load.alive, 99)] if load.alive else "–",
        }
        for name, load in (("Clearhead at its peak", peak), ("at ten times that", over), ("afterwards", calm))
    }
    about = f"An engine that is held to {HELD} texts a second; refusals come at once, with a time to come back."
    shown = [Column(column.name) for column in (RATE, MIDDLE, SLOWEST)]
    return Table("Overload", [*shown, SHARE, REFUSED, ALIVE], rows, about=about)
