"""Where a run is, and how it says that it was told to stop there."""

from dataclasses import dataclass, field

from clearhead.errors import UserError


@dataclass
class Position:
    """Where a run is: what state.json holds besides the weights and the optimizer."""

    step: int = 0  # updates done
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    best: list[tuple[float, int]] = field(default_factory=list)  # (validation loss, step), best first
    worse: int = 0  # validations since the best one
    bad: list[int] = field(default_factory=list)  # the steps among the last 1,000 that were skipped
    in_a_row: int = 0  # of them
    micro_tokens: int = 0
    level: float = 0.0  # running mean of the loss and of its square's deviation, to notice explosions
    spread: float = 0.0
    stopped_early: bool = False
    planned: int = 0  # the steps that were asked for at that time


class Stopped(UserError):  # noqa: N818 (it is no error)
    """The run was told to stop; its state is saved."""

    def __init__(self, exit_code: int, step: int) -> None:
        kept = f"saved step {step}" if step else "nothing was trained yet"
        super().__init__("STOPPED", f"stopped by a signal; {kept}. Next: the same command goes on", exit_code)
