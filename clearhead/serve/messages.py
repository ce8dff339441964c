"""The pipe between front and engine: JSON objects, each after its length in four bytes. Nothing is ever unpickled."""

import asyncio
import json
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

Message = dict[str, Any]
LENGTH = struct.Struct(">I")
# Lanes: work that is done at once, work that lets the former pass, and work that lets both pass.
SHORT, LONG, WRITING = LANES = ("short", "long", "writing")
OVERHEAD = 8  # characters' worth of work that any text costs
PER_TOKEN = 4  # characters' worth of work that a token to be written costs
LARGEST = 1 << 28  # bytes; a longer message can only be noise in the pipe


def cost_of(text: str, beam: int, length: int = 0) -> float:
    """What a text is reckoned at in queues and batches: characters, and some for its own sake, times beam.

    `length` are tokens to be written, if they do not depend on the text.
    """
    return (len(text) + OVERHEAD + PER_TOKEN * length) * beam


def packed(message: Message) -> bytes:
    content = json.dumps(message, ensure_ascii=False).encode()
    return LENGTH.pack(len(content)) + content


def messages_from(pipe: BinaryIO) -> Iterator[Message]:
    """Until the pipe ends; half a message is none."""
    while len(head := pipe.read(LENGTH.size)) == LENGTH.size:
        content = pipe.read(_size(head))
        if len(content) < _size(head):
            return
        yield json.loads(content)


async def read_message(pipe: asyncio.StreamReader) -> Message | None:
    """None when the pipe ends."""
    try:
        head = await pipe.readexactly(LENGTH.size)
        return json.loads(await pipe.readexactly(_size(head)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _size(head: bytes) -> int:
    (size,) = LENGTH.unpack(head)
    if size > LARGEST:
        raise ValueError(f"a message of {size} bytes was announced; expected at most {LARGEST}")
    return size
