"""Faults F51 to F55 and F58: signals, an engine that dies or hangs, a text that kills it, a model that is replaced."""

import asyncio
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.errors import DISK, MISSING, TRY_AGAIN, USAGE, exit_code_of
from clearhead.serve import server
from clearhead.serve.options import ServeOptions
from clearhead.translator import load
from tests.tiny_model import write_model

from .running import ROOT, Answer, Running, ask, question, real, start_process, started, with_options

pytestmark = pytest.mark.slow


async def asked_while(running: Running, texts: list[str], seconds: float, do: int) -> list[Answer]:
    """Ask, wait a little, send the front a signal, and hear the answers."""
    tasks = [asyncio.create_task(ask(running.port, "POST", "/translate", question(text))) for text in texts]
    await asyncio.sleep(seconds)
    running.process.send_signal(do)
    return await asyncio.gather(*tasks)


# -- F51 ---------------------------------------------------------------------------------------------------------------


def test_F51_a_drained_server_has_answered_everybody_and_ends_with_0(model: Path) -> None:
    with started(with_options(model, seconds=0.02)) as running:
        texts = [f"in flight {n}" for n in range(47)]

        async def during() -> tuple[list[Answer], Answer, Answer]:
            answers = asyncio.create_task(asked_while(running, texts, 0.3, signal.SIGTERM))
            await asyncio.sleep(0.45)
            ready = await ask(running.port, "GET", "/readyz")
            late = await ask(running.port, "POST", "/translate", question("too late"))
            return await answers, ready, late

        answers, ready, late = asyncio.run(during())
        assert [answer.json.get("translatedText") for answer in answers] == texts
        assert (ready.status, ready.json) == (503, {"status": "draining"})
        assert (late.status, late.json["code"]) == (503, "draining")
        assert late.headers["connection"] == "close"
        assert running.process.wait(30) == 0


def test_F51_what_cannot_be_drained_in_time_is_refused_and_a_second_signal_ends_it(model: Path) -> None:
    with started(with_options(model, seconds=0.0, limits={"drain_seconds": 0.5})) as running:
        (answer,) = asyncio.run(asked_while(running, ["sleep on"], 0.3, signal.SIGTERM))
        assert (answer.status, answer.json["code"]) == (503, "draining")
        assert running.process.wait(30) == server.NOT_DRAINED
    with started(with_options(model, seconds=0.0)) as running:
        task = start_process([sys.executable, "-c", f"import urllib.request as u; u.urlopen('{running.url}/livez')"])
        assert task.wait(30) == 0
        task.communicate()

        async def twice() -> None:
            asking = asyncio.create_task(ask(running.port, "POST", "/translate", question("sleep on")))
            await asyncio.sleep(0.3)
            running.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.2)
            running.process.send_signal(signal.SIGTERM)
            await asyncio.gather(asking, return_exceptions=True)

        began = time.monotonic()
        asyncio.run(twice())
        assert running.process.wait(30) == server.NOT_DRAINED
        assert time.monotonic() - began < 4.0


# -- F52, F53 ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(model: Path) -> Iterator[Running]:
    with started(with_options(model, seconds=0.05, limits={"beat_seconds": 2.0})) as running:
        yield running


@pytest.mark.parametrize(
    ("how", "cause"), [(signal.SIGKILL, "crash"), (signal.SIGSEGV, "crash"), (signal.SIGSTOP, "hang")]
)
def test_F52_a_dead_or_hung_engine_is_replaced_and_nobody_notices(watched: Running, how: int, cause: str) -> None:
    watched.wait_until_ready()
    texts = [f"under way {n}" for n in range(11)]
    lost = len(watched.events("engine_lost"))

    async def during() -> tuple[list[Answer], list[Answer]]:
        tasks = [asyncio.create_task(ask(watched.port, "POST", "/translate", question(text))) for text in texts]
        await asyncio.sleep(0.2)
        os.kill(watched.engine(), how)
        alive = []
        for _ in range(5):
            await asyncio.sleep(0.1)
            alive.append(await ask(watched.port, "GET", "/livez"))
        return await asyncio.gather(*tasks), alive

    answers, alive = asyncio.run(during())
    assert [answer.json.get("translatedText") for answer in answers] == texts
    assert [answer.status for answer in alive] == [200] * 5
    assert watched.event("engine_lost", lost + 1)["cause"] == cause
    watched.wait_until_ready()
    assert watched.metric("clearhead_engine_up") == 1


def test_F53_a_text_that_kills_the_engine_is_found_and_kept_out(watched: Running) -> None:
    watched.wait_until_ready()
    lost = len(watched.events("engine_lost"))
    texts = ["good one", "this is poison", "good two", "good three"]

    async def together() -> list[Answer]:
        return await asyncio.gather(*(ask(watched.port, "POST", "/translate", question(text)) for text in texts))

    answers = asyncio.run(together())
    assert [answer.status for answer in answers] == [200, 500, 200, 200]
    assert answers[1].json["code"] == "engine_failed"
    assert [answers[n].json["translatedText"] for n in (0, 2, 3)] == [texts[n] for n in (0, 2, 3)]
    deaths = len(watched.events("engine_lost"))
    assert deaths - lost == 2
    again = watched.translate("this is poison")
    assert (again.status, again.json["code"]) == (500, "engine_failed")
    assert len(watched.events("engine_lost")) == deaths  # it was not tried
    assert "poison" not in "".join(watched.lines)


# -- F54 ---------------------------------------------------------------------------------------------------------------


