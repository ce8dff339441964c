"""E-mail addresses, URLs and emoji in test sentences: each there once, unchanged, the words around it translated."""

import random
import re
from collections import Counter
from dataclasses import dataclass

from benchmarks.faithful.corpora import CORPORA, FINAL
from benchmarks.faithful.measures import (
    Asked,
    Example,
    Found,
    Row,
    bleu,
    chrf,
    is_unspaced,
    one_line,
    share,
    signed,
    words,
)
from benchmarks.faithful.segments import spread_out

MODELS = ("ende", "enzh", "m30k")
SENTENCES = 600
KINDS = ("email", "url", "emoji")
NAME = {"en": "Tom", "de": "Tom", "zh": "汤姆"}
EMOJI = ["😀", "🎉", "❤️", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "☕", "🚲", "🙈", "✅"]
PEOPLE = ["tom.smith", "anna", "j_doe", "info", "mary+news", "k-lee", "office", "bob99"]
HOSTS = ["example.org", "mail.example.com", "example.co.uk", "uni-koeln.example", "test.example.net"]
PATHS = ["", "/", "/a/b.html", "/search?q=two+words&page=2", "/~tom/index.php#part-3", ":8080/status", "/wiki/A_(b)"]
STOP = re.compile(r"[.!?。！？]+")


@dataclass(frozen=True)
class Put:
    """An address in a sentence, and the same sentence with a name in its place."""

    kind: str
    place: str
    address: str
    text: str
    named: str
    reference: str  # of the sentence without it


def draw(pairs: list[tuple[str, str]], many: int, seed: int) -> list[Put]:
    """Every kind at every place, in turn."""
    chance = random.Random(f"addresses {seed}")
    pairs = [pair for pair in pairs if 4 <= len(pair[0].split()) <= 25 and FINAL.search(pair[0]) and '"' not in pair[0]]
    with_comma = [pair for pair in pairs if ", " in pair[0]]
    combinations = [(kind, place) for kind in KINDS for place in PLACES]
    found = []
    for i in range(many):
        kind, place = combinations[i % len(combinations)]
        sentence, reference = chance.choice(with_comma if place == "after a comma" else pairs)
        address = written(kind, chance)
        text, named = (PLACES[place](sentence, one) for one in (address, NAME["en"]))
        found.append(Put(kind, place, address, text, named, reference))
    return found


def written(kind: str, chance: random.Random) -> str:
    if kind == "email":
        return f"{chance.choice(PEOPLE)}@{chance.choice(HOSTS)}"
    if kind == "url":
        return f"{chance.choice(['https://', 'https://www.', 'http://'])}{chance.choice(HOSTS)}{chance.choice(PATHS)}"
    return chance.choice(EMOJI)


def _ended(sentence: str) -> tuple[str, str]:
    match = FINAL.search(sentence)
    assert match
    return sentence[: match.start()], match[0]


def _middle(sentence: str, address: str) -> str:
    parts = sentence.split()
    return " ".join([*parts[: len(parts) // 2], address, *parts[len(parts) // 2 :]])


def _end(sentence: str, address: str) -> str:
    text, mark = _ended(sentence)
    return f"{text} {address}{mark}"


def _brackets(sentence: str, address: str) -> str:
    text, mark = _ended(sentence)
    return f"{text} ({address}){mark}"


PLACES = {
    "at the start": lambda sentence, address: f"{address} {sentence}",
    "in the middle": _middle,
    "at the end": _end,
    "after a comma": lambda sentence, address: sentence.replace(", ", f", {address} ", 1),
    "in brackets": _brackets,
}


def fault(put: Put, translation: str) -> str:
    """What is wrong with the address in the translation; nothing if it is there once, unchanged."""
    count = translation.count(put.address)
    if count != 1:
        return f"{put.address} is there {count} times"
    start = translation.index(put.address)
    before, after = translation[:start][-1:], translation[start + len(put.address) :][:1]
    goes_on = after in (".", "-", ":") and _is_part(translation[start + len(put.address) + 1 :][:1])
    if put.kind != "emoji" and (_is_part(before) or before in (".", "-") or _is_part(after) or goes_on):
        return f"{put.address} is glued to other letters"
    rest = translation.replace(put.address, "")
    if put.kind == "emoji":
        return (
            "another emoji came with it" if any(ord(sign) > 0x2600 and sign in "".join(EMOJI) for sign in rest) else ""
        )
    pieces = [piece for piece in re.split(r"[^\w]+", put.address) if len(piece) > 4]
    again = [
        piece
        for piece in pieces
        if piece.lower() in words(rest) and piece.lower() not in words(put.text.replace(put.address, ""))
    ]
    return f"{again[0]} is there again" if again or "@" in rest or "://" in rest else ""


def _is_part(sign: str) -> bool:
    """Letters of scripts with spaces, digits, and what could go on in an address."""
    return bool(sign) and ((sign.isalnum() and ord(sign) < 0x3000) or sign in "@/_+~&=#%")


def measure(asked: Asked) -> Found:
    corpus = CORPORA[asked.name]
    language = corpus.languages[1]
    puts = draw(corpus.pairs(), asked.many(SENTENCES), asked.seed)
    said = asked.system.translate([put.text for put in puts])
    named = asked.system.translate([put.named for put in puts])
    wrong, of, stops, open_ = Counter[str](), Counter[str](), 0, 0
    examples = []
    for put, one, other in zip(puts, said, named, strict=True):
        found = fault(put, one.text)
        more = len(STOP.findall(one.text.replace(put.address, ""))) > len(STOP.findall(other.text))
        stops += more
        open_ += put.place == "in brackets" and not re.search(rf"[(（]\s?{re.escape(put.address)}\s?[)）]", one.text)
        for key in (put.kind, put.place):
            of[key] += 1
            wrong[key] += bool(found)
        if found or more:
            kind = f"{put.kind} {put.place}"
            examples.append(
                (not found, Example(f"{kind}: {found or 'a full stop more'}", put.text, one.text, one.warnings))
            )
    bad = sum(wrong[kind] for kind in KINDS)
    rows = [Row("addresses there once, unchanged (all)", share(len(puts) - bad, len(puts)), bad == 0)]
    rows += [Row(f"{key}: wrong", f"{wrong[key]} of {of[key]}") for key in of]
    references = [put.reference for put in puts]
    around = [without(one.text, put.address, language) for put, one in zip(puts, said, strict=True)]
    by_name = [without(one.text, NAME[language], language) for one in named]
    for metric, (mine, theirs) in {
        "BLEU": [bleu(texts, references, language) for texts in (around, by_name)],
        "chrF": [chrf(texts, references) for texts in (around, by_name)],
    }.items():
        asked_for = f"{metric} of the words around, against the same sentences with a name in its place"
        rows.append(Row(asked_for, f"{mine:.2f}, {theirs:.2f} ({signed(mine - theirs)})"))
    rows.append(Row("brackets lost", share(open_, of["in brackets"])))
    rows.append(Row("more full stops than with a name in its place", share(stops, len(puts))))
    return Found(rows, spread_out([example for _, example in sorted(examples, key=lambda pair: pair[0])]))


def without(text: str, what: str, language: str) -> str:
    """The text without the first such part, and without the brackets that it stood in."""
    text = (
        text.replace(f"({what})", "", 1).replace(f"（{what}）", "", 1)
        if f"{what})" in text or f"{what}）" in text
        else (text.replace(what, "", 1))
    )
    text = one_line(text)
    return text.replace(" ", "") if is_unspaced(language) else re.sub(r" ([.,!?])", r"\1", text)
