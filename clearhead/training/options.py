"""What a recipe may say about training; without torch."""

from dataclasses import dataclass

SCHEDULES = ("cosine", "inverse-sqrt", "paper")
OPTIMIZERS = ("adam", "muon")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class TrainingOptions:
    """How to train. What is none here is chosen from the corpus's size, printed in the plan and stored in the run."""

    steps: int | None = None  # updates in all; raising it on a finished run continues it
    minutes: float | None = None  # instead of steps: as many as fit into this time
    tokens_per_batch: int | None = None  # padded tokens of the longer side in one update, all processes together
    micro_tokens: int = 8192  # at most this many of them go through the model at a time
    peak_rate: float | None = None  # highest learning rate; schedule = "paper" needs none
    warmup: int | None = None  # updates until the peak
    schedule: str = "cosine"  # cosine, down to nothing at the last step | inverse-sqrt | paper (section 5.3)
    label_smoothing: float = 0.1  # ε_ls, spread over the words that training targets have
    agreement: float = 0.0  # R-Drop's α: pairs are read twice, and predictions that differ cost so much; 5 is usual
    agreement_from: float = 0.0  # share of the steps before it begins: steps with it take twice as long
    guided_alignment: float = 0.3  # weight of the loss by which a head learns to align (Garg et al. 2019); 0: none
    clip: float = 1.0  # gradients longer than this are shortened to it; 0: never
    optimizer: str | None = None  # adam (the paper's) | muon: orthogonal steps inside, Adam at 4 × the rate outside
    beta1: float = 0.9  # Adam's
    beta2: float = 0.98
    epsilon: float = 1e-9
    validate_every: int | None = None  # updates between validations
    save_every: int | None = None  # updates between checkpoints
    patience: int = 10  # validations without a better loss before training stops; 0: never
    keep_best: int = 3  # checkpoints kept because they validated best
    average: int = 5  # the last so many checkpoints are averaged at the end
    samples: int = 3  # translations shown at each validation
    decode_pairs: int = 200  # validation pairs translated for scores at each validation; at the end five times as many
    precision: str = "auto"  # auto: bfloat16 where it is measured to be faster | float32 | bfloat16
    processes: int | None = None  # none given: measured
    threads: int | None = None  # of each process; none given: measured
    collective_timeout: float = 120.0  # seconds after which a process that does not answer counts as lost
    grace: float = 25.0  # seconds in which a run that is told to stop saves its state
    tensorboard: bool = False  # write events beside the log; needs clearhead[tensorboard]
    seed: int = 1

    def __post_init__(self) -> None:
        at_least_one = "micro_tokens average keep_best tokens_per_batch steps warmup"
        for name in (at_least_one + " validate_every save_every processes threads").split():
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; expected at least 1")
        for name in ["patience", "samples", "decode_pairs", "clip", "agreement", "guided_alignment"]:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is {self.schedule!r}; expected one of {', '.join(SCHEDULES)}")
        if self.optimizer not in (None, *OPTIMIZERS):
            raise ValueError(f"optimizer is {self.optimizer!r}; expected one of {', '.join(OPTIMIZERS)}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is {self.precision!r}; expected one of {', '.join(PRECISIONS)}")
        for name in ["label_smoothing", "beta1", "beta2", "agreement_from"]:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0 up to, but not, 1")
        for name in ["minutes", "peak_rate", "collective_timeout", "grace", "epsilon"]:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} is {value}; expected more than 0")
