"""The queue of the front: who is let in, whose turn it is, what goes to the engine together, and what is tried again.

The engine never waits while there is work: batches form by themselves while it is busy. Each is as large as the
engine does in about a quarter of a second, so that what nobody waits for any more is noticed between batches.
Clients take turns. What was being done when the engine died is done once more, each text alone: so a text that kills
the engine is found, and kept out for a while.
"""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .messages import LANES, LONG, SHORT, WRITING, cost_of
from .metrics import Metrics
from .options import Limits
from .refusal import RefusedError
from .supervisor import EngineProcess

ALONE = {"steps": LONG, "inspect": LONG, "generate": WRITING}  # tasks that do one row at a time, and their lanes
TELLING = ("translate", "generate")  # tasks by whose time the speed of a model is known
DOUBLE = 2.0  # times what a batch should cost: from there on a text goes to the long lane


@dataclass(frozen=True)
class Task:
    """What is to be done with a row; rows of equal tasks share batches."""

    what: str
    model: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def beam(self) -> int:
        return dict(self.options).get("beam") or 1

    @property
    def length(self) -> int:
        """Tokens to be written, if they are asked for."""
        return dict(self.options).get("length") or 0


@dataclass(eq=False)
class Job:
    """One row, and who waits for its answer until when (in the time of `time.monotonic`)."""

    task: Task
    row: Any
    client: str
    deadline: float
    answer: "asyncio.Future[Any]"
    on_partial: Callable[[str], None] | None = None
    attempts: int = 0
    entered: float = field(default_factory=time.monotonic)
    begun: float | None = None
    cost: float = field(init=False)  # see messages.cost_of

    def __post_init__(self) -> None:
        texts = self.row if isinstance(self.row, list) else [self.row]
        self.cost = cost_of("".join(text or "" for text in texts), self.task.beam, self.task.length)


@dataclass(eq=False)
class Batch:
    number: int
    jobs: list[Job]
    engine: EngineProcess


class Lane:
    """The jobs that wait, by client, and the batch that is being done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running: Batch | None = None
        self.costs: defaultdict[str, float] = defaultdict(float)  # of what waits, by model
        self._clients: OrderedDict[str, deque[Job]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_trying_again(self) -> bool:
        return self.running is not None and self.running.jobs[0].attempts > 0

    def jobs(self) -> Iterator[Job]:
        for jobs in self._clients.values():
            yield from jobs

    def put(self, job: Job, is_first: bool = False) -> None:
        jobs = self._clients.setdefault(job.client, deque())
        if is_first:
            jobs.appendleft(job)
        else:
            jobs.append(job)
        self._count += 1
        self.costs[job.task.model] += job.cost

    def remove(self, gone: set[Job]) -> None:
        for client in {job.client for job in gone} & set(self._clients):
            jobs = self._clients[client]
            self._clients[client] = deque(job for job in jobs if job not in gone)
            self._count -= len(jobs) - len(self._clients[client])
            for job in gone & set(jobs):
                self.costs[job.task.model] -= job.cost
            if not self._clients[client]:
                del self._clients[client]

    def take(self, budget: float) -> list[Job]:
        """The next client's oldest job, and others of the same task, of each client in turn, within the budget."""
        first = next(self.jobs())
        taken: list[Job] = []
        cost = 0.0
        for job in self._in_turn(first.task) if _can_share(first) else [first]:
            if taken and cost + job.cost > budget:
                break
            taken.append(job)
            cost += job.cost
        self._clients.move_to_end(first.client)
        self.remove(set(taken))
        return taken

    def _in_turn(self, task: Task) -> Iterator[Job]:
        turns = [iter([job for job in jobs if _can_share(job) and job.task == task]) for jobs in self._clients.values()]
        while turns:
            left = []
            for turn in turns:
                if (job := next(turn, None)) is not None:
                    yield job
                    left.append(turn)
            turns = left


def _can_share(job: Job) -> bool:
    """What was there when the engine died is tried alone."""
    return job.attempts == 0 and job.task.what not in ALONE


