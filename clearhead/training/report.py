"""What a run leaves behind for people: log lines, the loss curve, the model card."""

import contextlib
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import TEMPORARY, disk_errors
from clearhead.errors import USAGE, UserError
from clearhead.evaluation import ErrorRates, Scores
from clearhead.figures import chart
from clearhead.versions import versions

from .plan import Plan, vocabularies
from .settings import Settings, kind_of
from .validation import Sample


class Log:
    """log.jsonl: one JSON object per event, in the order of the steps."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def forget_after(self, step: int) -> None:
        """Drop what a run that was killed had logged past the checkpoint it goes on from."""
        if not self._path.exists():
            return
        kept = [json.dumps(event) for event in self.events() if event["step"] <= step]
        write_text(self._path, "".join(line + "\n" for line in kept))

    def write(self, event: dict[str, Any]) -> None:
        """JSON has no NaN: it becomes null. A full disk is reported where it matters, by the checkpoint."""
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in event.items()}
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain, ensure_ascii=False) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """All complete lines; a kill may have cut the last one short."""
        if not self._path.exists():
            return []
        events = []
        for line in self._path.read_text(encoding="utf-8").split("\n"):
            try:
                events.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return events


def say(run: Path, text: str) -> None:
    """To the terminal and to run.log."""
    print(text, file=sys.stderr, flush=True)
    # A full disk is reported where it matters: when a checkpoint cannot be saved.
    with contextlib.suppress(OSError), (run / "run.log").open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text, in one moment."""
    scratch = path.with_name(f"{TEMPORARY}{path.name}")
    with disk_errors(f"cannot write {path}", path.parent, len(text), "the file that was there before"):
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)


class Board:
    """The same numbers for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError(
                "NO_TENSORBOARD",
                "training.tensorboard is true, but TensorBoard is not installed: pip install 'clearhead[tensorboard]'",
                USAGE,
            ) from error
        self._writer = SummaryWriter(str(folder))

    def write(self, event: dict[str, Any]) -> None:
        for name, value in event.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, event["step"])
        self._writer.flush()


def loss_curve(events: Iterable[dict[str, Any]]) -> str:
    """An SVG of training and validation loss over the steps."""
    events = list(events)
    return chart(
        {
            "training": [(e["step"], e["loss"]) for e in events if e.get("loss") is not None],
            "validation": [(e["step"], e["valid_loss"]) for e in events if "valid_loss" in e],
        }
    )


def model_card(
    settings: Settings,
    plan: Plan,
    command: str,
    chosen: str,
    loss: float,
    scores: Scores | ErrorRates,
    samples: list[Sample],
) -> str:
    """README.md of the run: data, sizes, scores with signatures, the command that made it."""
    source, target = plan.languages
    model = settings.model
    machine = versions()
    found, head = "", "beginning | continuation | how it went on"
    if isinstance(scores, ErrorRates):
        head = "file | text | reference"
        found = f" On {len(samples)} of them {scores}."
    elif settings.data.task == "translate":
        head = "source | translation | reference"
        found = f""" On {len(samples)} translations of them BLEU {scores.bleu:.1f}
  (`{scores.signatures["bleu"]}`), chrF {scores.chrf:.1f} (`{scores.signatures["chrf"]}`), exact match
  {scores.exact_match:.1%}."""
    rows = "\n".join(f"| {_cell(s.source)} | {_cell(s.translation)} | {_cell(s.reference)} |" for s in samples[:10])
    return f"""# A model for {source} → {target}

Made by Clearhead {machine["clearhead"]} (torch {machine["torch"]}, Python {machine["python"]}) with

    {" ".join(command.split())}

- Data: {plan.pairs:,} pairs, {plan.tokens_per_epoch:,} target tokens; the SHA-256 of the files begins with
  {plan.prints["train"][:16]}; what was left out is in `data_report.json`.
- Model: {kind_of(model)}, preset `{settings.preset}`, width {model.width}, {plan.parameters:,} parameters; vocabulary
  {vocabularies(settings)}. All options are in `run.toml`.
- Training: {plan.steps:,} steps of {plan.tokens_per_batch:,} tokens, seed {settings.training.seed},
  {plan.processes} × {plan.threads} threads, {plan.precision}. The weights are {chosen}.
- On the validation pairs: loss {loss:.3f} per token, perplexity {math.exp(min(loss, 700.0)):.2f}.{found}

| {head} |
|---|---|---|
{rows}

![loss](loss.svg)
"""


def _cell(text: str) -> str:
    """Text of the corpus, harmless inside a Markdown table."""
    plain = " ".join(text.split())[:200]
    return "".join("\\" + c if c in "|<>*_`[]\\" else c for c in plain)
