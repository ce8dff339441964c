"""All experiments, in the order in which the page tells them."""

from collections.abc import Sequence

from clearhead.errors import USAGE, UserError
from clearhead.options import nearest

from . import (
    alignment,
    cost,
    depth,
    heads,
    lecture,
    masks,
    norms,
    positions,
    recurrence,
    scaling,
    sharing,
    smoothing,
    symmetry,
)
from .experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        scaling.SATURATION,
        scaling.LEARNING,
        scaling.ROOT,
        symmetry.RING_TASK,
        sharing.PRODUCT,
        heads.PLACES,
        heads.OWN,
        heads.EQUAL,
        positions.PERMUTATION,
        positions.ORDER,
        positions.ROTATION,
        positions.LONGER,
        masks.CAUSAL,
        sharing.ALONE,
        depth.GRADIENTS,
        depth.TRAINED_STACK,
        depth.RANK,
        depth.WHY_SIX,
        norms.NEIGHBOURS,
        norms.NORM_ORDERS,
        lecture.DENSE,
        recurrence.REACHES,
        recurrence.RECALL,
        recurrence.SAME,
        cost.LENGTH_COST,
        cost.TOKEN_COST,
        alignment.ALIGNED,
        alignment.NEEDED,
        alignment.OCCLUDED,
        smoothing.SMOOTHING,
    )
}


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once."""
    for name in names:
        if name not in EXPERIMENTS:
            hint = nearest(name, EXPERIMENTS)
            raise UserError("NO_EXPERIMENT", f"there is no experiment {name!r}{hint} (see 'clearhead lab list')", USAGE)
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]
