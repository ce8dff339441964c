"""What a recipe may say about the corpus and the tokenizer; without torch."""

from dataclasses import dataclass

TOKENIZERS = ("bpe", "unigram", "characters", "words")  # those that are learned from a corpus
IMPORTED = "imported"  # came with a model from elsewhere
TASKS = ("translate", "generate")


@dataclass(frozen=True)
class DataOptions:
    """How text files become ids. Languages left out are taken from file endings, else guessed, else `und`."""

    source_language: str | None = None  # en, de, zh, ...; chooses the scores' tokenizer
    target_language: str | None = None
    tokenizer: str = "bpe"  # bpe | unigram | characters | words (split at white space); imported: only with a model
    joint: bool = True  # one vocabulary for both sides
    vocabulary: int | None = None  # words in each vocabulary; none given: from the corpus's size
    subword_dropout: float = 0.0  # rate at which merges are left out in training; bpe only
    max_tokens: int = 256  # longer sources or targets are left out of training
    max_ratio: float = 9.0  # so are pairs of which one side has this many times the other's tokens
    max_dropped: float = 0.2  # more than this share of pairs left out is an error
    task: str = "translate"  # translate: pairs of lines | generate: plain text, to be continued
    image_height: int = 32  # pixels to which pictures are scaled
    patch_height: int | None = (
        None  # pixels of a patch, which is one step; none given: as high as the picture, a column
    )
    patch_width: int = 4
    example: str | None = None  # a source text that the server's page shows first

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task is {self.task!r}; expected one of {', '.join(TASKS)}")
        if self.tokenizer not in (*TOKENIZERS, IMPORTED):
            raise ValueError(f"tokenizer is {self.tokenizer!r}; expected one of {', '.join(TOKENIZERS)}")
        if self.vocabulary is not None and self.vocabulary < 8:
            raise ValueError(f"vocabulary is {self.vocabulary}; expected at least 8")
        if not 0 <= self.subword_dropout < 1:
            raise ValueError(f"subword_dropout is {self.subword_dropout}; expected a number from 0 up to, but not, 1")
        if self.subword_dropout and self.tokenizer != "bpe":
            raise ValueError(f'subword_dropout works with tokenizer = "bpe", not {self.tokenizer!r}')
        if self.max_tokens < 2:
            raise ValueError(f"max_tokens is {self.max_tokens}; expected at least 2")
        if self.max_ratio <= 1:
            raise ValueError(f"max_ratio is {self.max_ratio}; expected more than 1")
        if not 0 <= self.max_dropped <= 1:
            raise ValueError(f"max_dropped is {self.max_dropped}; expected a number from 0 to 1")
        for name in ("image_height", "patch_width"):
            if not 1 <= getattr(self, name) <= 1024:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 1 to 1024 pixels")
        if self.patch_rows < 1 or self.image_height % self.patch_rows:
            raise ValueError(
                f"patch_height is {self.patch_height}; expected a divisor of image_height, which is {self.image_height}"
            )

    @property
    def patch_rows(self) -> int:
        """Pixels from top to bottom of a patch."""
        return self.image_height if self.patch_height is None else self.patch_height
