"""What a run's replies say of its server: answers that went elsewhere, refusals, nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..protocol.replies import Reply

_MANY = 0.5  # Share of empty replies that is reported without any other sign

# What is counted; provenances have these words
EMPTY = "empty"
IN_THOUGHT = "empty beside a thought"
IN_TOOLS = "empty beside a tool call"
FILTERED = "filtered"
ALL = "replies"


def count_replies(replies: Iterable[Reply]) -> Counter[str]:
    """Count the answers of a run, and those in which something is odd.

    >>> from ..protocol.replies import ReplyRecord
    >>> dict(count_replies([Reply(0, "", ReplyRecord(thought="[]", finish_reason="stop"))]))
    {'replies': 1, 'empty': 1, 'empty beside a thought': 1}
    """
    counts = Counter[str]()
    for reply in replies:
        if reply.failed:
            continue
        recorded = reply.recorded
        counts[ALL] += 1
        counts[FILTERED] += recorded.finish_reason == "content_filter"
        if reply.answer.strip() or reply.ends_in_thought or reply.cut:
            continue
        counts[EMPTY] += 1
        counts[IN_TOOLS] += bool(recorded.call.get("tool_calls"))
        counts[IN_THOUGHT] += bool(recorded.thought.strip())
    return +counts


def reply_note(counts: Mapping[str, float]) -> str | None:
    """Say what is odd in a run's replies, and what to type; None if nothing is.

    >>> reply_note({"replies": 12, "filtered": 1})
    '1 of 12 replies was refused or cut by a content filter'
    >>> reply_note({"replies": 12, "empty": 1})
    """
    return "; ".join(_notes(counts)) or None


def _notes(counts: Mapping[str, float]) -> Iterator[str]:
    empty = counts.get(EMPTY, 0)
    of = counts.get(ALL, 0)
    if counts.get(IN_THOUGHT):
        its = "its" if counts[IN_THOUGHT] == 1 else "their"
        yield (
            f"{_share(counts, IN_THOUGHT)} empty while {its} reasoning is not: does the server's "
            "reasoning parser take the answers? Start it without --reasoning-parser (llama.cpp: "
            "with --reasoning-format none), and ask again with another --work-dir"
        )
    if counts.get(IN_TOOLS):
        yield (
            f"{_share(counts, IN_TOOLS)} empty but for a tool call, whose arguments are in the "
            "prediction file (call.tool_calls): start the server without its tool parser "
            "(vLLM: without --enable-auto-tool-choice), and ask again with another --work-dir"
        )
    told = counts.get(IN_THOUGHT, 0) + counts.get(IN_TOOLS, 0)
    if empty >= _MANY * of and empty > told:
        yield f"{_share(counts, EMPTY)} empty, and nothing says why: look at the server's log"
    if counts.get(FILTERED):
        yield f"{_share(counts, FILTERED)} refused or cut by a content filter"


def _share(counts: Mapping[str, float], what: str) -> str:
    count = int(counts[what])
    verb = "is" if what != FILTERED else "was"
    if count != 1:
        verb = "are" if what != FILTERED else "were"
    return f"{count:,} of {int(counts.get(ALL, 0)):,} replies {verb}"
