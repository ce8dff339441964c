"""Which languages a corpus is in: as told, else by the files' endings, else by the script of the text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from clearhead.errors import USAGE, UserError

from .corpus import FORMATS, Pair, unpacked_name
from .options import DataOptions

WRITTEN = {  # script -> languages that are written in it, the likeliest first; "": in several or in another one
    "Latin": "en af ast ca cs cy da de eo es et eu fi fil fo fr ga gd gl ha hr ht hu id ig is it la lb lt lv mg mi ms "
    "mt nb nds nl nn no oc pl pt rm ro rw sk sl sn so sq sv sw tl tn tr vi xh yo zu",
    "Han": "zh lzh wuu yue",
    "Kana": "ja",
    "Hangul": "ko",
    "Cyrillic": "ru be bg mk uk",
    "Arabic": "ar fa ps ur",
    "Greek": "el",
    "Hebrew": "he yi",
    "Thai": "th",
    "Devanagari": "hi mr ne sa",
    "": "aa ab ae ak am an as av ay az ba bh bi bm bn bo br bs ce ceb ch co cr cu cv dv dz ee ff fj fy gn gu gv haw "
    "hmn ho hy hz ia ie ii ik io iu jv ka kg ki kj kk kl km kn kr ks ku kv kw ky lg li ln lo lu mh ml mn my na nd ng "
    "nr nv ny oj om or os pa pi qu rn sc sd se sg si sm sr ss st su ta te tg ti tk to ts tt tw ty ug uz ve vo wa wo za",
}
LONG_CODES = (
    "ara:ar bul:bg ces:cs chi:zh cmn:zh cze:cs dan:da deu:de dut:nl ell:el eng:en est:et fas:fa fin:fi fra:fr fre:fr "
    "ger:de gre:el heb:he hin:hi hun:hu ind:id ita:it jpn:ja kor:ko lav:lv lit:lt nld:nl nor:no per:fa pol:pl por:pt "
    "ron:ro rum:ro rus:ru slk:sk slv:sl spa:es swe:sv tha:th tur:tr ukr:uk vie:vi zho:zh"
)
BLOCKS = {  # code points in which a script's letters lie; any other letter is of an "Other" script
    "Latin": "41-24f 1e00-1eff ff21-ff5a",
    "Han": "3005-3007 3400-4dbf 4e00-9fff f900-faff 20000-3ffff",
    "Kana": "3041-30ff 31f0-31ff ff66-ff9d",
    "Hangul": "1100-11ff 3131-318e ac00-d7af",
    "Cyrillic": "400-52f",
    "Arabic": "600-77f 8a0-8ff fb50-fdff fe70-fefc",
    "Greek": "370-3ff 1f00-1fff",
    "Hebrew": "590-5ff fb1d-fb4f",
    "Thai": "e00-e7f",
    "Devanagari": "900-97f",
    "Phonetic": "250-2ff",
}
NAMES = (  # what people write in place of a code
    "afrikaans:af albanian:sq arabic:ar armenian:hy basque:eu belarusian:be bengali:bn bosnian:bs breton:br "
    "bulgarian:bg burmese:my cantonese:yue catalan:ca chinese:zh croatian:hr czech:cs danish:da dutch:nl english:en "
    "esperanto:eo estonian:et farsi:fa filipino:fil finnish:fi french:fr galician:gl georgian:ka german:de greek:el "
    "gujarati:gu hausa:ha hebrew:he hindi:hi hungarian:hu icelandic:is igbo:ig indonesian:id irish:ga italian:it "
    "japanese:ja kannada:kn kazakh:kk khmer:km klingon:tlh korean:ko kurdish:ku kyrgyz:ky lao:lo latin:la latvian:lv "
    "lithuanian:lt macedonian:mk malay:ms malayalam:ml maltese:mt mandarin:zh maori:mi marathi:mr mongolian:mn "
    "nepali:ne norwegian:no occitan:oc pashto:ps persian:fa polish:pl portuguese:pt punjabi:pa romanian:ro russian:ru "
    "sanskrit:sa serbian:sr sinhala:si slovak:sk slovenian:sl somali:so spanish:es swahili:sw swedish:sv tagalog:tl "
    "tamil:ta telugu:te thai:th tibetan:bo turkish:tr ukrainian:uk urdu:ur uzbek:uz vietnamese:vi welsh:cy xhosa:xh "
    "yiddish:yi yoruba:yo zulu:zu deutsch:de español:es français:fr 中文:zh 日本語:ja cn:zh jp:ja gr:el cz:cs dk:da "
    "ua:uk"
)
BCP_47 = re.compile(  # RFC 5646: language, extended language, script, region, variants, extensions, private use
    r"[a-z]{2,3}(-[a-z]{3}){0,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?(-([a-z0-9]{5,8}|\d[a-z0-9]{3}))*"
    r"(-[0-9a-wy-z](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?|x(-[a-z0-9]{1,8})+",
    re.IGNORECASE,
)
CODE_OF = dict(entry.split(":") for entry in NAMES.split())
WRITTEN_IN = {code: script for script, codes in WRITTEN.items() for code in codes.split()}
TWO_LETTERS = {entry[:3]: entry[4:] for entry in LONG_CODES.split()}
RANGES = [
    (range(int(block.split("-")[0], 16), int(block.split("-")[1], 16) + 1), script)
    for script, blocks in BLOCKS.items()
    for block in blocks.split()
]


@lru_cache(1 << 16)
def script_of(character: str) -> str | None:
    """`Latin`, `Han`, …, `Other`; none for what is no letter."""
    if not character.isalpha():
        return None
    code = ord(character)
    return next((script for codes, script in RANGES if code in codes), "Other")


def main_script(texts: Iterable[str]) -> str | None:
    """That of most letters; Japanese is `Kana` although it has more Han, since Chinese has no kana at all."""
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)
    letters: Counter[str] = Counter()
    for character, count in characters.items():
        if script := script_of(character):
            letters[script] += count
    if letters["Kana"] > 0.05 * letters["Han"]:
        letters["Kana"] += letters.pop("Han", 0)
    script, count = max(letters.items(), key=lambda item: item[1], default=(None, 0))
    return script if count > letters.total() / 2 else None


def _code(ending: str) -> str | None:
    ending = ending.lower().removeprefix(".")
    return TWO_LETTERS.get(ending, ending if ending in WRITTEN_IN else None)


def _endings(paths: Sequence[Path]) -> tuple[str | None, str | None]:
    """From `train.en` and `train.de.gz`, `train.en.txt`, or `train.en-de.tsv`."""
    plain = {".txt", *FORMATS}
    names = [Path(unpacked_name(path)) for path in paths]
    endings = [(Path(name.stem) if name.suffix.lower() in plain else name).suffix for name in names]
    if len(endings) == 1:
        endings = re.split("[-_]", endings[0])
    codes = [_code(ending) for ending in endings]
    return (codes[0], codes[1]) if len(codes) == 2 else (None, None)


def languages(paths: Sequence[Path], options: DataOptions, sample: Sequence[Pair]) -> tuple[str, str]:
    """Of source and target: from the options, else the files' endings, else the script, else `und`."""
    ending = _endings(paths)
    scripts = main_script(pair.source for pair in sample), main_script(pair.target for pair in sample)
    guess = [WRITTEN[script].split()[0] if script in WRITTEN and script != "Latin" else "und" for script in scripts]
    return (options.source_language or ending[0] or guess[0], options.target_language or ending[1] or guess[1])


