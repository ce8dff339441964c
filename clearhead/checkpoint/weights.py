"""Named tensors to safetensors and back; a tensor that has two names (tied embeddings) is stored under its first.

We write the format ourselves, a length, a JSON header and the tensors' memory, because that needs no copy of the
tensors and hashes them on their way; the safetensors library reads it, and checks every offset.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from clearhead.errors import DAMAGED, MISSING, UserError

from .manifest import MANIFEST, damaged, verify

WEIGHTS = "model.safetensors"
HEADER_LIMIT = 1 << 23  # bytes; 60,000 tensors
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

Header = dict[str, tuple[str, tuple[int, ...]]]  # each tensor's type and shape


class NonFinite(ValueError):  # noqa: N818 (the name says what is wrong)
    """A parameter is infinite or not a number, so nothing was saved."""


def to_safetensors(tensors: Mapping[str, Tensor]) -> list[bytes | memoryview]:
    """A file's parts: for tensors in the CPU's memory that memory itself, so write it before the next update."""
    tensors = dict(sorted(once(tensors).items(), key=lambda item: (-item[1].element_size(), item[0])))  # aligned
    header, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        parts.append(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)), text, *parts]


def read_header(path: Path) -> Header:
    """The types and shapes that a file claims and, as the library has checked, really holds. Reads no tensor."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
        if len(start) == 8 and struct.unpack("<Q", start)[0] > HEADER_LIMIT:
            raise damaged(path, f"its header is longer than {HEADER_LIMIT} bytes")
        with safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (one.get_dtype(), tuple(one.get_shape())) for name, one in slices.items()}
    except FileNotFoundError as error:
        raise UserError("MISSING", f"{path} does not exist", MISSING) from error
    except SafetensorError as error:
        raise damaged(path, f"it is no safetensors file ({error})") from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, mapped from it and not yet read: copy what is to be kept."""
    unknown = {name: kind for name, (kind, _) in read_header(path).items() if kind not in TYPES.values()}
    if unknown:
        raise damaged(path, f"tensor types {unknown}; expected {', '.join(TYPES.values())}")
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def first_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """For each name the first name of the same memory."""
    first: dict[object, str] = {}
    return {name: first.setdefault(_memory(tensor), name) for name, tensor in tensors.items()}


def once(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each memory under its first name only."""
    first = first_names(tensors)
    return {name: tensor for name, tensor in tensors.items() if first[name] == name}


def header_of(model: nn.Module) -> Header:
    """What a file of this model's weights holds; the model may be on the meta device."""
    tensors = once(model.state_dict(keep_vars=True))
    return {name: (TYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in tensors.items()}


def require_same(path: Path, found: Header, expected: Header) -> None:
    """An error that names the first tensor in which a file differs from what its model needs."""
    for name in [*expected, *found]:
        if name not in found:
            raise damaged(path, f"it has no tensor {name}")
        if name not in expected:
            raise damaged(path, f"it has a tensor {name}, which this model does not have")
        if found[name] != expected[name]:
            (kind, shape), (expected_kind, expected_shape) = found[name], expected[name]
            raise damaged(path, f"{name} is {kind} {list(shape)}, expected {expected_kind} {list(expected_shape)}")


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """NonFinite names the first tensor that has an infinity or NaN in it."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            count = int(tensor.numel() - tensor.isfinite().sum())
            raise NonFinite(f"{name} has {count} numbers of {tensor.numel()} that are infinite or NaN")


def load_weights(model: nn.Module, path: Path) -> None:
    """Copy the weights in a file or folder into a model; names, types and shapes must be the model's own."""
    path = _weights_file(path)
    require_same(path, read_header(path), header_of(model))
    load_tensors(model, read_tensors(path))


def load_tensors(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors, shared ones given once, into a model."""
    first = first_names(model.state_dict(keep_vars=True))
    model.load_state_dict({name: tensors[stored] for name, stored in first.items()})


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights in several files or folders, summed in float64; of whole numbers the last one's."""
    if not paths:
        raise ValueError("no weights to average")
    files = [_weights_file(path) for path in paths]
    expected = read_header(files[0])
    sums: dict[str, Tensor] = {}
    for file in files:
        require_same(file, read_header(file), expected)
        for name, tensor in read_tensors(file).items():
            if not tensor.is_floating_point():
                sums[name] = tensor.clone()
            elif name in sums:
                sums[name] += tensor
            else:
                sums[name] = tensor.double()
    kinds = {name: kind for kind, name in TYPES.items()}
    return {
        name: (total / len(files)).to(kinds[expected[name][0]]) if total.is_floating_point() else total
        for name, total in sums.items()
    }


def _weights_file(path: Path) -> Path:
    """A folder's weights, after the folder was verified; or the file that was named."""
    if not path.exists():
        raise UserError("MISSING", f"{path} does not exist", MISSING)
    if not path.is_dir():
        return path
    if not (path / MANIFEST).exists():
        raise UserError("NOT_A_MODEL", f"{path} has no {MANIFEST}; expected a checkpoint or a model folder", DAMAGED)
    verify(path, [WEIGHTS])
    return path / WEIGHTS


def _memory(tensor: Tensor) -> object:
    if tensor.is_meta or not tensor.numel():
        return id(tensor)  # they have no address
    return tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
