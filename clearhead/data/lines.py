"""What the source lines of a corpus are: one sentence each or several, and how long; kept with the model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lines:
    """Lengths are source tokens without EOS, of the pairs that were trained on."""

    count: int
    several: float  # share of the lines that have more than one sentence
    median: int
    long: int  # 99 of 100 lines are no longer
    longest: int
    least_ratio: float  # of lines of median length or more 199 of 200 targets have at least so many times the tokens
    capital: float  # share of the lines that begin with a capital, of those that begin with a letter that has one
    ended: float  # share of the lines that end with a full stop or its like

    def __post_init__(self) -> None:
        for name in ("several", "capital", "ended"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a share from 0 to 1")
        if self.count < 1:
            raise ValueError(f"count is {self.count}; expected at least 1")
        if not 0 <= self.median <= self.long <= self.longest:
            found = f"median {self.median}, long {self.long}, longest {self.longest}"
            raise ValueError(f"{found}; expected them to rise")
        if not 0 <= self.least_ratio < float("inf"):
            raise ValueError(f"least_ratio is {self.least_ratio}; expected a finite number from 0 on")
