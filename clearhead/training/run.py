"""A run from beginning to end: prepare, plan, train, choose the weights, leave a model folder and its card.

`train` is called by the command line and from Python. Where several processes train, it starts them and watches; each
of them comes in through `main`, finds everything in the run folder, and only trains.
"""

import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import disk_errors, require_space
from clearhead.checkpoint.lock import lock
from clearhead.checkpoint.manifest import verify
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.checkpoint.run import checkpoint_folder, clean_run, newest_valid, steps
from clearhead.checkpoint.weights import average, load_tensors
from clearhead.data.folders import default_cache
from clearhead.data.languages import how_to_name, require_codes
from clearhead.data.prepare import Prepared, open_prepared, prepare
from clearhead.data.seen import seen_pairs
from clearhead.engines.choice import why_not_ct2
from clearhead.engines.ct2_form import ct2_form
from clearhead.errors import (
    BAD_DATA,
    DISK,
    INTERRUPTED,
    TERMINATED,
    USAGE,
    UserError,
    exit_code_of,
    warning_line,
)
from clearhead.model import SIZES, build
from clearhead.options import from_dict
from clearhead.program import to_type
from clearhead.progress import progress
from clearhead.translator.guards import has_letters, is_repetitive
from clearhead.translator.tasks import DOES

from .distributed import Team, die_with_parent, is_member, join, launch
from .loop import Trainer
from .plan import Plan, as_used, make_plan, table_lines
from .position import Stopped
from .product import write_model
from .report import Log, loss_curve, model_card, say, write_text
from .settings import Request, Settings, differences, from_toml, kind_of, to_toml
from .step import pick_device, threads_kept
from .validation import (
    Sample,
    calibrate,
    translate_validation,
    translated_at_the_end,
    translator_of,
    validation_loss,
)
from .vocabulary import target_words

# Options that may change between the calls of one run: they do not change what a step computes (micro_tokens only in
# the last digits, and whoever ran out of memory must be able to lower it).
NOT_THE_STEP = "steps minutes patience samples grace collective_timeout average keep_best decode_pairs save_every"
MAY_CHANGE = {f"training.{name}" for name in (*NOT_THE_STEP.split(), "micro_tokens", "tensorboard")} | {"data.example"}
LOOKED_AT, NATURAL = 1000, 0.01  # validation pairs; a share of repetitive targets above which they are no accident


def train(request: Request, out: Path) -> int:
    """Train, or go on with, the run in `out`; the exit code. UserError for what the user can fix."""
    if is_member():  # started by torchrun
        return _train_as_member(request, out)
    with _opened(out), threads_kept():
        settings, plan, prepared = _begin_or_go_on(request, out)
        if _is_finished(out, plan):
            return 0
        if plan.processes > 1:
            code = launch(["clearhead.training.run", str(out), str(os.getpid())], plan.processes, out)
            if code in (INTERRUPTED, TERMINATED):
                raise _stopped(code, out)
            if code:
                return code
        else:
            Trainer(out, settings, plan, prepared, Team()).train()
        _finish(out, settings, plan, prepared, request.command)
    return 0


def main(run: Path, parent: int) -> int:
    """One of the processes that `train` started: everything is in the run folder already."""
    die_with_parent(parent)
    settings, plan = read_run(run)
    with join(settings.training.collective_timeout) as team:
        try:
            Trainer(run, settings, plan, open_prepared(Path(plan.prepared)), team).train()
        except Stopped as stopped:
            return stopped.exit_code  # our parent says it, once
    return 0


def _train_as_member(request: Request, out: Path) -> int:
    die_with_parent(os.getppid())
    with ExitStack() as stack:

        def begin() -> None:
            stack.enter_context(_opened(out))
            _begin_or_go_on(request if (out / "plan.json").exists() else _with_team(request), out)

        with join(request.training.collective_timeout, before=begin) as team:
            settings, plan = read_run(out)
            prepared = open_prepared(Path(plan.prepared))
            if not _is_finished(out, plan, says_so=team.leads):
                Trainer(out, settings, plan, prepared, team).train()
                if team.leads:
                    _finish(out, settings, plan, prepared, request.command)
    return 0


