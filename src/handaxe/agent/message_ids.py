"""Ids of messages for clients: pieces of answers, and results of calls."""

from uuid import UUID, uuid5

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import AssistantBlock

PIECE_CHARS = 150_000
"""Longer texts are sent in pieces, because clients reject very long lines."""

_SPACE = UUID("6d6f1b0e-7c1e-5f0c-9a53-2f6f1a8b7c44")


def split_block(block: AssistantBlock) -> list[AssistantBlock]:
    """A block in the form in which it is sent: complete, or a long text in pieces."""
    if not isinstance(block, TextBlock) or len(block.text) <= PIECE_CHARS:
        return [block]
    starts = range(0, len(block.text), PIECE_CHARS)
    return [TextBlock(block.text[start : start + PIECE_CHARS]) for start in starts]


def make_answer_id(message_id: str, last_piece: int) -> str:
    """The id of the part of an answer that ends with this piece."""
    return str(uuid5(_SPACE, f"answer {message_id} {last_piece}"))


def make_result_id(call_id: str) -> str:
    """The id of the message with a call's result."""
    return str(uuid5(_SPACE, f"result {call_id}"))
