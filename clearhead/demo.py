"""The demo: dates from English to Chinese, trained on the spot, and tried on days the model has never seen."""

import shlex
import sys
from pathlib import Path

from clearhead.config import Flags, make_request
from clearhead.data import dates
from clearhead.program import program
from clearhead.training.run import train

SEEN = "March 4, 2026"  # what is shown first, and looked into
SHOWN = 10
TRIED = 20  # every so-manieth of the held-out pairs


def run_demo(out: Path) -> int:
    """Train on the built-in corpus in `out`, then show translations and what to type next."""
    files = write_corpus(out / "corpus")
    flags = Flags(files[:2], files[2:], command=f"clearhead demo --out {out}")
    code = train(make_request("dates", flags), out)
    if code:
        return code
    from clearhead.translator import load

    translator = load(out)
    pairs = dates.held_out_pairs()[::TRIED]
    first = [pair for pair in dates.held_out_pairs() if pair[0] == SEEN]
    shown = (first + [pairs[i * len(pairs) // SHOWN] for i in range(SHOWN)])[:SHOWN]
    sources, references = [s for s, _ in pairs], [r for _, r in pairs]
    print("\nDays that were not in the training data, in no spelling:\n", file=sys.stderr)
    for (source, reference), ours in zip(shown, translator.translate([s for s, _ in shown]), strict=True):
        print(f"  {source:>28}  →  {ours}{'' if ours == reference else f'   (should be {reference})'}")
    right = sum(a == b for a, b in zip(translator.translate(sources), references, strict=True))
    print(f"\n{right:,} of {len(pairs):,} exactly right ({right / len(pairs):.1%})")
    report, quoted, clearhead = out / "report.html", shlex.quote(str(out)), program()
    translator.inspect(SEEN).save(report)
    print(
        f"""
In {out}:  model/ (what every command reads), checkpoints/, run.toml (all options), README.md (the model card),
log.jsonl and loss.svg (how it went), data_report.json (what was read), corpus/ (the dates)

Next, to be pasted as it is:

  {clearhead} inspect {quoted} '{SEEN}'   # why 年 comes before 月: where each head looked, word by word
  open {shlex.quote(str(report))}   # the same in a page: every layer, head and number
  echo 'Wednesday, March 4, 2026' | {clearhead} translate {quoted}
  {clearhead} train --train your.en your.zh --out my-run   # with two files of yours""",
        file=sys.stderr,
    )
    return 0


def write_corpus(folder: Path) -> list[Path]:
    """Training and validation files: train.en, train.zh, valid.en, valid.zh."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, pairs in (("train", dates.training_pairs()), ("valid", dates.held_out_pairs()[::TRIED])):
        for side, language in enumerate(("en", "zh")):
            path = folder / f"{name}.{language}"
            path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
            written.append(path)
    return written