def _with_team(request: Request) -> Request:
    """As many processes as torchrun has started; the cores of this machine are shared by those on it."""
    training = request.training
    threads = training.threads or max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    return replace(request, training=replace(training, processes=int(os.environ["WORLD_SIZE"]), threads=threads))


def read_run(out: Path) -> tuple[Settings, Plan]:
    """What a run folder says about itself."""
    plan = Plan(**json.loads((out / "plan.json").read_text(encoding="utf-8")))
    return from_toml((out / "run.toml").read_text(encoding="utf-8")), plan


# -- beginning and going on -----------------------------------------------------------------------------------------


@contextmanager
def _opened(out: Path) -> Iterator[None]:
    """The run folder made, locked and cleaned; SIGTERM ends the work at once where there is no state to save.

    A start that fails leaves no folder where none was.
    """
    is_new = not out.exists()
    _make_folder(out)

    def leave(*_: object) -> None:
        raise _stopped(TERMINATED, out)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with lock(out):
            clean_run(out)
            try:
                yield
            except BaseException:
                if is_new and not (out / "plan.json").exists():
                    _remove_begun(out)
                raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _remove_begun(out: Path) -> None:
    """A run folder that holds no more than what was said while it began, under its lock."""
    if {path.name for path in out.iterdir()} <= {"lock", "run.log", "data_report.json", "run.toml"}:
        shutil.rmtree(out, ignore_errors=True)


def _begin_or_go_on(request: Request, out: Path) -> tuple[Settings, Plan, Prepared]:
    return (_go_on if (out / "plan.json").exists() else _begin)(request, out)


