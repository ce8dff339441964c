"""What all routes share: the models, the queue, who may ask for how much, and waiting for an answer."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from .batcher import Batcher, Job, Task
from .detection import detect
from .keys import Keys, Rates, read_keys
from .metrics import Metrics
from .options import ServeOptions
from .refusal import RefusedError, bad_request
from .supervisor import Supervisor

AUTO = "auto"
TRANSLATE, GENERATE = "translate", "generate"  # what models are trained for
DOES = {TRANSLATE: "translate", GENERATE: "continue text"}
ROUTES = {TRANSLATE: "/v1/translate", GENERATE: "/v1/generate"}
Model = dict[str, Any]


class GoneError(Exception):
    """The client has left; nobody reads an answer."""


class Service:
    """Made once; lives as long as the server."""

    def __init__(self, options: ServeOptions) -> None:
        self.options, self.limits = options, options.limits
        self.metrics = Metrics()
        self.keys: Keys | None = read_keys(options.api_keys) if options.api_keys else None
        self.rates = None if options.is_local else Rates(options.limits)
        self.is_draining = False
        self.in_flight = 0
        self.batcher = Batcher(options.limits, self.metrics, lambda: self.supervisor.engine)
        self.supervisor = Supervisor(options, self.batcher.hear, self.batcher.pump, self.batcher.lose)
        self._traces: OrderedDict[str, Any] = OrderedDict()

    @property
    def state(self) -> str:
        """ready, or why not: starting, engine_down, draining."""
        return "draining" if self.is_draining else self.supervisor.state

    @property
    def models(self) -> list[Model]:
        return self.supervisor.models

    @property
    def translating(self) -> list[Model]:
        """The models that translate: LibreTranslate's clients know no others."""
        return [model for model in self.models if model["task"] == TRANSLATE]

    # -- who may ask ------------------------------------------------------------------------------------------------

    def require_key(self, request: Request, key: str | None) -> None:
        """LibreTranslate's words; a key that was given in the header has been looked at before."""
        if self.keys is None or request.scope["state"].get("label"):
            return
        if not key:
            raise RefusedError(403, "key_needed", "Please contact the server operator to get an API key")
        label = self.keys.label(key)
        if label is None:
            raise RefusedError(403, "invalid_key", "Invalid API key")
        request.scope["state"]["label"] = label

    def admit(self, request: Request, texts: int, characters: int) -> None:
        """Count what is asked for; too much a minute is refused."""
        request.scope["state"] |= {"texts": texts, "characters": characters}
        if self.rates is not None:
            self.rates.spend(_client(request), characters)
        self.metrics.characters.add(characters)

    def require_ready(self) -> None:
        """Before anything is read: while draining, before the first model is there, or with a full queue."""
        if self.is_draining:
            raise RefusedError(503, "draining", "the server is about to stop; try another", 5.0)
        if self.state == "starting":
            raise RefusedError(503, "starting", "the models are being loaded; try again soon", 2.0)
        self.batcher.require_room()

    # -- which model ------------------------------------------------------------------------------------------------

    def languages(self, text: str) -> list[tuple[str, float]]:
        return detect(text, list(dict.fromkeys(model["source"] for model in self.translating)))

    def model_for(self, source: str, target: str) -> Model | None:
        """The first for this pair."""
        pair = source, target
        return next((model for model in self.translating if (model["source"], model["target"]) == pair), None)

    def require_task(self, task: str, name: str | None = None) -> None:
        """That there is a model for it, and that the one of this name is."""
        tasks = {model["name"]: model["task"] for model in self.models}
        if name in tasks and tasks[name] != task:
            message = f"{name} was trained to {DOES[tasks[name]]}, not to {DOES[task]}; use {ROUTES[tasks[name]]}"
            raise bad_request(message, "wrong_task")
        if task not in tasks.values():
            there = ", ".join(ROUTES[other] for other in sorted(set(tasks.values())))
            raise bad_request(f"no model of this server was trained to {DOES[task]}; there is {there}", "wrong_task")

    def choose(self, name: str | None, source: str | None, target: str | None, sample: str) -> Model:
        """By name, or by what is known of the languages; one that translates, unless another is named."""
        if source == AUTO and self.translating:
            source = self.languages(sample)[0][0]
        fits = [
            model
            for model in sorted(self.models, key=lambda model: model["task"] != TRANSLATE)
            if name in (None, model["name"]) and source in (None, model["source"]) and target in (None, model["target"])
        ]
        if not fits:
            there = ", ".join(f"{model['name']} ({model['source']} to {model['target']})" for model in self.models)
            raise bad_request(
                f"no model fits the model, source and target that were asked for; there is {there}", "no_model"
            )
        return fits[0]

    # -- answers ----------------------------------------------------------------------------------------------------

    def job(
        self,
        request: Request,
        task: Task,
        row: Any,
        timeout: float | None = None,
        on_partial: Callable[[str], None] | None = None,
    ) -> Job:
        seconds = min(timeout or self.limits.deadline, self.limits.deadline)
        answer = asyncio.get_running_loop().create_future()
        return Job(task, row, _client(request), time.monotonic() + seconds, answer, on_partial)

    async def ask(self, request: Request, jobs: Sequence[Job]) -> list[Any]:
        """All answers, in their order; work stops when the client leaves or the deadline passes."""
        self.batcher.submit(jobs)
        return await self.wait_for(request, jobs)

    async def wait_for(self, request: Request, jobs: Sequence[Job]) -> list[Any]:
        """Of jobs that were submitted."""
        left = asyncio.ensure_future(_disconnected(request))
        answers = asyncio.gather(*(job.answer for job in jobs))
        answers.add_done_callback(_seen)
        either: set[asyncio.Future[Any]] = {left, answers}
        try:
            async with asyncio.timeout(min(job.deadline for job in jobs) - time.monotonic()):
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not answers.done():
                raise GoneError
            return answers.result()
        except TimeoutError as error:
            message = "there was no answer in time; ask for less, or try again later"
            raise RefusedError(503, "deadline_exceeded", message, 1.0) from error
        finally:
            left.cancel()
            self.batcher.cancel(jobs)

    def keep_trace(self, trace: Any) -> str:
        """Under an id that nobody can guess; the oldest is forgotten."""
        trace_id = secrets.token_urlsafe(16)
        self._traces[trace_id] = trace
        if len(self._traces) > self.limits.traces:
            self._traces.popitem(last=False)
        return trace_id

    def trace(self, trace_id: str) -> Any:
        if trace_id not in self._traces:
            raise RefusedError(404, "no_trace", "there is no such trace any more; ask for it anew")
        self._traces.move_to_end(trace_id)
        return self._traces[trace_id]


def _client(request: Request) -> str:
    """Whose turn it is: by key, or else by address."""
    label = request.scope["state"].get("label")
    return f"key {label}" if label else f"address {request.client.host if request.client else ''}"


def _seen(answers: "asyncio.Future[list[Any]]") -> None:
    """Else asyncio complains of errors that came when nobody was waiting any more."""
    if not answers.cancelled():
        answers.exception()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
