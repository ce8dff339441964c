"""RUN/checkpoints/step-00000060/{model.safetensors optimizer.safetensors state.json MANIFEST.json}.

One process writes, the one that holds the run's lock. A checkpoint without optimizer.safetensors in its manifest
has weights only: complete and valid, but nothing to resume from.
"""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from clearhead.errors import DAMAGED, DISK, UserError, warning_line

from .disk import Content
from .files import clean, drop_file, remove_folder, write_folder
from .manifest import FORMAT, damaged, json_bytes, parse_json, read_file, require_format, verify
from .weights import WEIGHTS, read_header, read_tensors, require_finite, to_safetensors

CHECKPOINTS = "checkpoints"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint; `weights.load_weights(model, folder)` loads its weights."""

    step: int
    folder: Path
    state: dict[str, Any]  # what was saved, and `format` and `step`
    has_optimizer: bool

    def optimizer(self) -> dict[str, Tensor]:
        """What was given as `optimizer_tensors`; mapped from the file."""
        return read_tensors(self.folder / OPTIMIZER)


def checkpoint_folder(run: Path, step: int) -> Path:
    return run / CHECKPOINTS / f"step-{step:08}"


def steps(run: Path) -> list[int]:
    """The steps of which there is a checkpoint, valid or not, oldest first."""
    return sorted(int(found[1]) for found in _matches(run, r"step-(\d{8,})"))


def save_checkpoint(
    run: Path,
    step: int,
    model_tensors: Mapping[str, Tensor],
    optimizer_tensors: Mapping[str, Tensor],
    state: Mapping[str, Any],
) -> Path:
    """The new checkpoint's folder. NonFinite or a UserError (the disk): nothing was saved, all before is kept."""
    require_finite(model_tensors)
    older = [one for one in steps(run) if one != step]
    files: dict[str, Content] = {
        WEIGHTS: to_safetensors(model_tensors),
        OPTIMIZER: to_safetensors(optimizer_tensors),
        STATE: json_bytes({**state, "format": FORMAT, "step": step}),
    }
    folder = checkpoint_folder(run, step)
    write_folder(folder, files, f"step {older[-1]}" if older else "nothing, this is the first checkpoint", "ckpt")
    return folder


def newest_valid(run: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that can be resumed from, None if there never was one.

    Damaged ones on the way are renamed `step-….corrupt`, each with a warning line; one of a newer format is an
    error, since to go on from an older one would throw good work away.
    """
    for step in reversed(steps(run)):
        folder = checkpoint_folder(run, step)
        try:
            checkpoint = _read(folder, step)
            if checkpoint.has_optimizer:
                return checkpoint
        except UserError as error:
            if error.exit_code == DISK or error.code == "FORMAT":
                raise
            aside = _set_aside(folder)
            warn(warning_line("CKPT_CORRUPT", f"{error}. Renamed {aside.name}; going back to the one before"))
    corrupt = sorted(found[0] for found in _matches(run, r"step-\d{8,}\.corrupt.*"))
    if steps(run) or corrupt:
        message = (
            f"{run / CHECKPOINTS} has no checkpoint to resume from: damaged {', '.join(corrupt) or 'none'}, weights "
            f"only of steps {', '.join(map(str, steps(run))) or 'none'}; give another --out, or remove the folder"
        )
        raise UserError("NO_VALID_CHECKPOINT", message, DAMAGED)
    return None


def thin(run: Path, keep: AbstractSet[int], keep_optimizer: int = 2) -> None:
    """Keep the newest `keep_optimizer` checkpoints whole, of the older ones only the weights of steps in `keep`."""
    for step in steps(run)[: -keep_optimizer or None]:
        folder = checkpoint_folder(run, step)
        if step not in keep:
            remove_folder(folder)
            continue
        try:
            drop_file(folder, OPTIMIZER)
        except UserError as error:
            if error.exit_code != DAMAGED:
                raise  # a damaged one is found, and reported, by whoever reads it


def clean_run(run: Path) -> None:
    """Remove what killed writers left anywhere in the run; call it with the lock held, before all else."""
    clean(run)
    clean(run / CHECKPOINTS)
    for step in steps(run):
        clean(checkpoint_folder(run, step))


def _matches(run: Path, pattern: str) -> list[re.Match[str]]:
    folder = run / CHECKPOINTS
    names = (
        [path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()] if folder.is_dir() else []
    )
    return [found for name in names if (found := re.fullmatch(pattern, name))]


def _read(folder: Path, step: int) -> Checkpoint:
    entries = verify(folder, [WEIGHTS, STATE])
    state = parse_json(folder / STATE, read_file(folder, STATE))
    require_format(folder / STATE, state)
    if state.get("step") != step:
        raise damaged(folder / STATE, f"it is of step {state.get('step')}, expected {step}")
    for name in entries.keys() & {WEIGHTS, OPTIMIZER}:
        read_header(folder / name)
    return Checkpoint(step, folder, state, OPTIMIZER in entries)


def _set_aside(folder: Path) -> Path:
    aside = folder.with_name(f"{folder.name}.corrupt")
    count = 2
    while aside.exists():
        aside = folder.with_name(f"{folder.name}.corrupt-{count}")
        count += 1
    return folder.rename(aside)
