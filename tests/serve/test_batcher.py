"""The queue without processes: who is let in, whose turn it is, what goes together, what is tried again."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from clearhead.serve.batcher import Batcher, Job, Task
from clearhead.serve.messages import LONG, SHORT
from clearhead.serve.metrics import Metrics
from clearhead.serve.options import Limits
from clearhead.serve.refusal import RefusedError

PLAIN = Task("translate", "m", (("beam", 1),))
SPEED = 1_000.0  # cost per second; a batch is 250


class FakeEngine:
    """Notes what it is sent."""

    is_ready = True

    def __init__(self) -> None:
        self.models = [{"name": "m", "speed": SPEED}]
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def work(self) -> list[list[Any]]:
        return [message["rows"] for message in self.sent if message["kind"] == "work"]


class Setting:
    """A batcher and its engine."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.engine: Any = FakeEngine()
        self.batcher = Batcher(limits or Limits(), Metrics(), lambda: self.engine)
        self.batcher.pump()

    def job(self, text: str, client: str = "one", task: Task = PLAIN) -> Job:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        return Job(task, text, client, time.monotonic() + 30, answer)

    def submit(self, *texts: str, client: str = "one", task: Task = PLAIN) -> list[Job]:
        jobs = [self.job(text, client, task) for text in texts]
        self.batcher.submit(jobs)
        return jobs

    def answer(self, place: int = -1) -> None:
        """The engine has done what it was sent."""
        message = self.engine.sent[place]
        rows = [{"value": f"done {row}"} for row in message["rows"]]
        seconds = sum(len(row) + 8 for row in message["rows"]) / SPEED  # as was thought
        self.batcher.hear(
            self.engine, {"kind": "done", "batch": message["batch"], "rows": rows, "seconds": seconds, "tokens": 5}
        )

    def die(self) -> None:
        self.batcher.lose(self.engine)


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_a_loop
async def test_the_first_starts_at_once_and_the_others_form_a_batch() -> None:
    setting = Setting()
    jobs = setting.submit("a") + setting.submit("b") + setting.submit("c")
    assert setting.engine.work == [["a"]]
    setting.answer()
    assert setting.engine.work == [["a"], ["b", "c"]]
    setting.answer()
    assert [job.answer.result() for job in jobs] == ["done a", "done b", "done c"]
    assert setting.batcher.is_idle


@in_a_loop
async def test_a_batch_is_as_large_as_a_quarter_second_of_work() -> None:
    setting = Setting()
    setting.submit("first")
    setting.submit(*["x" * 92] * 5)  # 100 each; the budget is 250
    setting.answer()
    assert [len(rows) for rows in setting.engine.work] == [1, 2]


@in_a_loop
async def test_other_tasks_have_batches_of_their_own() -> None:
    setting = Setting()
    wide = Task("translate", "m", (("beam", 2),))
    setting.submit("first")
    setting.submit("a")
    setting.submit("w", task=wide)
    setting.submit("b")
    setting.answer()
    setting.answer()
    assert setting.engine.work == [["first"], ["a", "b"], ["w"]]


@in_a_loop
async def test_clients_take_turns() -> None:
    setting = Setting()
    setting.submit("first")
    setting.submit(*[f"{n}" + "x" * 91 for n in range(5)], client="greedy")
    setting.submit("modest", client="modest")
    setting.answer()
    assert setting.engine.work[1][1] == "modest"


@in_a_loop
async def test_long_texts_and_streams_have_a_lane_of_their_own() -> None:
    setting = Setting()
    setting.submit("a text " * 200)
    setting.submit("short")
    assert [message["lane"] for message in setting.engine.sent] == [LONG, SHORT]
    setting.submit("stream", task=Task("steps", "m"))
    setting.answer(0)
    assert [message["lane"] for message in setting.engine.sent] == [LONG, SHORT, LONG]


