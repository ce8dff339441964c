"""The special ids, the same in every vocabulary."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = 4  # ids from here on are words
