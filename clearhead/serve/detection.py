"""Which of the served languages a text is in: by its script first, then by letters and little words that tell.

It only has to tell apart the languages that the models here translate from, mostly two or three.
"""

import re

from clearhead.data.languages import WRITTEN_IN, main_script

# Words that are among the most frequent of a language; a word that several have tells less.
WORDS = {
    "en": "the of and to in is that it was for on are with as his they at be this have from you not",
    "de": "der die und das ist nicht ein eine zu den mit auf von sich für im dem es wird auch als an",
    "fr": "le la les et des est une un du que qui dans pour pas sur au il elle nous avec ce plus",
    "es": "el la los de y que en una un es por con para las del se no su al lo como más pero",
    "it": "il la di che e un una per non sono con del della le gli i si è da come anche nel",
    "pt": "o a os as de e que um uma em do da não para com se por é mais no na dos como",
    "nl": "de het een en van is dat niet op te zijn met voor hij die in ik je er aan ook",
    "sv": "och att det som en på är av för med den till inte har de ett om men var jag",
    "da": "og det at en den til er som på de med han af for ikke der var mig sig men",
    "no": "og det at en den til er som på de med han av for ikke der var meg seg men jeg",
    "fi": "ja on ei se että hän oli joka mutta kun niin myös tai ovat ole sen mitä",
    "pl": "i w nie na się z że jest do to jak o po ale za od co tak przez być",
    "cs": "a se v na je že s z do to o k i ale jako za by po jsem co tak",
    "ro": "și de la în a că nu este cu un o pe să din mai pentru ce sunt care",
    "hu": "a az és hogy nem is egy ez van volt csak meg de ha mint már vagy",
    "tr": "bir ve bu için ile de da ne çok daha gibi ama olarak olan var o",
    "id": "yang dan di itu dengan untuk tidak dari dalam ini akan pada juga saya ada ke",
    "vi": "và của là có không được cho trong một các người này đã với để những khi",
    "ru": "и в не на что он с как это по но его из за то она так я вы мы",
    "uk": "і в не на що він з як це до та його за але вона ми ви є я бути",
    "bg": "и в не на че той с като това по но го от за тя се да е са",
}
LETTERS = {  # that hardly any other language of the same script has
    "de": "ß",
    "es": "ñ¿¡",
    "pt": "ãõ",
    "pl": "ąęłśźż",
    "cs": "ěřů",
    "ro": "țș",
    "hu": "őű",
    "tr": "ğış",
    "vi": "ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "uk": "їєґі",
    "ru": "ыэё",
    "da": "æø",
    "no": "æø",
    "sv": "äå",
}
WORD = re.compile(r"[^\W\d_]+")
ELSEWHERE = 0.05  # weight of all languages that are not served


def detect(text: str, served: list[str]) -> list[tuple[str, float]]:
    """The served languages with a confidence from 0 to 100, the likeliest first."""
    script = main_script([text])
    words = [word.lower() for word in WORD.findall(text[:5_000])]
    weights = {language: _weight(language, script, words) for language in served}
    total = sum(weights.values()) + ELSEWHERE
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    return [(language, round(100 * weight / total, 1)) for language, weight in ranked]


def _weight(language: str, script: str | None, words: list[str]) -> float:
    """How well a text fits; little where the script is another one, half where nothing is known of the language."""
    written = _script_of_language(language)
    if script is None or (written and written != script):
        return 0.0 if script else 0.01
    base = language.split("-")[0]
    if base not in WORDS or not words:
        return 0.5 if written else 0.1
    known = set(WORDS[base].split())
    telling = sum(word in known for word in words) / len(words)
    letters = sum(letter in LETTERS.get(base, "") for word in words for letter in word) / len(words)
    return 0.05 + telling + letters


def _script_of_language(language: str) -> str | None:
    return WRITTEN_IN.get(language.split("-")[0]) or None
