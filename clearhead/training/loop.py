"""The loop: update, validate, save, until the steps are done or nothing gets better.

What a step does depends on the weights, the optimizer's state, the seed and the step's number alone: dropout is seeded
anew at every step and the data's order is a function of the epoch, so that a run that was interrupted anywhere ends
with the same weights, bit for bit, as one that was not.
"""

import math
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.optimizer import load_optimizer, optimizer_tensors
from clearhead.checkpoint.run import newest_valid, save_checkpoint, steps, thin
from clearhead.checkpoint.weights import NonFinite, load_weights
from clearhead.data.batching import Parts
from clearhead.data.prepare import Prepared
from clearhead.decoding import DecodingOptions
from clearhead.engines.memory import ALL, keep_memory
from clearhead.errors import DISK, DIVERGED, INTERRUPTED, TERMINATED, TRY_AGAIN, USAGE, UserError, warning_line
from clearhead.failpoint import failpoint
from clearhead.model import build
from clearhead.model.linear import multiply_in
from clearhead.progress import Bar, progress
from clearhead.training import schedule

from .distributed import Team
from .gradients import Gradients, OutOfMemory
from .plan import Plan
from .position import Position, Stopped
from .product import write_model
from .report import Board, Log, say
from .settings import Settings
from .step import make_optimizer, pick_device, set_rate
from .validation import Sample, translate_validation, validation_loss
from .vocabulary import target_words

DISK_FAILURES = 3  # in a row before the run gives up
BAD_UPDATES = 3  # in a row
BAD_SHARE = 10  # of the last 1,000 updates


