"""The engine process: `python -m clearhead.serve.engine MODEL …`, started, watched and ended by the front.

It loads the models, says that it is ready, and answers batches from its standard input on its standard output until the
input ends. A thread sends a heartbeat with the age of the running work. Whatever goes wrong that is nobody's fault
ends the process: the front starts another one, and finds out which text was to blame.
"""

import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from clearhead.checkpoint.manifest import read_manifest
from clearhead.data.tokenizer import LEARNED
from clearhead.errors import UserError
from clearhead.translator import Translator, load
from clearhead.translator.generating import Wishes, write
from clearhead.translator.tasks import require_task

from .desk import Desk, Inbox, attention_shape
from .messages import Message, cost_of, messages_from, packed

BEAT = 0.5  # seconds from one heartbeat to the next
WEIGHTS = "model.safetensors"
SAMPLE, LENGTH = 8, 17  # sentences by which the speed is first measured, and their tokens

Loader = Callable[[Path], Translator]


class Outbox:
    """Messages to the front, from any thread."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def send(self, message: Message) -> None:
        with self._lock:
            try:
                self._pipe.write(packed(message))
                self._pipe.flush()
            except BrokenPipeError:
                os._exit(0)  # the front is gone


def run_engine(folders: Sequence[Path], loader: Loader | None = None) -> None:
    """Serve until standard input ends."""
    sys.excepthook = _without_text
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the front decides
    outbox = Outbox(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what a library prints must not be taken for a message
    inbox = Inbox()
    desk = Desk(inbox, outbox.send)
    threading.Thread(target=_beat, args=(desk, outbox), daemon=True).start()
    try:
        models = _seat_all(desk, folders, loader or load_fast)
    except UserError as error:
        outbox.send({"kind": "failed", "code": error.code, "message": str(error), "exit_code": error.exit_code})
        return
    outbox.send({"kind": "ready", "models": models})
    threading.Thread(target=_read, args=(inbox,), daemon=True).start()
    while True:
        desk.handle(inbox.take())


def load_fast(folder: Path) -> Translator:
    """With the engine that can do what the model's own options say."""
    translator = load(folder)
    require_task(translator.task, "translate", "generate")
    return translator if translator.engine.lacks(translator.decoding) is None else load(folder, "native")


def _seat_all(desk: Desk, folders: Sequence[Path], loader: Loader) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = []
    for folder in folders:
        translator = loader(folder)
        about = _about(translator, _name(folder, [model["name"] for model in models]))
        measure = WARM_UPS[translator.task]
        measure(translator)  # what is made when it is first needed is made now
        models.append({**about, "speed": measure(translator)})
        desk.seat(about["name"], translator)
    return models


def _writing_speed(translator: Translator) -> float:
    """Cost per second of a short text, likewise."""
    started = time.perf_counter()
    for _ in write(translator, "a", Wishes(LENGTH, temperature=0)):
        pass
    return cost_of("a", 1, LENGTH) / max(time.perf_counter() - started, 1e-4)


def _speed(translator: Translator) -> float:
    """Cost per second, of sentences made of the vocabulary's pieces; the front corrects it by what it sees."""
    tokenizer = translator.source_tokenizer
    ids = random.Random(1).choices(range(min(LEARNED, len(tokenizer) - 1), len(tokenizer)), k=SAMPLE * LENGTH)
    texts = [tokenizer.decode(ids[start : start + LENGTH]) for start in range(0, len(ids), LENGTH)]
    started = time.perf_counter()
    translator.translate(texts)
    seconds = max(time.perf_counter() - started, 1e-4)
    return sum(cost_of(text, translator.decoding.beam) for text in texts) / seconds


WARM_UPS: dict[str, Callable[[Translator], float]] = {"translate": _speed, "generate": _writing_speed}


def _about(translator: Translator, name: str) -> dict[str, Any]:
    """What the front knows of a model."""
    source, target = translator.languages
    layers, heads = attention_shape(translator)
    return {
        "name": name,
        "task": translator.task,
        "source": source,
        "target": target,
        "kind": translator.config["model"]["kind"],
        "width": translator.config["model"]["width"],
        "layers": layers,
        "heads": heads,
        "engine": translator.engine.name,
        "beam": translator.decoding.beam,
        "calibrated": translator.calibration is not None,
        "example": translator.config.get("data", {}).get("example") or "",
        "sha256": read_manifest(translator.folder)[WEIGHTS].sha256 if translator.folder else "",
    }


def _name(folder: Path, taken: Sequence[str]) -> str:
    """A run folder is called by its own name, not by that of the model in it."""
    whole = folder.resolve()
    name = whole.parent.name if whole.name == "model" else whole.name
    return name if name not in taken else f"{name}-{len(taken) + 1}"


def _beat(desk: Desk, outbox: Outbox) -> None:
    while True:
        outbox.send({"kind": "beat", "age": desk.age})
        time.sleep(BEAT)


def _read(inbox: Inbox) -> None:
    for message in messages_from(sys.stdin.buffer):
        inbox.put(message)
    os._exit(0)


def _without_text(kind: type[BaseException], _: BaseException, trace: TracebackType | None) -> None:
    """A traceback without the exception's words, in which there may be a user's text."""
    print(
        "".join(traceback.format_tb(trace)), f"clearhead engine: {kind.__name__}", sep="", file=sys.stderr, flush=True
    )


if __name__ == "__main__":
    run_engine([Path(folder) for folder in sys.argv[1:]])
