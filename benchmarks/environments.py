"""The peers' own virtual environments, `.bench/NAME`, of the versions in `benchmarks/peers/NAME.txt`."""

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers import PeerError

ROOT = Path(__file__).parents[1]
BENCH = ROOT / ".bench"
PINS = ROOT / "benchmarks" / "peers"


def python_of(name: str, bench: Path = BENCH, pins: Path = PINS) -> Path:
    """The interpreter of a peer's environment, which is made the first time and when its versions change.

    One that cannot be installed stays known with its error, until its folder is deleted.
    """
    folder, wanted = bench / name, (pins / f"{name}.txt").read_text(encoding="utf-8")
    python, installed, failed = folder / "bin" / "python", folder / "installed.txt", folder / "failed.txt"
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return python
    if not (failed.exists() and failed.read_text(encoding="utf-8").startswith(wanted)):
        print(f"installing {name} into {folder}", file=sys.stderr, flush=True)
        error = _install(folder, pins / f"{name}.txt")
        if error is None:
            installed.write_text(wanted, encoding="utf-8")
            return python
        failed.write_text(wanted + error, encoding="utf-8")
    raise PeerError(f"cannot be installed: {failed.read_text(encoding='utf-8').removeprefix(wanted)}")


def _install(folder: Path, requirements: Path) -> str | None:
    """What pip had to say, if it failed."""
    venv.create(folder, with_pip=True, clear=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(requirements)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return None
    errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or ran.stderr.splitlines() or [f"pip ended with {ran.returncode}"])[-1]


def pinned(name: str, package: str, pins: Path = PINS) -> str:
    """The version of a package in a peer's environment."""
    lines = (pins / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))
