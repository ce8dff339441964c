"""The optimizer's state and the random generator as named tensors, bit for bit: `exp_avg.<parameter>`, `rng.cpu`.

Learning rate and betas are not stored: they are options, and the schedule sets the rate at every update. Names
that begin with `rng.` are the random generator's, of this process or of others, as the caller likes.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from clearhead.errors import DAMAGED, UserError

RANDOM = "rng."
KINDS = {"step", "exp_avg", "exp_avg_sq"}, {"momentum"}  # what Adam and what Muon remember of a parameter
NUMBERS = ("step",)  # one number per parameter; the other kinds have the parameter's shape


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """All that it remembers of each parameter (KINDS); the tensors themselves, not copies."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{kind}.{names[parameter]}": tensor
        for parameter, state in optimizer.state.items()
        for kind, tensor in state.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave, into an optimizer of a model with the same parameters."""
    parameters = dict(model.named_parameters())
    found: dict[str, dict[str, Tensor]] = {}
    for full_name, tensor in tensors.items():
        if full_name.startswith(RANDOM):
            continue
        kind, _, name = full_name.partition(".")
        if name not in parameters:
            raise _unfit(f"it has {full_name}, but the model has no parameter {name!r}")
        expected = torch.Size() if kind in NUMBERS else parameters[name].shape
        if tensor.shape != expected or tensor.dtype != torch.float32:
            raise _unfit(f"{full_name} is {tensor.dtype} {list(tensor.shape)}, expected float32 {list(expected)}")
        found.setdefault(name, {})[kind] = tensor.clone()
    for name, kinds in found.items():
        if set(kinds) not in KINDS:
            raise _unfit(f"{name} has {', '.join(sorted(kinds))}, expected step, exp_avg and exp_avg_sq, or momentum")
    names = {parameter: name for name, parameter in parameters.items()}
    order = [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
    state = {index: found[name] for index, name in enumerate(order) if name in found}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def rng_tensors() -> dict[str, Tensor]:
    """The state of torch's generator on the CPU."""
    return {f"{RANDOM}cpu": torch.get_rng_state()}


def load_rng(tensors: Mapping[str, Tensor]) -> None:
    """Let torch's generator on the CPU go on from where `rng_tensors` found it."""
    state = tensors.get(f"{RANDOM}cpu")
    if state is None:
        raise _unfit(f"it has no {RANDOM}cpu")
    try:
        torch.set_rng_state(state.clone())
    except (RuntimeError, TypeError) as error:
        raise _unfit(f"{RANDOM}cpu is no state of torch's generator") from error


def _unfit(found: str) -> UserError:
    return UserError("DAMAGED", f"the optimizer's state does not fit: {found}; start a new run", DAMAGED)
