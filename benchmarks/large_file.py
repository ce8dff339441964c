"""A large file through `clearhead translate`: killed at 60 %, resumed, compared with a run that was not.

python -m benchmarks.large_file MODEL TEXT [--lines 20000]
"""

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source, whole, again = (Path(scratch) / name for name in ("in", "whole", "again"))
        with arguments.text.open("rb") as text:
            source.write_bytes(b"".join(islice(text, arguments.lines)))
        started = time.perf_counter()
        subprocess.run(_command(arguments.model, source, whole), check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        size = whole.stat().st_size
        killed_at = _kill_at(_command(arguments.model, source, again), Path(f"{again}.partial"), 0.6 * size) / size
        subprocess.run([*_command(arguments.model, source, again), "--resume"], check=True, stderr=subprocess.DEVNULL)
        same = whole.read_bytes() == again.read_bytes()
    rate = arguments.lines / seconds
    print(f"{arguments.lines:,} lines in {seconds:.0f} s, {rate:,.0f}/s, at most {memory:,} MiB")
    print(f"killed at {killed_at:.0%} and resumed: {'the same bytes' if same else 'OTHER BYTES'}")
    sys.exit(not same)


def _command(model: Path, source: Path, output: Path) -> list[str]:
    return [sys.executable, "-m", "clearhead", "translate", str(model), str(source), "-o", str(output)]


def _kill_at(command: list[str], partial: Path, size: float) -> int:
    """The bytes that were written when it was killed."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not partial.exists() or partial.stat().st_size < size):
        time.sleep(0.05)
    written = partial.stat().st_size
    process.send_signal(signal.SIGKILL)
    process.wait()
    return written


if __name__ == "__main__":
    main()