def _begin(request: Request, out: Path) -> tuple[Settings, Plan, Prepared]:
    if not request.train:
        raise UserError(
            "NO_DATA", f"{out} is a new run and needs --train SOURCE TARGET, two files of one sentence per line", USAGE
        )
    require_codes(request.data)
    started = time.perf_counter()
    say(out, f"run folder  {out}")
    if request.init_from:
        request = _like_its_model(request, find_model(request.init_from))
    prepared = _prepare(request)
    for line in prepared.facts["report_lines"]:
        say(out, f"data        {line}")
    unnamed = how_to_name(prepared.facts["languages"]) if request.data.task == "translate" else None
    if unnamed:
        say(out, f"note        {unnamed}")
    say(out, "planning    some steps are rehearsed, to see what they take here")
    settings, plan, row = _options_errors(lambda: make_plan(request, prepared, started))
    for line in [*table_lines(row, as_used(settings, plan, row)), *plan.lines(settings)]:
        say(out, line)
    require_space(out, int(2.2 * 3 * 4 * plan.parameters))  # weights and Adam's two, and the checkpoint before
    report = {key: prepared.facts[key] for key in ("prints", "languages", "report", "valid_report", "lines")}
    write_text(out / "data_report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "run.toml", to_toml(settings, request.command))
    write_text(out / "plan.json", json.dumps(asdict(plan), indent=1) + "\n")  # last: with it the run exists
    return settings, plan, prepared


def _like_its_model(request: Request, folder: Path) -> Request:
    """Sizes, vocabulary and tokenizer of the model to start from, unless options say otherwise."""
    config = read_config(folder)
    from_the_data = ("kind", "source_vocabulary", "target_vocabulary", "features")
    model = {k: v for k, v in config["model"].items() if k not in from_the_data}
    kind = config["model"]["kind"]
    preset = request.preset or next(name for name, size in SIZES.items() if kind_of(size) == kind)
    known = {key: config["data"][key] for key in ("tokenizer", "joint", "vocabulary")}
    data = _options_errors(lambda: replace(request.data, **known))
    return replace(request, preset=preset, model={**model, **request.model}, data=data)


def _go_on(request: Request, out: Path) -> tuple[Settings, Plan, Prepared]:
    settings, plan = read_run(out)
    wanted = _as_asked_again(request, settings)
    changed = differences(settings, wanted, MAY_CHANGE)
    if changed:
        raise UserError(
            "OTHER_OPTIONS",
            f"{out} holds a run with other options ({'; '.join(changed)}); expected the same ones to go on with it. "
            "Next: the old options, or another --out",
            USAGE,
        )
    prepared = _prepare(
        replace(
            request,
            train=[Path(file) for file in wanted.train],
            valid=[Path(file) for file in wanted.valid],
            data=settings.data,
            training=settings.training,
            init_from=Path(settings.init_from) if settings.init_from else None,
        )
    )
    if prepared.facts["prints"] != plan.prints:
        raise UserError(
            "OTHER_DATA",
            f"{out} was trained on other data: SHA-256 {plan.prints['train'][:12]}…, "
            f"now {prepared.facts['prints']['train'][:12]}…. "
            "Next: the old files, another --out, or --init-from to start from its model",
            BAD_DATA,
        )
    wanted_plan = replace(plan, steps=wanted.training.steps or plan.steps, prepared=prepared.facts["folder"])
    done = max(steps(out), default=0)
    if wanted_plan.steps < done:
        raise UserError(
            "FEWER_STEPS", f"{out} has done {done} steps; training.steps={wanted_plan.steps} asks for fewer", USAGE
        )
    if wanted_plan != plan or wanted != settings:
        write_text(out / "run.toml", to_toml(wanted, request.command))
        write_text(out / "plan.json", json.dumps(asdict(wanted_plan), indent=1) + "\n")
    return wanted, wanted_plan, prepared


def _as_asked_again(request: Request, old: Settings) -> Settings:
    """The old settings, overridden by whatever the user says this time."""

    def overridden(section: str, before: Any, asked: Any) -> Any:
        values, defaults = asdict(asked), asdict(type(asked)())
        if request.said is None:
            return replace(before, **{k: v for k, v in values.items() if v != defaults[k]})
        return replace(before, **{k: v for k, v in values.items() if f"{section}.{k}" in request.said})

    training = overridden("training", old.training, request.training)
    model = _options_errors(lambda: from_dict(type(old.model), {**asdict(old.model), **request.model}, "model"))
    return replace(
        old,
        preset=request.preset or old.preset,
        init_from=str(request.init_from or old.init_from),
        train=[str(f) for f in request.train] or old.train,
        valid=[str(f) for f in request.valid] or old.valid,
        data=overridden("data", old.data, request.data),
        model=model,
        training=replace(training, minutes=old.training.minutes),
        decoding=overridden("decoding", old.decoding, request.decoding),
    )


def _prepare(request: Request) -> Prepared:
    cache = default_cache()
    with progress("preparing") as bar, disk_errors(f"cannot prepare the data in {cache}", cache, None, "nothing"):
        return prepare(
            request.train,
            request.valid,
            request.data,
            request.training.seed,
            cache,
            lambda what, done: bar.update(done, None, f"pairs, {what}"),
            find_model(request.init_from) if request.init_from else None,
        )


# -- the end --------------------------------------------------------------------------------------------------------


def _is_finished(out: Path, plan: Plan, says_so: bool = True) -> bool:
    """Whether the model is that of all the steps; then nothing in the run is written, not even its log."""
    try:
        about = read_config(find_model(out))["about"]
    except UserError:
        return False
    is_finished = bool(about["of_steps"] == plan.steps)
    if is_finished and says_so:
        done = max(steps(out), default=plan.steps)
        text = f"already finished: {done:,} of {plan.steps:,} steps. More: --set training.steps=N"
        print(text, file=sys.stderr, flush=True)
    return is_finished


def _finish(out: Path, settings: Settings, plan: Plan, prepared: Prepared, command: str) -> None:
    """The best checkpoint or the average of the last ones, whichever validates better, becomes the model."""
    device = pick_device()
    model = build(settings.model).to(device).eval()
    candidates = _candidates(out, settings.training.average)
    losses = {}
    for name, some in candidates.items():
        load_tensors(model, average([checkpoint_folder(out, step) for step in some]))
        losses[name] = validation_loss(model, prepared, Team(), device)
    chosen = min(losses, key=lambda name: losses[name])
    load_tensors(model, average([checkpoint_folder(out, step) for step in candidates[chosen]]))
    pairs = translated_at_the_end(settings.training)
    say(out, f"finishing   translating {min(pairs, len(prepared.valid_source.ids)):,} validation pairs")
    said = target_words(prepared, settings).said(settings.model.target_vocabulary)
    scores, samples = translate_validation(model, prepared, Team(), device, settings.decoding, pairs, said)
    card = model_card(settings, plan, command, chosen, losses[chosen], scores, samples)
    write_text(out / "loss.svg", loss_curve(Log(out / "log.jsonl").events()))
    write_text(out / "README.md", card)
    about: dict[str, Any] = {"of_steps": plan.steps, "weights": chosen, "valid_loss": losses[chosen]}
    if prepared.has_source:
        about |= {name: value for name, value in scores.numbers().items() if name in ("bleu", "wer", "cer")}
    about["translates_digits"] = any(_puts_figures_into_words(sample) for sample in samples)
    about["repeats"] = repeats_itself(prepared)
    seen = seen_pairs(prepared.source.ids) if prepared.source.scale is None and prepared.has_source else None
    translate = translator_of(model, prepared, device, settings.decoding, said)
    write_model(out, settings, plan, model, about, calibrate(samples, prepared, seen, translate), seen)
    _write_ct2_form(out)
    found = str(scores) if prepared.has_source else f"perplexity {math.exp(losses[chosen]):.2f}"
    say(out, f"done: {found} on {len(samples)} validation pairs; the weights are {chosen}")
    say(out, f"model       {out / 'model'}   try: {to_type(DOES[settings.data.task][1], str(out))}")


def _write_ct2_form(out: Path) -> None:
    """The model in CTranslate2's format too, so that the first translation need not wait for it; or why not."""
    folder = find_model(out)
    reason = why_not_ct2(folder)
    if reason is None:
        try:
            ct2_form(folder)
        except UserError as error:
            reason = str(error)
    if reason:
        say(out, f"no fast form (ct2) was made: {reason}")


def repeats_itself(prepared: Prepared) -> bool:
    """Whether right targets look like running in circles, as orders to a robot do: then that is no sign of trouble."""
    sources, targets = prepared.valid_source.ids, prepared.valid_target.ids
    if not prepared.has_source or prepared.source.scale is not None:
        return False
    rows = range(min(len(targets), LOOKED_AT))
    found = sum(is_repetitive(sources[row].tolist(), targets[row].tolist()) for row in rows)
    return found > NATURAL * len(rows)


def _puts_figures_into_words(sample: Sample) -> bool:
    """Else figures alone are copied, and the model is not trusted with them."""
    return not has_letters(sample.source) and has_letters(sample.reference)


def _candidates(out: Path, last: int) -> dict[str, list[int]]:
    """What the weights of the model may be: the steps whose checkpoints are averaged, by name."""
    newest = newest_valid(out, warn=lambda text: say(out, text))
    assert newest is not None
    there = [step for step in steps(out) if _is_sound(out, step)]
    # The best one may be missing: the disk was full just then, or it was damaged.
    best = next((step for _, step in newest.state["best"] if step in there), newest.step)
    found = {f"of step {best}": [best]}
    if len(there[-last:]) > 1:
        found[f"the average of the last {len(there[-last:])} checkpoints"] = there[-last:]
    return found


def _is_sound(out: Path, step: int) -> bool:
    try:
        verify(checkpoint_folder(out, step))
    except UserError as error:
        say(out, warning_line("CKPT_CORRUPT", f"{error}. Going on without it"))
        return False
    return True


# -- small things ---------------------------------------------------------------------------------------------------


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError("NOT_A_FOLDER", f"{out} is a file; expected a folder for the run", DISK)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            "DISK", f"cannot make the run folder {out}: {error.strerror}. Name another --out", DISK
        ) from error
    require_space(out, 1)


def _stopped(code: int, out: Path) -> Stopped:
    return Stopped(code, max(steps(out), default=0))


def _options_errors(make: Any) -> Any:
    """ValueErrors of the options, shown as what they are: the user's to mend."""
    try:
        return make()
    except ValueError as error:
        raise UserError("OPTIONS", str(error), USAGE) from error


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: main(Path(sys.argv[1]), int(sys.argv[2]))))
