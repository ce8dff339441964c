"""A run from beginning to end: prepare, plan, train, choose the weights, leave a model folder and its card.

`train` is called by the command line and from Python. Where several processes train, it starts them and watches; each
of them comes in through `main`, finds everything in the run folder, and only trains.
"""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import require_space
from clearhead.checkpoint.lock import lock
from clearhead.checkpoint.model import save_model
from clearhead.checkpoint.model_folder import find_model
from clearhead.checkpoint.run import checkpoint_folder, clean_run, newest_valid, steps
from clearhead.checkpoint.weights import average, load_tensors
from clearhead.data.prepare import Prepared, default_cache, open_prepared, prepare, tokenizer_files
from clearhead.errors import BAD_DATA, DISK, TERMINATED, USAGE, UserError, exit_code_of
from clearhead.model import build
from clearhead.progress import progress

from .distributed import Team, die_with_parent, is_member, join, launch
from .loop import Stopped, Trainer, pick_device, say
from .plan import Plan, make_plan, resolve, table_lines
from .report import Log, loss_curve, model_card
from .settings import Request, Settings, differences, from_toml, to_toml
from .validation import translate_validation, validation_loss

# Options that may change between the calls of one run: they do not change what a step computes.
MAY_CHANGE = {
    f"training.{name}" for name in ("steps", "minutes", "patience", "samples", "grace", "collective_timeout", "average")
}


def train(request: Request, out: Path) -> int:
    """Train, or go on with, the run in `out`; the exit code. UserError for what the user can fix."""
    if is_member():  # started by torchrun
        return _train_as_member(request, out)
    with _opened(out):
        settings, plan, prepared = _begin_or_go_on(request, out)
        if _is_finished(out, plan):
            say(out, f"already finished: {plan.steps:,} of {plan.steps:,} steps. More: --set training.steps=N")
            return 0
        if plan.processes > 1:
            code = launch(["clearhead.training.run", str(out)], plan.processes, out)
            if code:
                return code
        else:
            Trainer(out, settings, plan, prepared, Team()).train()
        _finish(out, settings, plan, prepared, request.command)
    return 0


def main(run: Path) -> int:
    """One of the processes that `train` started: everything is in the run folder already."""
    die_with_parent()
    settings, plan = read_run(run)
    with join(settings.training.collective_timeout) as team:
        Trainer(run, settings, plan, open_prepared(Path(plan.prepared)), team).train()
    return 0


def _train_as_member(request: Request, out: Path) -> int:
    with ExitStack() as stack:

        def begin() -> None:
            stack.enter_context(_opened(out))
            _begin_or_go_on(request, out)

        with join(request.training.collective_timeout, before=begin) as team:
            settings, plan = read_run(out)
            prepared = open_prepared(Path(plan.prepared))
            if not _is_finished(out, plan):
                Trainer(out, settings, plan, prepared, team).train()
                if team.leads:
                    _finish(out, settings, plan, prepared, request.command)
    return 0


def read_run(out: Path) -> tuple[Settings, Plan]:
    """What a run folder says about itself."""
    plan = Plan(**json.loads((out / "plan.json").read_text(encoding="utf-8")))
    return from_toml((out / "run.toml").read_text(encoding="utf-8")), plan


# -- beginning and going on -----------------------------------------------------------------------------------------


