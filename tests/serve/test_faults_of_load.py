"""Faults F41, F42, F49, F50 and F56 of the fault matrix: many clients, too many, those who leave, those who wait."""

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clearhead.translator import load
from tests.tiny_model import WORDS

from .running import Answer, Running, ask, question, real, request_bytes, started, with_options

pytestmark = pytest.mark.slow
SOAK = bool(os.environ.get("CLEARHEAD_SOAK"))
CAPACITY = 4  # texts a second that the slow engine does


@pytest.fixture(scope="module")
def slow(model: Path) -> Iterator[Running]:
    """An engine that is held to so many texts a second."""
    with started(
        with_options(model, seconds=1 / CAPACITY, limits={"queue_seconds": 3.0, "batch_seconds": 0.5})
    ) as running:
        yield running


async def ask_all(port: int, texts: list[str]) -> list[Answer]:
    return await asyncio.gather(*(ask(port, "POST", "/translate", question(text)) for text in texts))


def require_only_refusals(answers: list[Answer]) -> None:
    for answer in answers:
        assert answer.status in (200, 503)
        if answer.status == 503:
            assert answer.json["code"] == "queue_full"
            assert int(answer.headers["retry-after"]) >= 1
            assert b"Traceback" not in answer.content


def test_F41_a_thousand_clients_at_once_get_their_own_answers(copier: Running) -> None:
    texts = [f"number {n} is {n * n}, and so on".replace("number", "client") for n in range(997)]
    answers = asyncio.run(ask_all(copier.port, texts))
    require_only_refusals(answers)
    good = [(text, answer) for text, answer in zip(texts, answers, strict=True) if answer.status == 200]
    assert len(good) >= 300
    assert [answer.json["translatedText"] for _, answer in good] == [text for text, _ in good]
    assert max(answer.seconds for _, answer in good) < 30
    assert copier.ask("GET", "/livez").status == 200
    assert copier.translate("and again").json == {"translatedText": "and again"}


def test_F41_batched_answers_of_a_real_model_are_those_that_it_gives_alone(model: Path) -> None:
    own = load(model)
    chosen = random.Random(3)
    texts = [" ".join(chosen.choices(WORDS, k=chosen.randint(1, 7))) for _ in range(211)]
    with started(real(model)) as running:
        answers = asyncio.run(ask_all(running.port, texts))
        batches, rows = running.metric("clearhead_batch_rows_count"), running.metric("clearhead_batch_rows_sum")
    require_only_refusals(answers)
    good = [(text, answer) for text, answer in zip(texts, answers, strict=True) if answer.status == 200]
    alone = {text: own.translate(text) for text in set(texts)}
    assert [[answer.json["translatedText"]] for _, answer in good] == [alone[text] for text, _ in good]
    assert rows == len(good)
    assert batches < rows  # they were batched


async def overload(port: int, seconds: float, rate: float) -> tuple[list[Answer], list[float]]:
    """Answers to so many requests a second, whether it can do them or not; and what /livez took meanwhile."""
    tasks, alive = [], []
    started = time.monotonic()
    for n in range(round(seconds * rate)):
        await asyncio.sleep(max(0.0, started + n / rate - time.monotonic()))
        tasks.append(asyncio.create_task(ask(port, "POST", "/translate", question(f"question {n}"))))
        if n % round(rate / 2) == 0:
            alive.append((await ask(port, "GET", "/livez")).seconds)
    return await asyncio.gather(*tasks), alive