def test_F54_a_new_model_is_swapped_in_and_a_bad_one_is_not(tmp_path: Path) -> None:
    served = write_model(tmp_path / "served")
    other = write_model(tmp_path / "other", seed=11)
    texts = ["abc head a", "bad cabbage j dig", "cage"]
    old, new = load(served).translate(texts), load(other).translate(texts)
    assert old != new
    with started(real(served)) as running:
        assert running.translate(texts).json["translatedText"] == old
        for file in served.iterdir():  # while it is running
            if file.is_file():
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        shutil.rmtree(served / "ct2-int8", ignore_errors=True)
        assert running.translate(texts).json["translatedText"] == old
        running.process.send_signal(signal.SIGHUP)
        running.event("reload", 2)
        assert "the old models go on" in running.events("reload")[1]["state"]
        assert "E_DAMAGED" in running.events("reload")[1]["error"]
        assert running.translate(texts).json["translatedText"] == old
        shutil.rmtree(served)
        shutil.copytree(other, served)
        running.process.send_signal(signal.SIGHUP)
        running.event("reload", 4)
        assert running.events("reload")[3]["state"] == "done"
        assert running.translate(texts).json["translatedText"] == new
        assert running.ask("GET", "/readyz").status == 200
        assert running.stop() == 0


# -- F55 ---------------------------------------------------------------------------------------------------------------


def run_serve(*arguments: str) -> tuple[int, str]:
    process = start_process([sys.executable, "-m", "clearhead", "serve", *arguments])
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_F55_a_port_in_use_is_said_with_75(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run_serve(str(model), "--port", str(port))
    assert code == TRY_AGAIN
    assert said.startswith(f"clearhead: error[E_PORT_IN_USE]: port {port} of 127.0.0.1 is in use; expected a free one")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["MODEL", "--host", "no such host", "--allow-anonymous"],
            USAGE,
            "E_HOST]: --host no such host is no address of this machine",
        ),
        (
            ["MODEL", "--host", "192.0.2.1", "--allow-anonymous"],
            USAGE,
            "E_HOST]: cannot listen on port 5000 of 192.0.2.1",
        ),
        (["MODEL", "--host", "0.0.0.0"], USAGE, "E_API_KEYS]: --host 0.0.0.0 lets other machines in"),
        (["nowhere"], MISSING, "E_MISSING]: nowhere does not exist"),
    ],
)
def test_F55_what_is_wrong_at_the_start_is_said_in_a_line(
    model: Path, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is started, so that this process can try it."""
    found = exit_code_of(lambda: run(["serve", *(str(model) if one == "MODEL" else one for one in arguments)]))
    line = capsys.readouterr().err
    assert found == code
    assert said in line.strip().split("\n")[-1]
    assert "Traceback" not in line


def test_F55_keys_that_are_not_there_are_said_in_a_line(model: Path) -> None:
    code, said = run_serve(str(model), "--port", "0", "--api-keys", "nowhere")
    assert code == MISSING
    assert "E_MISSING]: nowhere does not exist; expected a file of API keys" in said.strip().split("\n")[-1]


def test_F55_no_permission_is_74(model: Path) -> None:
    error = server._cannot_bind(ServeOptions([model], port=80), PermissionError(13, "Permission denied"))
    assert error.exit_code == DISK
    assert "this user may not use port 80 of 127.0.0.1" in str(error)


def test_F55_IPv6_alone_works(model: Path) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    with started(with_options(model, seconds=0.0, host="::1"), host="::1") as running:
        assert running.translate("over six").json == {"translatedText": "over six"}


def test_F55_few_files_are_no_end(model: Path) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        with_options(model, seconds=0.0, limits={"header_seconds": 2.0}),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT, preexec_fn=few,
    )  # fmt: skip
    running = Running(process, "127.0.0.1")
    try:
        running.port = running.event("listening")["port"]
        running.wait_until_ready()
        clients = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(97)]
        time.sleep(0.5)
        assert process.poll() is None
        for client in clients:
            client.close()
        until = time.monotonic() + 20.0
        while True:
            try:
                assert running.translate("after the rush").json == {"translatedText": "after the rush"}
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.2)
        assert running.stop() == 0
    finally:
        process.kill()
        process.wait()
        running.close()


def test_an_engine_that_cannot_load_its_model_ends_the_server_with_the_reason(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "damaged")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    code, said = run_serve(str(folder), "--port", "0")
    assert code == 76
    assert said.strip().split("\n")[-1].startswith("clearhead: error[E_DAMAGED]:")


# -- F58 ---------------------------------------------------------------------------------------------------------------


def test_F58_an_attention_that_is_too_large_is_refused_before_it_is_computed(copier: Running) -> None:
    """The copier's limit is 5,000 cells, its model has 6 layers of 8 heads, and `never` ends it if it is computed."""
    good = copier.ask("POST", "/v1/inspect", {"text": "abc", "translation": "cab"})
    assert good.json["trace"] == {"source": "abc", "target": "cab", "prefix": [], "off": []}
    large = copier.ask("POST", "/v1/inspect", {"text": "never ever, not at all"})
    assert (large.status, large.json["code"]) == (400, "attention_too_large")
    assert "6 layers × 8 heads × 23 × 23 tokens are 25,392 numbers; expected at most 5,000" in large.json["error"]
    assert not copier.events("engine_lost")


def test_traces_are_kept_for_a_while_under_names_that_cannot_be_guessed(copier: Running) -> None:
    first = copier.ask("POST", "/v1/inspect", {"text": "one"}).json["id"]
    second = copier.ask("POST", "/v1/inspect", {"text": "two"}).json["id"]
    assert first != second
    assert min(len(first), len(second)) >= 20
    assert copier.ask("GET", f"/v1/inspect/{first}").json["trace"]["source"] == "one"
    for _ in range(32):
        copier.ask("POST", "/v1/inspect", {"text": "more"})
    gone = copier.ask("GET", f"/v1/inspect/{second}")
    assert (gone.status, gone.json["code"]) == (404, "no_trace")
