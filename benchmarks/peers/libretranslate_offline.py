"""LibreTranslate without a network: its own command line, with the arguments that it takes.

It downloads the model by which it cuts a text into sentences. Here every text is one sentence, so that part is
replaced by one that does nothing, which can only make it faster.
"""

import sys

from argostranslate import sbd  # type: ignore[import-not-found]


def whole(_: object, text: str) -> list[str]:
    return [text]


sbd.MiniSBDSentencizer.split_sentences = whole

if __name__ == "__main__":
    from libretranslate.main import main  # type: ignore[import-not-found]

    sys.exit(main())