class Batcher:
    """Between the requests and the engine; all in the event loop's thread."""

    def __init__(self, limits: Limits, metrics: Metrics, engine: Callable[[], EngineProcess | None]) -> None:
        self._limits, self._metrics, self._engine = limits, metrics, engine
        self._lanes = {name: Lane(name) for name in LANES}
        self._speeds: dict[str, float] = {}
        self._number = 0
        self._salt = secrets.token_bytes(16)
        self._quarantine: dict[bytes, float] = {}

    # -- for requests -----------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    @property
    def is_idle(self) -> bool:
        return not self.waiting and all(lane.running is None for lane in self._lanes.values())

    def require_room(self, texts: int = 1) -> None:
        """Whoever would have to wait too long is told so at once."""
        seconds = self._seconds_waiting()
        if self.waiting + texts > self._limits.queue or seconds > self._limits.queue_seconds:
            message = f"the server is busy: about {seconds:.1f} s of work are waiting; try again later"
            raise RefusedError(503, "queue_full", message, max(1.0, seconds / 2))

    def submit(self, jobs: Sequence[Job]) -> None:
        self.require_room(len(jobs))
        for job in jobs:
            if self._is_quarantined(job):
                raise _engine_failed()
        for job in jobs:
            self._lanes[self._lane_of(job)].put(job)
        self.pump()

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Nobody waits for these any more: what was not begun never will be."""
        gone = {job for job in jobs if not job.answer.done()}
        if not gone:
            return
        for job in gone:
            job.answer.cancel()
            self._metrics.cancelled.add(1, "queue" if job.begun is None else "decode")
        for lane in self._lanes.values():
            lane.remove(gone)
            batch = lane.running
            if batch is not None and gone & set(batch.jobs) and all(job.answer.done() for job in batch.jobs):
                batch.engine.send({"kind": "cancel", "batch": batch.number})
        self._metrics.queue_texts.set(self.waiting)

    def refuse_all(self, refusal: RefusedError) -> None:
        """At the end of a drain that took too long."""
        for lane in self._lanes.values():
            running = lane.running.jobs if lane.running else []
            for job in [*lane.jobs(), *running]:
                _fail(job, refusal)

    # -- for the engine ---------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Give the engine what it can do now."""
        engine = self._engine()
        if engine is None or not engine.is_ready:
            return
        for model in engine.models:
            self._speeds.setdefault(model["name"], model["speed"])
        for lane in self._lanes.values():
            if lane.running is None and len(lane) and self._may_begin(lane):
                first = next(lane.jobs())
                self._begin(lane, lane.take(self._speed(first) * self._limits.batch_seconds), engine)
        self._metrics.queue_texts.set(self.waiting)

    def hear(self, engine: EngineProcess, message: dict[str, Any]) -> None:
        """An answer of the engine, or a part of one."""
        lane = self._lane_doing(engine, message["batch"])
        if lane is None or lane.running is None:
            return
        jobs = lane.running.jobs
        if message["kind"] == "partial":
            if jobs[0].on_partial is not None and not jobs[0].answer.done():
                jobs[0].on_partial(message["text"])
            return
        lane.running = None
        self._measure(jobs, message["seconds"], message["tokens"])
        for job, row in zip(jobs, message["rows"], strict=False):  # no rows: it was cancelled
            if "error" in row:
                _fail(job, RefusedError(400, row["error"], row["message"]))
            elif not job.answer.done():
                job.answer.set_result(row["value"])
        self.pump()

    def lose(self, engine: EngineProcess) -> None:
        """The engine has died: what it was doing is tried once more, or was to blame."""
        for lane in self._lanes.values():
            if lane.running is None or lane.running.engine is not engine:
                continue
            jobs, lane.running = lane.running.jobs, None
            for job in reversed(jobs):
                job.attempts += 1
                if job.answer.done():
                    continue
                if job.attempts > 1:
                    self._quarantine[self._fingerprint(job)] = time.monotonic() + self._limits.quarantine_seconds
                    _fail(job, _engine_failed())
                elif job.deadline < time.monotonic() + 1.0:
                    _fail(job, RefusedError(503, "engine_restarted", "the engine had to be restarted; try again", 1.0))
                else:
                    lane.put(job, is_first=True)
        self.pump()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _begin(self, lane: Lane, jobs: list[Job], engine: EngineProcess) -> None:
        now = time.monotonic()
        for job in jobs:
            job.begun = now
            self._metrics.queue_wait.observe(now - job.entered)
        self._number += 1
        self._metrics.batch_rows.observe(len(jobs))
        task = jobs[0].task
        lane.running = Batch(self._number, jobs, engine)
        engine.send(
            {
                "kind": "work",
                "batch": self._number,
                "lane": lane.name,
                "what": task.what,
                "model": task.model,
                "options": dict(task.options),
                "rows": [job.row for job in jobs],
            }
        )

    def _lane_doing(self, engine: EngineProcess, number: int) -> Lane | None:
        for lane in self._lanes.values():
            if lane.running and lane.running.engine is engine and lane.running.number == number:
                return lane
        return None

    def _lane_of(self, job: Job) -> str:
        is_long = job.cost > DOUBLE * self._speed(job) * self._limits.batch_seconds
        return ALONE.get(job.task.what, LONG if is_long else SHORT)

    def _may_begin(self, lane: Lane) -> bool:
        """What may have killed the engine has it for itself, so that nobody else is blamed."""
        others = [one for one in self._lanes.values() if one is not lane and one.running is not None]
        return not any(one.is_trying_again for one in others) and not (others and next(lane.jobs()).attempts)

    def _speed(self, job: Job) -> float:
        return self._speeds[job.task.model]

    def _seconds_waiting(self) -> float:
        return sum(cost / self._speeds[model] for lane in self._lanes.values() for model, cost in lane.costs.items())

    def _measure(self, jobs: Sequence[Job], seconds: float, tokens: int) -> None:
        """What takes longer tells more; a batch that was given up tells nothing."""
        self._metrics.batch_duration.observe(seconds)
        self._metrics.tokens.add(tokens)
        if not seconds or jobs[0].task.what not in TELLING:
            return
        weight = min(0.5, seconds / self._limits.batch_seconds)
        speed = self._speed(jobs[0])
        measured = sum(job.cost for job in jobs) / seconds
        self._speeds[jobs[0].task.model] = speed + weight * (measured - speed)

    def _fingerprint(self, job: Job) -> bytes:
        """Of what was asked; salted, so that the text cannot be guessed from it."""
        return hashlib.sha256(self._salt + repr((job.task, job.row)).encode("utf-8", "surrogatepass")).digest()

    def _is_quarantined(self, job: Job) -> bool:
        now = time.monotonic()
        self._quarantine = {print_: until for print_, until in self._quarantine.items() if until > now}
        return bool(self._quarantine) and self._fingerprint(job) in self._quarantine


def _fail(job: Job, refusal: RefusedError) -> None:
    if not job.answer.done():
        job.answer.set_exception(refusal)


def _engine_failed() -> RefusedError:
    return RefusedError(500, "engine_failed", "the engine cannot do this text; it is not tried again for some minutes")
