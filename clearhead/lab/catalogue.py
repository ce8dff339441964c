"""All experiments, in the order in which the page tells them."""

from collections.abc import Sequence

from clearhead.errors import USAGE, UserError
from clearhead.options import nearest

from . import depth, norms, positions, scaling, sharing
from .experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        scaling.SATURATION,
        positions.PERMUTATION,
        positions.ORDER,
        positions.ROTATION,
        positions.LONGER,
        sharing.ALONE,
        sharing.PRODUCT,
        depth.GRADIENTS,
        depth.TRAINED_STACK,
        depth.RANK,
        depth.WHY_SIX,
        norms.NEIGHBOURS,
        norms.NORM_ORDERS,
    )
}


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once."""
    for name in names:
        if name not in EXPERIMENTS:
            hint = nearest(name, EXPERIMENTS)
            raise UserError("NO_EXPERIMENT", f"there is no experiment {name!r}{hint}. See 'clearhead lab list'", USAGE)
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]