@in_a_loop
async def test_who_would_wait_too_long_is_refused_with_the_time() -> None:
    setting = Setting(Limits(queue_seconds=0.5, queue=7))
    setting.submit("first")
    setting.submit(*["x" * 92] * 6)  # 0.6 seconds
    with pytest.raises(RefusedError, match=r"about 0\.6 s of work are waiting") as refused:
        setting.submit("one more")
    assert (refused.value.status, refused.value.code) == (503, "queue_full")
    assert refused.value.headers() == {"retry-after": "1"}
    many = Setting(Limits(queue=7))
    with pytest.raises(RefusedError):
        many.submit(*["a"] * 8)


@in_a_loop
async def test_what_is_cancelled_never_reaches_the_engine() -> None:
    setting = Setting()
    running, waiting = setting.submit("running"), setting.submit("waiting")
    setting.batcher.cancel(waiting)
    assert setting.batcher.waiting == 0
    setting.batcher.cancel(running)
    assert setting.engine.sent[-1] == {"kind": "cancel", "batch": 1}
    batch = {"kind": "done", "batch": 1, "rows": [], "seconds": 0.0, "tokens": 0}
    setting.batcher.hear(setting.engine, batch)
    assert setting.batcher.is_idle


@in_a_loop
async def test_F52_what_a_dead_engine_was_doing_is_tried_again_each_alone() -> None:
    setting = Setting()
    setting.submit("first")
    jobs = setting.submit("b", "c")
    setting.answer()
    setting.die()
    setting.submit("new")
    setting.answer()
    setting.answer()
    setting.answer()
    assert setting.engine.work == [["first"], ["b", "c"], ["b"], ["c"], ["new"]]
    assert [job.answer.result() for job in jobs] == ["done b", "done c"]


@in_a_loop
async def test_F53_only_the_text_that_kills_the_engine_twice_is_blamed() -> None:
    setting = Setting()
    long = setting.submit("a long poison " * 100)
    short = setting.submit("innocent")
    setting.die()
    assert len(setting.engine.work) == 3  # one alone, the other waits
    setting.die() if setting.engine.sent[-1]["lane"] == LONG else setting.answer()
    assert setting.engine.sent[-1]["lane"] != setting.engine.sent[-2]["lane"]
    setting.die() if setting.engine.sent[-1]["lane"] == LONG else setting.answer()
    assert short[0].answer.result() == "done innocent"
    with pytest.raises(RefusedError, match="the engine cannot do this text"):
        long[0].answer.result()
    with pytest.raises(RefusedError):
        setting.submit("a long poison " * 100)


@in_a_loop
async def test_F52_what_has_no_time_left_is_not_tried_again() -> None:
    setting = Setting()
    job = setting.job("late")
    job.deadline = time.monotonic() + 0.1
    setting.batcher.submit([job])
    setting.die()
    with pytest.raises(RefusedError, match="had to be restarted") as refused:
        job.answer.result()
    assert (refused.value.status, refused.value.code) == (503, "engine_restarted")


@in_a_loop
async def test_F51_what_is_left_after_a_drain_is_refused() -> None:
    setting = Setting()
    jobs = setting.submit("a") + setting.submit("b")
    setting.batcher.refuse_all(RefusedError(503, "draining", "over", 5.0))
    for job in jobs:
        with pytest.raises(RefusedError, match="over"):
            job.answer.result()


@in_a_loop
async def test_the_speed_follows_what_is_measured() -> None:
    setting = Setting(Limits(queue_seconds=99))
    setting.submit("first")
    for _ in range(13):
        setting.submit(*["x" * 92] * 8)
        message = setting.engine.sent[-1]
        rows = [{"value": ""} for _ in message["rows"]]
        seconds = len(rows) * 0.01  # ten times as fast as was thought
        done = {"kind": "done", "batch": message["batch"], "rows": rows, "seconds": seconds, "tokens": 1}
        setting.batcher.hear(setting.engine, done)
    assert len(setting.engine.work[-1]) > 5