def require_codes(options: DataOptions) -> None:
    """UserError for what is no language code (BCP 47), or one that nobody uses; says which is meant, if it is known."""
    for option in ("source_language", "target_language"):
        code = getattr(options, option)
        if code is None:
            continue
        primary = code.split("-")[0].lower()
        # Of three letters there are thousands; of two letters all are here.
        is_known = (
            primary in WRITTEN_IN or primary in ("x", "und") or (len(primary) == 3 and primary not in TWO_LETTERS)
        )
        if BCP_47.fullmatch(code) and is_known:
            continue
        meant = CODE_OF.get(code.lower()) or TWO_LETTERS.get(primary) or CODE_OF.get(primary)
        if meant is None:
            close = get_close_matches(code.lower(), CODE_OF, 1)
            meant = CODE_OF[close[0]] if close else None
        meant = code.replace("_", "-") if "_" in code and BCP_47.fullmatch(code.replace("_", "-")) else meant
        hint = f"did you mean {meant}?" if meant else "what has no code is x-…, such as x-sql"
        message = f"data.{option} is {code!r}; expected a language code (BCP 47), such as en, zh-Hans or pt-BR; {hint}"
        raise UserError("LANGUAGE", message, USAGE)


def how_to_name(found: tuple[str, str]) -> str | None:
    """What to do where a language is not known; none if both are."""
    sides = [side for side, code in zip(("source", "target"), found, strict=True) if code == "und"]
    if not sides:
        return None
    options = " ".join(f"--set data.{side}_language={code}" for side, code in zip(sides, ("en", "de"), strict=False))
    return (
        f"the language of the {' and the '.join(sides)} is not known (und); name it, for scores that suit it: {options}"
    )


def looks_swapped(paths: Sequence[Path], options: DataOptions, sample: Sequence[Pair]) -> str | None:
    """A message if options, endings and the script of the text say that source and target changed places."""
    names = [str(path) for path in paths] if len(paths) == 2 else [f"{paths[0]} {side}" for side in ("left", "right")]
    ending, said = _endings(paths), (options.source_language, options.target_language)
    if None not in said and said[0] != said[1] and said == ending[::-1]:
        return (
            f"the options say {said[0]} to {said[1]}, but {names[0]} comes first and {names[1]} second: "
            "they look swapped; give them in the other order"
        )
    expected = said[0] or ending[0] or "", said[1] or ending[1] or ""
    written = WRITTEN_IN.get(expected[0]), WRITTEN_IN.get(expected[1])
    scripts = main_script(pair.source for pair in sample), main_script(pair.target for pair in sample)
    if not all(written) or written[0] == written[1] or scripts != written[::-1]:
        return None
    return (
        f"{names[0]} should be {expected[0]} but is in {scripts[0]} script, and {names[1]} should be {expected[1]} but "
        f"is in {scripts[1]} script: they look swapped; exchange the two files or correct the languages"
    )
