"""FAITHFUL.json -> FAITHFUL.md. A result is what one part found of one model with the code of one system."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.faithful.measures import EXAMPLES, Example, Found, Row

NOW, BEFORE = "now", "before"
PARTS = {
    "segments": "Texts of several sentences",
    "paragraphs": "Real paragraphs",
    "numbers": "Numbers",
    "addresses": "Addresses and emoji",
    "terms": "A glossary",
    "confidence": "Confidence",
    "plain": "Plain lines",
    "alignment": "An alignment without torch",
}
MODELS = {"ende": "Tatoeba en→de", "enzh": "Tatoeba en→zh", "m30k": "Multi30k en→de", "help": "LibreOffice help en→de"}


@dataclass(frozen=True)
class Result:
    """`rows` and `examples` as Found has them; the rest is what is needed to ask again."""

    part: str
    model: str
    system: str  # now, before
    command: str
    seed: int
    machine: dict[str, str]
    minutes: float
    rows: list[Row]
    examples: list[Example]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.part, self.model, self.system


def load(file: Path) -> list[Result]:
    if not file.exists():
        return []
    return [
        Result(
            **{
                **one,
                "rows": [Row(**row) for row in one["rows"]],
                "examples": [Example(**example) for example in one["examples"]],
            }
        )
        for one in json.loads(file.read_text(encoding="utf-8"))
    ]


def save(results: list[Result], folder: Path) -> None:
    in_order = sorted(results, key=lambda one: (list(PARTS).index(one.part), list(MODELS).index(one.model), one.system))
    text = json.dumps([asdict(one) for one in in_order], indent=1, ensure_ascii=False)
    (folder / "FAITHFUL.json").write_text(text + "\n", encoding="utf-8")
    (folder / "FAITHFUL.md").write_text(page(in_order), encoding="utf-8")


def add(result: Result, folder: Path) -> None:
    """In place of the last one of the same part, model and system."""
    others = [one for one in load(folder / "FAITHFUL.json") if one.key != result.key]
    save([*others, result], folder)


def result_of(found: Found, **about: object) -> Result:
    return Result(rows=found.rows, examples=found.examples[:EXAMPLES], **about)  # type: ignore[arg-type]


ABOUT = """# Is anything lost or changed in silence?

Written by `python -m benchmarks faithful` from [FAITHFUL.json](FAITHFUL.json). A small model may word things badly;
what it may not do is drop a sentence or change a number without saying so. The code is asked as a user would ask it,
and judged from outside: nothing of its own guards decides here what is right. In brackets is what must hold; ✓ and ✗
say whether it does; what has neither is only stated. The column `before` is the code of commit 3751b09."""

RULES = {
    "segments": """\
Texts of 2 to 10 test sentences each. A sentence counts as left out if under 30 % of the words (characters in
Chinese) of both its own translation and its reference are in the text's translation: the words of all sentences' own
translations, one after the other, are aligned in order with the words of the text's translation, each with one equal
word at most, none crossing, so that as many as possible are there and runs stay unbroken; so a word that another
sentence needs is not counted twice. Only `left_out` and `cut_off` count as a warning, and where they name parts, only
if a part has half of the sentence's words. The judge is judged by sentences dropped on purpose.""",
    "paragraphs": """\
The lines of help-en-de's test set with several sentences, as a user would give them, against each line as one
source of the engine.""",
    "numbers": """\
Numbers of 14 kinds, each in test sentences that have a place for one, and in wordings of the tests with another noun.
Right is what a reader of the target language takes for the same: figures by babel's strict parsing (2.5 is no number
in German), times by its `parse_time` on a face of twelve hours and, if the source says a.m. or p.m., in that half of
the day; number words, ordinals, per cent signs and dates by tables; versions and telephone numbers unchanged. A figure
that the source has in no way is wrong too.""",
    "addresses": """\
E-mail addresses, URLs and emoji at five places of test sentences: each must be there once, unchanged and not glued to
letters. The words around are compared with the reference, beside the same sentences with a name in its place.""",
    "terms": """\
Nouns of test sentences, singular in the glossary and singular or plural in the sentence; a third with an invented term,
a third with another noun's word, a third with the reference's own word. In the right place: there as often as the
noun, not glued to anything (behind it only an inflection), the old word gone, and at one side the neighbour that the
old word had without a glossary or has in the reference (articles and endings may differ). The old word is found by a
lexicon of the training text (Dice).""",
    "confidence": """\
Measured by `benchmarks/confidence.py`: noise of another make than what models are calibrated with. Quality is a line's
chrF; the calibration error is that of ten bins of as many lines each.""",
    "plain": "Both trees translate with the same model where `before` can read it, else each with its own, in turn.",
}


def page(results: list[Result]) -> str:
    parts = [ABOUT]
    for part, title in PARTS.items():
        mine = [one for one in results if one.part == part]
        if mine:
            parts += [f"## {title}", *([RULES[part]] if part in RULES else [])]
        for model, called in MODELS.items():
            some = {one.system: one for one in mine if one.model == model}
            if some:
                parts += [f"### {called}", table(some), *examples(some)]
                parts += [f"<sub>{about(one)}</sub>" for one in some.values()]
    return "\n\n".join(parts) + "\n"


def table(some: dict[str, Result]) -> str:
    systems = [system for system in (BEFORE, NOW) if system in some] + [one for one in some if one not in (BEFORE, NOW)]
    rows = {system: {row.asked: row for row in some[system].rows} for system in systems}
    asked = list(dict.fromkeys(name for system in reversed(systems) for name in rows[system]))
    lines = [["asked", *systems], ["---"] * (1 + len(systems))]
    lines += [[name, *(cell(rows[system].get(name)) for system in systems)] for name in asked]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(row: Row | None) -> str:
    if row is None:
        return "–"
    return safe(row.found) + {None: "", True: " ✓", False: " ✗"}[row.is_met]


def examples(some: dict[str, Result]) -> list[str]:
    """Of now, or of before if that is all there is."""
    result = some.get(NOW) or next(iter(some.values()))
    if not result.examples:
        return []
    lines = []
    for one in result.examples:
        warnings = ", ".join(one.warnings) or "no warning"
        lines.append("<br>".join([f"- {safe(one.what)}", safe(one.source), f"→ {safe(one.translation)}", warnings]))
    return ["\n".join([f"<details><summary>the worst of `{result.system}`</summary>", "", *lines, "", "</details>"])]


def safe(text: str) -> str:
    """In one line of a list or a cell of a table."""
    text = " ".join(text.split())
    for sign, instead in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(sign, instead) if "`" not in text or sign == "|" else text
    return text


def about(result: Result) -> str:
    machine = ", ".join(f"{what} {value}" for what, value in result.machine.items())
    return f"`{result.system}`: `{result.command}`, seed {result.seed}, {result.minutes:.1f} minutes. {machine}."
