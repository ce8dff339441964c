"""What README and docs/ are tested with: their code blocks, the files that they name, and training made small."""

import os
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Training commands of the page do what they say, only less of it.
SMALLER = [
    "model.width=8", "model.heads=2", "model.feed_forward=8", "model.encoder_blocks=1", "model.decoder_blocks=1",
    "training.steps=2", "training.validate_every=2", "training.save_every=2", "training.decode_pairs=2",
    "training.precision=float32", "training.processes=1", "training.threads=1",
]  # fmt: skip
NOUNS = {"dog": "Hund", "man": "Mann", "bird": "Vogel", "king": "König", "fish": "Fisch"}
VERBS = {"runs": "läuft", "sleeps": "schläft", "sings": "singt", "eats": "isst", "waits": "wartet"}
PLACES = {"": "", " here": " hier", " there": " dort", " at home": " zu Hause", " in town": " in der Stadt"}


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell_lines(page: str) -> list[str]:
    """Commands without their comments."""
    lines = (line.split("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines())
    return [line for line in lines if line]


def clearhead_commands(page: str) -> list[str]:
    return [line for line in shell_lines(page) if re.search(r"(^|\| )clearhead ", line)]


def write_files(folder: Path) -> None:
    """The files that the page names."""
    pairs = [
        (f"A {noun} {verb}{place}.", f"Ein {NOUNS[noun]} {VERBS[verb]}{PLACES[place]}.")
        for noun in NOUNS
        for verb in VERBS
        for place in PLACES
    ]
    for name in ("train", "valid", "test"):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    (folder / "text.txt").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")


def write_more_files(folder: Path) -> None:
    """What the pages of docs/ name besides."""
    read = {name: (folder / name).read_text(encoding="utf-8") for name in ("train.en", "train.de")}
    lines = list(zip(read["train.en"].splitlines(), read["train.de"].splitlines(), strict=True))
    files = {
        "domain.en": read["train.en"],
        "domain.de": read["train.de"],
        "mono.de": "".join(f"{target}\n" for _, target in lines[::7]),
        "pairs.tsv": "".join(f"{source}\t{target}\n" for source, target in lines),
        "words.txt": "".join(f"{' '.join(source.replace(' ', ''))}\n" for source, _ in lines),
        "sounds.txt": "".join(f"{' '.join(target.replace(' ', '').upper())}\n" for _, target in lines),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "CLEARHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own}


def smaller(command: str) -> str:
    """A training command with the settings of a model that learns nothing, fast."""
    if not command.startswith("clearhead train"):
        return command
    sets = [one for one in SMALLER if "encoder_blocks" not in one or "stdlib" not in command]  # it has no encoder
    if "--preset rnn" in command:
        sets = [one for one in sets if not one.startswith("model.") or "width" in one]
    return shlex.join([*shlex.split(command), *(part for one in sets for part in ("--set", one))])
