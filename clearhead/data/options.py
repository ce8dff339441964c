"""What a recipe may say about the corpus and the tokenizer; without torch."""

from dataclasses import dataclass

TOKENIZERS = ("bpe", "unigram", "characters", "words")  # those that are learned from a corpus
IMPORTED = "imported"  # came with a model from elsewhere
CONTINUOUS = ("speech", "image", "series")  # tasks whose sources are files of numbers, listed in a manifest
TASKS = ("translate", "generate", *CONTINUOUS)


@dataclass(frozen=True)
class DataOptions:
    """How text files become ids. Languages left out are taken from file endings, else guessed, else `und`."""

    source_language: str | None = None  # en, de, zh, ...; chooses the scores' tokenizer
    target_language: str | None = None
    tokenizer: str = "bpe"  # bpe | unigram | characters | words (split at white space); imported: only with a model
    joint: bool = False  # one vocabulary for both sides; else the output layer has the target's words alone
    vocabulary: int | None = None  # words in each vocabulary; none given: from the corpus's size
    subword_dropout: float = 0.0  # rate at which merges are left out in training; bpe only
    marks: float = 0.05  # share of pairs in which training replaces words by marks, as translating will; 0: no marks
    max_tokens: int = 256  # longer sources or targets are left out of training
    max_ratio: float = 9.0  # so are pairs of which one side has this many times the other's tokens
    max_dropped: float = 0.2  # more than this share of pairs left out is an error
    task: str = "translate"  # translate: pairs of lines | generate: plain text | speech, image, series: files and text
    max_steps: int = 3000  # longer sources are left out of training; 100 steps are a second of speech
    mel_bins: int = 80  # features of a step of speech
    time_masks: int = 0  # SpecAugment (Park et al. 2019): stretches of steps hidden in training ...
    time_mask_steps: int = 30  # ... each at most this long, and at most a fifth of all
    feature_masks: int = 0  # bands of features hidden in training ...
    feature_mask_width: int = 10  # ... each at most this wide
    image_height: int = 32  # pixels to which pictures are scaled
    patch_width: int = 4  # pixels of a patch, which is one step of the sequence
    patch_height: int | None = None  # none given: that of the picture, so that patches are columns; else a grid
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
        for name, least in [("max_steps", 1), ("mel_bins", 2), ("time_mask_steps", 1), ("feature_mask_width", 1)]:
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        for name in ("time_masks", "feature_masks"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")
        if self.subword_dropout and self.is_continuous:
            raise ValueError(f'subword_dropout works with text on both sides, not with task = "{self.task}"')
        for name in ("max_dropped", "marks"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0 to 1")
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

    @property
    def learns_marks(self) -> bool:
        """Whether words are replaced by marks in training, which takes text on both sides."""
        return self.marks > 0 and self.task == "translate"

    @property
    def is_continuous(self) -> bool:
        """Whether the sources are files of numbers."""
        return self.task in CONTINUOUS
