"""The README.md of an exported Marian folder: how to use it, and where it differs from the model it was made of."""

from clearhead.data.options import IMPORTED, DataOptions
from clearhead.decoding import DecodingOptions

PAGE = """\
---
library_name: transformers
pipeline_tag: translation
tags: [marian, translation]
---
# {source} → {target}

A Clearhead model as a `MarianMTModel` with a `MarianTokenizer`; its logits are the same but for rounding.

```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer = MarianTokenizer.from_pretrained("this folder")
model = MarianMTModel.from_pretrained("this folder")
batch = tokenizer(["one text", "another text"], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

What `transformers` does otherwise than Clearhead:

{notes}
"""
LIMITS = """\
- A target has at most {longest} tokens{instead}, and no text may have more than {positions}.
- `generate` and our search stop at different times, so that now and then a beam finds another translation.
- MarianTokenizer recommends sacremoses, but has no use for it; leave it out."""
MEAN = """\
- `generate` divides by the length to the power of {alpha}; the paper's length penalty, which this model is set to,
  is not among its options."""
SUBWORDS = """\
- Clearhead brings a text to Unicode's form NFC. Here do it yourself: `unicodedata.normalize("NFC", text)`.
- The character ▁ (U+2581) is read as a space, and written as one.
- A text that begins with `>>`, and has a `<<` later on, has lost all up to there: it is taken for a language code.
- White space around a translation is removed. An unknown token is left out; Clearhead writes it as ⁇."""
SPECIALS = """\
- A text that begins with a language code that the model doesn't know, such as `>>xyz<<`, loses it."""


def readme(data: DataOptions, decoding: DecodingOptions, longest: int, positions: int) -> str:
    """`longest`: tokens of a target; `positions`: rows of the table of positions."""
    instead = "" if decoding.max_length else ", where Clearhead allows 50 more than the source has"
    notes = [
        SPECIALS if data.tokenizer == IMPORTED else SUBWORDS,
        LIMITS.format(longest=longest, positions=positions, instead=instead),
    ]
    if decoding.length_penalty != "mean":
        notes.append(MEAN.format(alpha=decoding.alpha))
    source, target = data.source_language or "und", data.target_language or "und"
    return PAGE.format(source=source, target=target, notes="\n".join(notes))
