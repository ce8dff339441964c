"""What a translator may be given: a text, or a sequence of texts."""

from collections.abc import Collection, Mapping, Sequence, Set


def require_texts(texts: object) -> None:
    """TypeError says what was given instead; None among texts is common where a table has gaps."""
    if isinstance(texts, str):
        return
    if not isinstance(texts, Collection) or isinstance(texts, bytes | bytearray | Mapping | Set):  # arrays are fine
        raise TypeError(f"found {_kind(texts)}; expected a text, or a list of texts. {_advice(texts)}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {place + 1} of {len(texts)} is {_kind(text)}; expected a str. {_advice(text)}")


def occurrences(texts: Sequence[str]) -> list[int]:
    """How often each text stood before its place."""
    seen: dict[str, int] = {}
    found = []
    for text in texts:
        found.append(seen.get(text, 0))
        seen[text] = found[-1] + 1
    return found


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"


def _advice(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return "Decode it first, as by .decode('utf-8')"
    return "Leave it out, or give '' in its place" if value is None else "Give str(...) of it, or list(...) of several"
