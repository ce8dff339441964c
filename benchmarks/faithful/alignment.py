"""Does `translate --json` give its alignment without torch?"""

import json
import os
import subprocess
import sys

from benchmarks.faithful.corpora import CORPORA
from benchmarks.faithful.measures import Asked, Found, Row, share

MODELS = ("ende", "enzh", "m30k")
LINES = 20
TELL = (
    "import sys; from clearhead.cli import main\ntry: main()\nfinally: print('torch' in sys.modules, file=sys.stderr)"
)


def measure(asked: Asked) -> Found:
    lines = [source for source, _ in CORPORA[asked.name].pairs()[:LINES]]
    done = subprocess.run(
        [sys.executable, "-P", "-c", TELL, "translate", str(asked.system.model), "--json"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(asked.system.tree)},
        check=False,
    )
    if done.returncode:
        return Found([Row("`translate --json`", done.stderr.strip().splitlines()[-2], False)])
    aligned = sum(bool(json.loads(line)["alignment"]) for line in done.stdout.splitlines())
    has_torch = done.stderr.split()[-1] == "True"
    return Found(
        [
            Row("lines of `--json` with an alignment (all)", share(aligned, len(lines)), aligned == len(lines)),
            Row("torch was imported for it (no)", "yes" if has_torch else "no", not has_torch),
        ]
    )
