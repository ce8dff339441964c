"""The README.md of an exported CTranslate2 folder."""

PAGE = """\
# {source} → {target}

A Clearhead model for CTranslate2. Clearhead itself makes and uses this form without being asked
(`clearhead translate MODEL`); this folder is for other programs. Its tokenizer is {tokenizer}.
{example}"""
EXAMPLE = """
```python
import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor("source.model")
target = sentencepiece.SentencePieceProcessor("{target_file}")
translator = ctranslate2.Translator(".")
pieces = source.encode("one text", out_type=str)  # in Unicode's form NFC; </s> is added by CTranslate2
never = [["<pad>"], ["<s>"]]
(result,) = translator.translate_batch([pieces], beam_size=5, suppress_sequences=never, use_vmap=True)
print(target.decode(result.hypotheses[0]))
```
"""


def readme(languages: tuple[str, str], files: list[str]) -> str:
    """`files`: those of the tokenizers, one if both sides share it."""
    has_sentencepiece = files[0].endswith(".model")
    return PAGE.format(
        source=languages[0],
        target=languages[1],
        tokenizer=" and ".join(files),
        example=EXAMPLE.format(target_file=files[-1]) if has_sentencepiece else "",
    )
