"""Clearhead: the encoder-decoder Transformer of "Attention Is All You Need" as software that people use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.model.rnn import RNN
    from clearhead.model.transformer import Transformer

__version__ = "0.1.0"
__all__ = ["RNN", "Transformer", "__version__"]

# Resolved on first use (PEP 562), so that `import clearhead` and `clearhead --help` do not load torch.
_HOME = {"Transformer": "clearhead.model.transformer", "RNN": "clearhead.model.rnn"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'clearhead' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
