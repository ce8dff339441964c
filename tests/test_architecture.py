"""Imports only ever point down the list of layers; that is the whole architecture."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "clearhead"
FILES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

LAYERS = [
    "errors options failpoint program progress versions",
    "data figures model",
    "decoding",
    "checkpoint",
    "convert",
    "engines",
    "inspection",
    "translator",
    "evaluation exchange",
    "training",
    "config",
    "serve lab demo on_ray",
    "cli",
    "__init__ __main__",
]
LEVEL = {name: i for i, names in enumerate(LAYERS) for name in names.split()}


@cache
def names_used(path: str, source: str) -> list[str]:
    """The full names of all that a file imports, and of all that it reaches through an imported name by dots."""
    tree = ast.parse(source)
    folder = ["clearhead", *Path(path).parts[:-1]]
    used, meant = [], {}  # the latter by a name in this file
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                used.append(alias.name)
                top = alias.name.split(".")[0]
                meant[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            start = folder[: len(folder) + 1 - node.level] if node.level else []
            for alias in node.names:
                name = ".".join([*start, *([node.module] if node.module else []), alias.name])
                used.append(name)
                meant[alias.asname or alias.name] = name
    for node in ast.walk(tree):
        first, *others = dotted(node)
        if others and first in meant:
            used.append(".".join([meant[first], *others]))
    return used


def dotted(node: ast.AST) -> list[str]:
    """a.b.c in its parts; anything else is one part without a name."""
    if isinstance(node, ast.Attribute):
        return [*dotted(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]


def layer_of(path: str) -> str:
    return Path(path).parts[0].removesuffix(".py")


def wrong_imports(path: str, source: str) -> list[str]:
    """What a file, named as seen from clearhead/, uses of layers that are not below it."""
    here = layer_of(path)
    wrong = []
    used = [name.split(".") for name in names_used(path, source)]
    for there in dict.fromkeys(parts[1] for parts in used if parts[0] == "clearhead" and len(parts) > 1):
        if there not in LEVEL and there != "__version__":
            wrong.append(f"{path} imports {there}, which LAYERS does not have; if it is no module, name its module")
        elif there in LEVEL and there != here and LEVEL[there] >= LEVEL[here]:
            wrong.append(f"{path} must not import {there}, which is not below {here}")
    return wrong


def uses(path: str, source: str, *forbidden: str) -> bool:
    """Whether a file uses one of these modules or functions."""
    return any(f"{name}.".startswith(f"{one}.") for name in names_used(path, source) for one in forbidden)


def test_every_file_has_its_place() -> None:
    unplaced = {layer_of(path) for path in FILES} - LEVEL.keys()
    assert not unplaced, f"put {', '.join(sorted(unplaced))} into LAYERS"


def test_imports_point_down() -> None:
    assert [
        line for path, source in FILES.items() if layer_of(path) in LEVEL for line in wrong_imports(path, source)
    ] == []


@pytest.mark.parametrize(
    ("path", "source", "there"),
    [
        ("model/rnn.py", "import clearhead.data", "data"),
        ("model/rnn.py", "import clearhead.training.loss as loss", "training"),
        ("model/rnn.py", "import os, clearhead.cli", "cli"),
        ("model/rnn.py", "from clearhead import data", "data"),
        ("model/rnn.py", "from clearhead import errors, data as d", "data"),
        ("model/rnn.py", "from clearhead.data.tokenizer import PAD", "data"),
        ("model/rnn.py", "from ..data.tokenizer import PAD", "data"),
        ("model/rnn.py", "from .. import data", "data"),
        ("model/__init__.py", "from ..data import tokenizer", "data"),
        ("inspection/page/files.py", "from ...training import loss", "training"),
        ("inspection/page/files.py", "from ... import serve", "serve"),
        ("translator.py", "from .training.loss import batch_loss", "training"),
        ("translator.py", "from . import cli", "cli"),
        ("decoding/beam.py", "def f():\n    from clearhead.engines import native", "engines"),
        ("decoding/beam.py", "import clearhead\nclearhead.training.loss.batch_loss()", "training"),
        ("decoding/beam.py", "if TYPE_CHECKING:\n    import clearhead.checkpoint", "checkpoint"),
        ("training/step.py", "from clearhead.demo import run_demo", "demo"),
        ("lab/norms.py", "from clearhead.serve import app", "serve"),
        ("cli.py", "from clearhead.__main__ import app", "__main__"),
    ],
)
def test_an_import_that_does_not_point_down_is_seen(path: str, source: str, there: str) -> None:
    (line,) = wrong_imports(path, source)
    assert line == f"{path} must not import {there}, which is not below {layer_of(path)}"


@pytest.mark.parametrize(
    "source", ["from clearhead import Transformer", "import clearhead.utils", "from ..magic import a"]
)
def test_an_import_of_unknown_place_is_seen(source: str) -> None:
    (line,) = wrong_imports("training/step.py", source)
    assert "which LAYERS does not have" in line


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("model/rnn.py", "import torch\nfrom torch import nn\nnn.data.cli(torch.training)"),
        ("model/rnn.py", "from .checks import check_ids\nfrom . import linear\nfrom clearhead.model import options"),
        ("model/rnn.py", "from clearhead.errors import UserError\nfrom .. import options\nimport clearhead.errors"),
        ("decoding/beam.py", "from clearhead.data.tokenizer import BOS\nfrom clearhead.model import Seq2Seq"),
        ("errors.py", "import clearhead\nprint(clearhead.__version__)\nfrom clearhead import __version__"),
        ("cli.py", "from clearhead.serve.app import run\nfrom clearhead import lab, demo, config"),
        ("__init__.py", "from clearhead.cli import app"),
    ],
)
def test_imports_that_point_down_are_left_alone(path: str, source: str) -> None:
    assert wrong_imports(path, source) == []


def test_nothing_is_pickled() -> None:
    assert [path for path, source in FILES.items() if uses(path, source, "pickle", "torch.load", "torch.save")] == []


def test_one_file_knows_about_other_processes() -> None:
    users = {path for path, source in FILES.items() if uses(path, source, "torch.distributed")}
    assert users <= {"training/distributed.py"}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "import torch as t\nt.load('x')",
        "from torch import load",
        "from torch import distributed as dist",
        "import torch.distributed.rpc",
        "import torch\ntorch.distributed.barrier()",
        "import torch\ndef f():\n    return torch.load('x', weights_only=True)['a'].b",
    ],
)
def test_what_is_forbidden_is_seen(source: str) -> None:
    assert uses("model/new.py", source, "pickle", "torch.load", "torch.distributed")
    assert not uses("model/new.py", source, "pick", "torch.lo", "torch.nn")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["clearhead", "clearhead.model", "clearhead.decoding"])
def test_torch_is_not_loaded_before_it_is_needed(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent)