@contextmanager
def _opened(out: Path) -> Iterator[None]:
    """The run folder made, locked and cleaned; SIGTERM ends the work where there is no state to save yet."""
    _make_folder(out)

    def leave(*_: object) -> None:
        raise Stopped(TERMINATED, 0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with lock(out):
            clean_run(out)
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _begin_or_go_on(request: Request, out: Path) -> tuple[Settings, Plan, Prepared]:
    return (_go_on if (out / "plan.json").exists() else _begin)(request, out)


def _begin(request: Request, out: Path) -> tuple[Settings, Plan, Prepared]:
    if not request.train:
        raise UserError(
            "NO_DATA", f"{out} is a new run and needs --train SOURCE TARGET, two files of one sentence per line", USAGE
        )
    say(out, f"run folder  {out}")
    prepared = _prepare(request)
    for line in prepared.facts["report_lines"]:
        say(out, f"data        {line}")
    for line in table_lines(len(prepared)):
        say(out, line)
    settings, plan = _options_errors(lambda: make_plan(resolve(request, prepared), prepared))
    for line in plan.lines(settings):
        say(out, line)
    require_space(out, int(2.2 * 3 * 4 * plan.parameters))  # weights and Adam's two, and the checkpoint before
    report = {key: prepared.facts[key] for key in ("prints", "languages", "report", "valid_report")}
    _write(out / "data_report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _write(out / "run.toml", to_toml(settings, request.command))
    _write(out / "plan.json", json.dumps(asdict(plan), indent=1) + "\n")  # last: with it the run exists
    return settings, plan, prepared


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
    again = replace(request, train=[Path(f) for f in wanted.train], valid=[Path(f) for f in wanted.valid])
    prepared = _prepare(replace(again, data=settings.data, training=settings.training))
    if prepared.facts["prints"] != plan.prints:
        raise UserError(
            "OTHER_DATA",
            f"{out} was trained on other data: SHA-256 {plan.prints['train'][:12]}…, "
            f"now {prepared.facts['prints']['train'][:12]}…. "
            "Next: the old files, another --out, or --init-from to start from its model",
            BAD_DATA,
        )
    steps = wanted.training.steps or plan.steps
    if steps != plan.steps or wanted != settings:
        plan = replace(plan, steps=steps)
        _write(out / "run.toml", to_toml(wanted, request.command))
        _write(out / "plan.json", json.dumps(asdict(plan), indent=1) + "\n")
    return wanted, plan, prepared


def _as_asked_again(request: Request, old: Settings) -> Settings:
    """The old settings, overridden by whatever the user says this time."""

    def overridden(before: Any, asked: Any) -> Any:
        defaults = type(asked)()
        said = {k: v for k, v in asdict(asked).items() if v != asdict(defaults)[k]}
        return replace(before, **said)

    training = overridden(old.training, request.training)
    model = _options_errors(lambda: replace(old.model, **request.model))
    train_files = [str(f) for f in request.train] or old.train
    return replace(
        old,
        train=train_files,
        valid=[str(f) for f in request.valid] or old.valid,
        data=overridden(old.data, request.data),
        model=model,
        training=replace(training, minutes=old.training.minutes),
        decoding=overridden(old.decoding, request.decoding),
    )


def _prepare(request: Request) -> Prepared:
    with progress("preparing") as bar:
        return prepare(
            request.train,
            request.valid,
            request.data,
            request.training.seed,
            default_cache(),
            lambda what, done: bar.update(done, None, f"pairs, {what}"),
            find_model(request.init_from) if request.init_from else None,
        )


# -- the end --------------------------------------------------------------------------------------------------------


def _is_finished(out: Path, plan: Plan) -> bool:
    try:
        config = (find_model(out) / "config.json").read_text(encoding="utf-8")
    except UserError:
        return False
    return json.loads(config)["about"]["of_steps"] == plan.steps


def _finish(out: Path, settings: Settings, plan: Plan, prepared: Prepared, command: str) -> None:
    """The best checkpoint or the average of the last ones, whichever validates better, becomes the model."""
    device = pick_device()
    model = build(settings.model).to(device).eval()
    newest = newest_valid(out, warn=lambda text: say(out, text))
    assert newest is not None
    _, best_step = newest.state["best"][0]
    last = steps(out)[-settings.training.average :]
    candidates = {f"of step {best_step}": [best_step]}
    if len(last) > 1:
        candidates[f"the average of the last {len(last)} checkpoints"] = last
    losses = {}
    for name, some in candidates.items():
        load_tensors(model, average([checkpoint_folder(out, step) for step in some]))
        losses[name] = validation_loss(model, prepared, Team(), device)
    chosen = min(losses, key=lambda name: losses[name])
    load_tensors(model, average([checkpoint_folder(out, step) for step in candidates[chosen]]))
    pairs = max(settings.training.decode_pairs, 1)
    scores, samples = translate_validation(model, prepared, Team(), device, settings.decoding, pairs)
    card = model_card(settings, plan, command, chosen, losses[chosen], scores, samples)
    _write(out / "loss.svg", loss_curve(Log(out / "log.jsonl").events()))
    _write(out / "README.md", card)
    source, target = plan.languages
    config = {
        "data": asdict(replace(settings.data, source_language=source, target_language=target)),
        "decoding": asdict(settings.decoding),
        "about": {"of_steps": plan.steps, "weights": chosen, "valid_loss": losses[chosen], "bleu": scores.bleu},
    }
    files = {file.name: file.read_bytes() for file in tokenizer_files(Path(plan.prepared))}
    save_model(out / "model", model, config, files)
    say(out, f"done: {scores} on {len(samples)} validation pairs; the weights are {chosen}")
    say(out, f"model       {out / 'model'}   try: clearhead translate {out}")


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


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".tmp-{path.name}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def _options_errors(make: Any) -> Any:
    """ValueErrors of the options, shown as what they are: the user's to mend."""
    try:
        return make()
    except ValueError as error:
        raise UserError("OPTIONS", str(error), USAGE) from error


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: main(Path(sys.argv[1]))))