class Trainer:
    """One process's part in a run."""

    def __init__(self, run: Path, settings: Settings, plan: Plan, prepared: Prepared, team: Team) -> None:
        self.run, self.settings, self.plan, self.prepared, self.team = run, settings, plan, prepared, team
        self.options = settings.training
        self.device = pick_device()
        torch.set_num_threads(plan.threads)
        keep_memory(ALL)  # every step needs as much as the last one
        torch.manual_seed(self.options.seed)
        self.model = build(settings.model).to(self.device)
        multiply_in(self.model, getattr(torch, plan.precision))
        self.optimizer = make_optimizer(self.model, self.options, team)
        self.gradients = Gradients(self.model, prepared, settings, plan.steps, team, self.device)
        self.position = Position(micro_tokens=self.options.micro_tokens)
        self.log, self.bad_batches = Log(run / "log.jsonl"), Log(run / "bad_batches.jsonl")
        self.board = Board(run / "tensorboard") if self.options.tensorboard and team.leads else None
        self._told_to_stop = 0
        self._failed_saves = 0
        self._said = target_words(prepared, settings).said(settings.model.target_vocabulary)

    def train(self) -> Position:
        """All the steps that are left. Raises Stopped after a signal, with the state saved."""
        self._resume()
        last = self.position.planned = self.plan.steps
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._give_up)
        try:
            with progress("training") as bar:
                while self.position.step < last and not self.position.stopped_early:
                    self._epoch(last, bar)
            if self._told_to_stop:  # at the very end
                raise Stopped(self._told_to_stop, self.position.step)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
        return self.position

    # -- one epoch, one step ----------------------------------------------------------------------------------------

    def _epoch(self, last: int, bar: Bar) -> None:
        here, options = self.position, self.options
        batches = self.gradients.batches(here.epoch, self.plan.tokens_per_batch)
        while here.batch < len(batches) and here.step < last and not here.stopped_early:
            told = self._step(batches[here.batch], bar)
            here.batch += 1
            if here.batch == len(batches):
                here.epoch, here.batch = here.epoch + 1, 0
                batches = []
            validates = here.step % (options.validate_every or last) == 0 or here.step == last
            if validates:
                self._validate()
            saves = here.step % (options.save_every or last) == 0 or validates or here.stopped_early
            if saves or told:
                self._save(is_last=told > 0 or here.step == last or here.stopped_early)
            if told:
                raise Stopped(told, here.step)

    def _step(self, parts: Parts, bar: Bar) -> int:
        """One update; an exit code if some process was told to stop meanwhile."""
        here = self.position
        step = here.step + 1
        try:
            loss, told = self.gradients.of(parts, here, lambda: self._told_to_stop, self._warn)
        except OutOfMemory as error:
            advice = "Lower training.micro_tokens, or start anew with a smaller preset"
            raise UserError("MEMORY", f"{error}. {self._kept()} {advice}", TRY_AGAIN) from error
        rate = self.rate(step)
        norm = self._clip()
        set_rate(self.optimizer, rate)
        here.step = step
        if math.isfinite(loss) and math.isfinite(norm):
            self.optimizer.step()
            here.in_a_row = 0
            self._notice_explosion(step, loss)
        else:
            self._skip(step, np.concatenate(parts), loss, norm)
        self.optimizer.zero_grad(set_to_none=True)
        if self.team.leads:
            self._record(
                {"step": step, "loss": loss, "rate": rate, "norm": norm, "tokens": self.gradients.tokens(parts)}
            )
            bar.update(step, self.plan.steps, f"loss {loss:.3f}")
        return told

    def rate(self, step: int) -> float:
        options = self.options
        peak, warmup = options.peak_rate or 0.0, options.warmup or 1
        if options.schedule == "paper":
            return schedule.paper(step, self.settings.model.width, warmup)
        if options.schedule == "cosine":
            return schedule.cosine(step, peak, warmup, self.plan.steps)
        return schedule.inverse_square_root(step, peak, warmup)

    def _clip(self) -> float:
        limit = self.options.clip or math.inf
        return float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))

    # -- what can go wrong ------------------------------------------------------------------------------------------

    def _skip(self, step: int, rows: np.ndarray, loss: float, norm: float) -> None:
        here = self.position
        here.in_a_row += 1
        here.bad = [bad for bad in here.bad if bad > step - 1000] + [step]
        lines = self.prepared.lines[np.sort(rows)].tolist()
        if self.team.leads:
            self.bad_batches.write({"step": step, "loss": str(loss), "norm": str(norm), "lines": lines})
        self._warn("NOT_FINITE", f"loss {loss}, gradient {norm} at step {step}: update skipped, see bad_batches.jsonl")
        if here.in_a_row > BAD_UPDATES or len(here.bad) > BAD_SHARE:
            raise self._diverged(
                f"{here.in_a_row} updates in a row and {len(here.bad)} of the last 1,000 gave no finite loss"
            )

    def _diverged(self, what: str) -> UserError:
        return UserError(
            "DIVERGED",
            f"training diverged at step {self.position.step}: {what}. {self._kept()} "
            f"Next: a new run with a lower training.peak_rate than {self.options.peak_rate}",
            DIVERGED,
        )

    def _kept(self) -> str:
        saved = steps(self.run)
        return f"Kept: {f'step {saved[-1]}' if saved else 'nothing yet'}."

    def _notice_explosion(self, step: int, loss: float) -> None:
        here = self.position
        deviation = loss - here.level
        if step > 50 and deviation > max(6 * here.spread**0.5, 0.2 * here.level):
            self._warn("LOSS_JUMPED", f"the loss jumped from about {here.level:.2f} to {loss:.2f} at step {step}")
        here.level = loss if step == 1 else here.level + 0.05 * deviation
        here.spread = 0.95 * here.spread + 0.05 * deviation**2 if step > 1 else 0.0

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self._told_to_stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._told_to_stop = self._told_to_stop or (INTERRUPTED if number == signal.SIGINT else TERMINATED)
        signal.setitimer(signal.ITIMER_REAL, self.options.grace)

    def _give_up(self, *_: object) -> None:
        """The step, validation or save that was under way when we were told to stop takes too long."""
        raise Stopped(self._told_to_stop, max(steps(self.run), default=0))

    def _warn(self, code: str, message: str) -> None:
        if self.team.leads:
            say(self.run, warning_line(code, message))

    # -- validation and checkpoints ---------------------------------------------------------------------------------

    def _validate(self) -> None:
        here, team, options = self.position, self.team, self.options
        self.model.eval()
        failpoint(f"train.validate.{here.step}")
        loss = validation_loss(self.model, self.prepared, team, self.device)
        event: dict[str, Any] = {"step": here.step, "epoch": here.epoch, "valid_loss": loss}
        text = f"step {here.step:,}: validation loss {loss:.3f}"
        samples: list[Sample] = []
        if options.decode_pairs:
            greedy = DecodingOptions(beam=1)
            scores, samples = translate_validation(
                self.model, self.prepared, team, self.device, greedy, options.decode_pairs, self._said
            )
            if self.prepared.has_source:
                event |= scores.numbers()
                text += f", {scores}"
            else:  # a text can go on in many ways: only its probability says how good a continuation is
                event["perplexity"] = math.exp(min(loss, 700.0))
                text += f", perplexity {event['perplexity']:.2f}"
        self.model.train()
        if not math.isfinite(loss):
            raise self._diverged(f"the validation loss is {loss}")
        is_best = not here.best or loss < here.best[0][0]
        here.best = sorted([*here.best, (loss, here.step)])[: options.keep_best]
        here.worse = 0 if is_best else here.worse + 1
        here.stopped_early = bool(options.patience) and here.worse >= options.patience
        if team.leads:
            self._record(event)
            say(self.run, text + (" (best)" if is_best else f" (best {here.best[0][0]:.3f})"))
            for sample in samples[: options.samples]:  # on the terminal only: text of the corpus is not logged
                print(f"    {_shown(sample.source)}\n  → {_shown(sample.translation)}", file=sys.stderr, flush=True)
            if here.stopped_early:
                say(self.run, f"no better validation loss in {options.patience} validations: stopping early")

    def _record(self, event: dict[str, Any]) -> None:
        self.log.write(event)
        if self.board is not None:
            self.board.write(event)

    def _save(self, is_last: bool) -> None:
        """By the first process, and the others wait: none may end while it is at it."""
        if self.team.leads:
            self._write_checkpoint(is_last)
        self.team.gather(0)

    def _write_checkpoint(self, is_last: bool) -> None:
        here = self.position
        try:
            tensors = optimizer_tensors(self.optimizer, self.model)
            save_checkpoint(self.run, here.step, self.model.state_dict(), tensors, asdict(here))
            self._failed_saves = 0
            self._thin()
            if here.best and here.best[0][1] == here.step:  # from now on the run can be used, finished or not
                about = {"of_steps": 0, "weights": f"of step {here.step}", "valid_loss": here.best[0][0]}
                write_model(self.run, self.settings, self.plan, self.model, about)
        except NonFinite as error:
            raise self._diverged(str(error)) from error
        except UserError as error:
            self._failed_saves += 1
            if error.exit_code != DISK or is_last or self._failed_saves >= DISK_FAILURES:
                raise
            say(self.run, warning_line(error.code, str(error)))

    def _thin(self) -> None:
        best = {step for _, step in self.position.best}
        thin(self.run, best | set(steps(self.run)[-self.options.average :]))

    def _resume(self) -> None:
        # The first one looks, and sets damaged checkpoints aside; then all find the same.
        found = newest_valid(self.run, warn=lambda text: say(self.run, text)) if self.team.leads else None
        self.team.gather(0)
        if not self.team.leads:
            found = newest_valid(self.run, warn=lambda _: None)
        if found:
            load_weights(self.model, found.folder)
            load_optimizer(self.optimizer, self.model, found.optimizer())
            self._take_position(found.state)
        elif self.settings.init_from:
            self._start_from(Path(self.settings.init_from))
        if self.team.leads:
            self.log.forget_after(self.position.step)
            self.bad_batches.forget_after(self.position.step)
            if found:
                self._thin()  # a kill may have come between the save and this
                say(self.run, f"going on after step {self.position.step:,} of {self.plan.steps:,}")

    def _take_position(self, state: dict[str, Any]) -> None:
        best = [(loss, step) for loss, step in state["best"]]
        here = Position(**{name: state[name] for name in asdict(self.position)} | {"best": best})
        here.micro_tokens = min(here.micro_tokens, self.options.micro_tokens)
        if self.plan.steps > here.planned:  # more was asked for since
            here.stopped_early, here.worse = False, 0
        self.position = here

    def _start_from(self, path: Path) -> None:
        model, _, folder = load_model(path)
        try:
            self.model.load_state_dict(model.state_dict())
        except RuntimeError as error:
            message = f"the model in {folder} has other sizes than the options say; leave [model] and preset out"
            raise UserError("INIT_FROM", message, USAGE) from error


def _shown(text: str) -> str:
    """Text of the corpus on one line of a terminal, without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)[:200]
