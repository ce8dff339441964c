"""A run whose whole state at step n is the number n, so that a mix of two steps shows."""

from collections.abc import Iterable
from pathlib import Path

import torch

from clearhead.checkpoint.model import save_model
from clearhead.checkpoint.run import Checkpoint, clean_run, newest_valid, save_checkpoint, steps, thin
from clearhead.checkpoint.weights import load_weights
from clearhead.model import TransformerOptions, build
from clearhead.model.rnn import RNN
from clearhead.model.transformer import Transformer

SMALL = TransformerOptions(
    source_vocabulary=11, target_vocabulary=11, width=6, heads=3, feed_forward=5, encoder_blocks=1, decoder_blocks=1
)
STEPS = (20, 40, 60)


def make(step: int) -> Transformer | RNN:
    model = build(SMALL)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(step)
    return model


def save(run: Path, step: int) -> None:
    weights = make(step).state_dict()
    moments = {f"exp_avg.{name}": tensor.clone() for name, tensor in weights.items()}
    save_checkpoint(run, step, weights, moments, {"value": step})


def save_all(run: Path, which: Iterable[int] = STEPS) -> None:
    """What a training run does with its folder; the marks are links, since kills are at other system calls."""
    clean_run(run)
    for step in which:
        save(run, step)
        (run / f"saved-{step}").symlink_to("nothing")
        thin(run, keep=set(steps(run)) - {STEPS[0]})
        save_model(run / "model", make(step), {"about": {"step": step}}, {"words.txt": str(step).encode()})


def value_of(checkpoint: Checkpoint) -> int:
    """The one number that everything in it is."""
    model = build(SMALL)
    load_weights(model, checkpoint.folder)
    tensors = [*model.state_dict().values(), *checkpoint.optimizer().values()]
    (value,) = {int(one) for tensor in tensors for one in tensor.unique()} | {checkpoint.state["value"]}
    assert value == checkpoint.step
    return value


def newest(run: Path) -> Checkpoint:
    """For tests in which nothing is damaged."""

    def fail(line: str) -> None:
        raise AssertionError(line)

    checkpoint = newest_valid(run, fail)
    assert checkpoint is not None
    return checkpoint
