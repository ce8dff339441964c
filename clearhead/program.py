"""How this program is called: for the commands that people are told to type."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """`clearhead` if a shell finds this very program by that name; else what it does find, ready to be pasted."""
    called = Path(sys.argv[0])
    is_module = called.name == "__main__.py"
    if not is_module and called.name != "clearhead":
        return "clearhead"  # from a notebook or a script: whoever types it has a shell of their own
    own = Path(sys.executable).with_name("clearhead") if is_module else called
    found = shutil.which("clearhead")
    if found and own.exists() and own.samefile(found):
        return "clearhead"
    if is_module:
        return f"{shlex.quote(_nearby(Path(sys.executable)))} -m clearhead"
    return shlex.quote(_nearby(called))


def to_type(*arguments: str) -> str:
    """What to type to have this program do that."""
    return " ".join([program(), *map(shlex.quote, arguments)])


def _nearby(path: Path) -> str:
    """Seen from this folder, if it is inside; a shell looks for a bare name elsewhere."""
    path, here = path.absolute(), Path.cwd()
    if not path.is_relative_to(here):
        return str(path)
    relative = str(path.relative_to(here))
    return relative if os.sep in relative else f".{os.sep}{relative}"
