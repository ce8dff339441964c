"""A trained model as a folder, to and from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.errors import USAGE, UserError
from clearhead.model import ModelOptions, RNNOptions, build
from clearhead.model.positions import Rule
from clearhead.model.rnn import RNN
from clearhead.model.transformer import Transformer

from .disk import Content
from .files import write_folder
from .manifest import MANIFEST, damaged, json_bytes, open_regular, verify
from .model_folder import CONFIG, find_model, make_config, model_options, read_config
from .weights import (
    WEIGHTS,
    Header,
    NonFinite,
    header_of,
    once,
    read_header,
    read_tensors,
    require_finite,
    require_same,
    to_safetensors,
)

Model = Transformer | RNN


def save_model(folder: Path, model: Model, config: Mapping[str, Any], extra_files: Mapping[str, bytes]) -> None:
    """Replace `folder` by this model. `config` has the other sections of config.json: data, decoding, tokenizer,
    about; `format` and `model` are written from the model itself."""
    tensors = model.state_dict()
    require_finite(tensors)
    own: dict[str, Content] = {WEIGHTS: to_safetensors(tensors), CONFIG: json_bytes(make_config(model.options, config))}
    if set(own) & set(extra_files):
        raise ValueError(f"{sorted(set(own) & set(extra_files))} are written by save_model itself")
    write_folder(folder, {**own, **extra_files}, "the model that was there before, if any", "model")


def load_model(path: Path, rule: Rule | None = None) -> tuple[Model, dict[str, Any], Path]:
    """The model, in eval mode, its config.json and its folder. `path` is a run folder or a model folder.

    A training run may replace the folder meanwhile: then it is read again, so that nothing comes from two models.
    """
    while True:
        folder = find_model(path)
        before = _stamp(folder)
        try:
            config = read_config(folder)
            model = _load(folder, model_options(config), rule)
        except UserError:
            if _stamp(find_model(path)) == before:
                raise
            continue
        if _stamp(folder) == before:
            return model, config, folder


def _stamp(folder: Path) -> bytes | None:
    """The manifest has the hash of every file, so its bytes stand for the folder."""
    try:
        with open_regular(folder / MANIFEST) as file:
            return file.read(1 << 20)
    except UserError:
        return None


def _load(folder: Path, options: ModelOptions, rule: Rule | None) -> Model:
    verify(folder, [WEIGHTS, CONFIG])
    path = folder / WEIGHTS
    header = read_header(path)
    model = _build_empty(folder, options, rule, header)
    require_same(path, header, header_of(model))
    tensors = read_tensors(path)
    try:
        require_finite(tensors)
    except NonFinite as error:
        raise damaged(path, str(error)) from error
    _fill(model, tensors)
    return model.eval()


def _build_empty(folder: Path, options: ModelOptions, rule: Rule | None, header: Header) -> Model:
    """On the meta device, which allocates nothing whatever the sizes are; only the number of blocks takes time."""
    blocks = options.layers if isinstance(options, RNNOptions) else options.encoder_blocks + options.decoder_blocks
    if blocks > len(header):
        raise damaged(folder / CONFIG, f"it has {blocks} blocks, but {WEIGHTS} only {len(header)} tensors")
    with torch.device("meta"), _Unfilled():
        try:
            return build(options, rule)
        except ValueError as error:  # positions = "own" and a rule go together
            raise UserError("POSITIONS", f"{folder}: {error}", USAGE) from error


class _Unfilled(TorchFunctionMode):
    """Leaves out the random initial weights: on the meta device they would cost an import of two seconds."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put copies of the tensors in the place of meta ones; what was one parameter stays one."""
    stored = once(model.state_dict(keep_vars=True))
    new = {id(old): tensors[name].clone() for name, old in stored.items()}
    parameters = {id(old): nn.Parameter(new[id(old)]) for old in stored.values() if isinstance(old, nn.Parameter)}
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, parameters[id(parameter)])
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, new[id(buffer)])