def test_F42_at_ten_times_its_capacity_the_server_does_what_it_can(slow: Running) -> None:
    """For a minute in the long run, and then by the clock of the fault matrix."""
    seconds = 60.0 if SOAK else 5.0
    before, began = slow.work(), time.monotonic()
    answers, alive = asyncio.run(overload(slow.port, seconds, 10 * CAPACITY))
    took, after = time.monotonic() - began, slow.work()
    require_only_refusals(answers)
    good = [answer for answer in answers if answer.status == 200]
    refused = sorted(answer.seconds for answer in answers if answer.status == 503)
    usual = sorted(alive)[len(alive) // 2]  # on a busy machine everything takes longer
    assert len(good) == after[0] - before[0]  # nothing was done in vain,
    assert after[1] - before[1] > 0.8 * took  # and the engine was kept busy
    if SOAK:
        assert len(good) >= 0.8 * CAPACITY * seconds
        assert refused[len(refused) * 99 // 100] < max(0.25, 10 * usual)
    assert usual < 1.0
    assert refused[len(refused) // 2] < max(0.05, 3 * usual)
    again = time.monotonic()
    while slow.translate("calm again").seconds > 1.0:
        assert time.monotonic() - again < 5.0


async def leave(port: int, texts: list[str], seconds: float) -> None:
    """Ask, and be gone."""
    writers = []
    for text in texts:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_bytes("POST", "/translate", question(text)))
        await writer.drain()
        writers.append(writer)
    await asyncio.sleep(seconds)
    for writer in writers:
        writer.close()


def test_F49_work_for_clients_that_left_is_not_done(slow: Running) -> None:
    before = slow.work()[0]
    gone = slow.metric("clearhead_cancelled_total")
    asyncio.run(leave(slow.port, [f"gone {n}" for n in range(11)], 0.2))
    started = time.monotonic()
    assert slow.translate("still here").json == {"translatedText": "still here"}
    assert time.monotonic() - started < 11 / CAPACITY - 0.5
    done = slow.work()[0] - before
    cancelled = slow.metric("clearhead_cancelled_total") - gone
    assert cancelled >= 6
    assert done < 11
    assert slow.metric("clearhead_queue_texts") == 0


def test_F49_a_long_text_is_given_up_between_its_slices(slow: Running) -> None:
    document = "\n".join(f"this is line {n} of a long text" for n in range(17))  # some seconds
    with socket.create_connection(("127.0.0.1", slow.port)) as client:
        client.sendall(request_bytes("POST", "/translate", question(document)))
        time.sleep(0.7)
    time.sleep(1.5)
    assert slow.metric("clearhead_engine_batch_age_seconds") == 0


def test_F49_short_texts_do_not_wait_for_a_long_one(slow: Running) -> None:
    document = "\n".join(f"this is line {n} of a long text" for n in range(13))

    async def both() -> tuple[Answer, Answer]:
        long = asyncio.create_task(ask(slow.port, "POST", "/translate", question(document)))
        await asyncio.sleep(0.3)
        short = await ask(slow.port, "POST", "/translate", question("a short one"))
        assert not long.done()
        return short, await long

    short, long = asyncio.run(both())
    assert short.json["translatedText"] == "a short one"
    assert long.json["translatedText"] == document


def test_F50_a_deadline_holds_in_the_queue_and_in_the_engine(model: Path) -> None:
    with started(with_options(model, seconds=0.0, limits={"deadline": 1.0})) as running:

        async def two() -> list[Answer]:
            texts = ["sleep well", "in the queue"]
            return await asyncio.gather(*(ask(running.port, "POST", "/translate", question(text)) for text in texts))

        for answer in asyncio.run(two()):
            assert (answer.status, answer.json["code"]) == (503, "deadline_exceeded")
            assert answer.seconds < 3.0
            assert "retry-after" in answer.headers
        asked = {"texts": ["sleep a little"], "timeout": 0.2}
        answer = running.ask("POST", "/v1/translate", asked)
        assert (answer.status, answer.json["code"]) == (503, "deadline_exceeded")
        assert not running.events("library")  # no complaints of asyncio


def test_F56_memory_files_and_threads_stay(copier: Running) -> None:
    stays([copier.process.pid], 4, lambda n: asyncio.run(ask_all(copier.port, some_texts(n))))


@pytest.mark.skipif(not SOAK, reason="takes twenty minutes")
def test_F56_for_twenty_minutes_with_a_real_model_and_all_that_it_is_asked(server: Running) -> None:
    """The engine's memory too; its threads are CTranslate2's and torch's, which come once."""

    def round_of_all(n: int) -> None:
        answers = asyncio.run(ask_all(server.port, some_texts(n)))
        require_only_refusals(answers)
        text = some_texts(n)[0]
        for path, body in (
            ("/v1/translate", {"texts": [text], "stream": True}),
            ("/v1/translate", {"texts": [text], "n_best": 2, "tokens": True}),
            ("/v1/score", {"sources": [text], "targets": [text]}),
            ("/v1/inspect", {"text": text, "off": [["cross", 0, n % 7]]}),
        ):
            assert server.ask("POST", path, body).status in (200, 503)

    for pages in stays([server.process.pid, server.engine()], 1200, round_of_all):
        quarter = len(pages) // 4
        growth = (min(pages[-quarter:]) - min(pages[quarter : 2 * quarter])) * os.sysconf("SC_PAGE_SIZE") / 2**20
        assert growth < 1.0, f"{growth:.2f} MiB from the second quarter to the last"


def some_texts(n: int) -> list[str]:
    return [" ".join([*WORDS[(n + i) % 9 :], f"round {n} text {i}"]) for i in range(53)]


def stays(pids: list[int], seconds: float, round_of: Callable[[int], object]) -> list[list[int]]:
    """That the processes are as large after so long as soon after the start; the pages of each, round by round."""
    until = time.monotonic() + seconds
    rounds = 0
    sizes: list[list[tuple[int, int, int]]] = [[] for _ in pids]
    while time.monotonic() < until or rounds < 10:
        round_of(rounds)
        rounds += 1
        if rounds >= 5:  # what is kept for good is kept by now
            for pid, some in zip(pids, sizes, strict=True):
                some.append(size_of(pid))
    for some in sizes:
        quarter = len(some) // 4 + 1
        early, late = some[:quarter], some[-quarter:]
        assert min(one[0] for one in late) <= 1.05 * max(one[0] for one in early)
        assert min(one[1] for one in late) <= max(one[1] for one in early)
        assert late[-1][2] <= max(one[2] for one in early)
    return [[one[0] for one in some] for some in sizes]


def size_of(pid: int) -> tuple[int, int, int]:
    """Pages of memory, open files and threads."""
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text().split()[1])
    return pages, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir()))
