"""Clearhead: the encoder-decoder Transformer of "Attention Is All You Need" as software that people use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.model.rnn import RNN
    from clearhead.model.transformer import Transformer
    from clearhead.training.run import train
    from clearhead.translator import Translator, load

__version__ = "0.1.0"
__all__ = ["RNN", "Transformer", "Translator", "__version__", "load", "train"]

# Resolved on first use (PEP 562), so that `import clearhead` and `clearhead --help` do not load torch.
_HOME = {
    "RNN": "clearhead.model.rnn",
    "Transformer": "clearhead.model.transformer",
    "Translator": "clearhead.translator",
    "load": "clearhead.translator",
    "train": "clearhead.training.run",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'clearhead' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
