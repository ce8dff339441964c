"""`clearhead lab`: list the experiments, run some, or run all."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from clearhead.errors import USAGE, UserError

from .catalogue import EXPERIMENTS, find
from .report import prepare_folder, write_index, write_result
from .running import run_experiments
from .terminal import show_list, show_result


def run_lab(action: str, names: Sequence[str], out: Path, command: str) -> None:
    """Do what was asked; results go to the terminal and into `out`."""
    console = Console()
    if action not in ("list", "run", "all"):
        raise UserError("USAGE", f"clearhead lab {action!r}; expected list, run NAME ... or all", USAGE)
    if action == "run" and not names:
        raise UserError(
            "USAGE", "lab run has no names; give some that 'clearhead lab list' shows, or use lab all", USAGE
        )
    if action != "run" and names:
        raise UserError("USAGE", f"lab {action} takes no names, but got {names[0]!r}; use lab run {names[0]}", USAGE)
    if action == "list":
        show_list(list(EXPERIMENTS.values()), console)
        return
    experiments = find(names) if action == "run" else list(EXPERIMENTS.values())
    prepare_folder(out)
    said: dict[str, None] = {}  # each line once
    results = {}
    for result in run_experiments(experiments):
        results[result.experiment.name] = result
        said |= dict.fromkeys(write_result(result, out, command))
    in_order = [results[experiment.name] for experiment in experiments]
    if len(in_order) > 1:
        write_index(in_order, out, command)
    for result in in_order:
        show_result(result, console)
    for line in [*said, f"In {out}: a page, a plot and all numbers of each"]:
        Console(stderr=True).print(line, highlight=False, markup=False)
