"""What a run's replies say of who answered: unseen images, answers elsewhere, refusals, nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..core import agreeing, as_called
from ..protocol import ANOTHER_NAME, PROCESSOR_KEY, TEXTS_UNDER, Reply
from .prompt_tokens import FEWER_THAN_OTHERS, FEWER_THAN_TEXT

_MANY = 0.5  # Share of empty or cut replies that is reported without any other sign

# What is counted; provenances have these words
EMPTY = "empty"
IN_THOUGHT = "empty beside a thought"
HERE = "empty of a model on this machine"
IN_TOOLS = "empty beside a tool call"
UNDER = "empty beside texts under "  # The keys of their messages follow
FILTERED = "filtered"
CUT = "cut at the token limit"
CUT_IN_THOUGHT = "cut at the token limit in a thought"
ENDS_IN_THOUGHT = "without an end of the thought"
CUT_HERE = "cut of a model on this machine"
ALL = "replies"

_UNSEEN = {
    FEWER_THAN_TEXT: ("fewer tokens than the text alone: the server may not see the images"),
    FEWER_THAN_OTHERS: (
        "far fewer tokens than others with images of the same sizes: the server may not have seen "
        "theirs"
    ),
}
_ASK_WITHOUT_GATEWAY = f"Ask it without a gateway between, under another name: {ANOTHER_NAME}"


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
        counts[CUT] += reply.cut
        counts[CUT_IN_THOUGHT] += reply.cut and reply.ends_in_thought
        counts[CUT_HERE] += reply.cut and PROCESSOR_KEY in recorded.model
        counts[ENDS_IN_THOUGHT] += reply.ends_in_thought and not reply.cut
        if reply.answer.strip() or reply.ends_in_thought or reply.cut:
            continue
        counts[EMPTY] += 1
        counts[HERE] += PROCESSOR_KEY in recorded.model
        counts[IN_TOOLS] += bool(recorded.call.get("tool_calls"))
        under = recorded.call.get(TEXTS_UNDER)
        if isinstance(under, list):
            counts[UNDER + ", ".join(map(str, under))] += 1
        counts[IN_THOUGHT] += bool(recorded.thought.strip())
    return +counts


def reply_note(counts: Mapping[str, float]) -> str | None:
    """Say what is odd in a run's replies, and what to type; None if nothing is.

    ``counts`` are of :func:`count_replies` and :func:`.prompt_tokens.count_unseen`.

    >>> reply_note({"replies": 12, "filtered": 1})
    '1 of 12 replies was refused or cut by a content filter'
    >>> reply_note({"replies": 12, "empty": 1})
    """
    return "; ".join(_notes(counts)) or None


def _notes(counts: Mapping[str, float]) -> Iterator[str]:
    empty = counts.get(EMPTY, 0)
    of = counts.get(ALL, 0)
    for what, than in _UNSEEN.items():
        if counts.get(what):
            yield f"{_share(counts, what, 'counts', 'count')} {than}. {_ASK_WITHOUT_GATEWAY}"
    if counts.get(HERE):
        yield from _notes_here(counts)
    elif counts.get(IN_THOUGHT):
        its = agreeing(int(counts[IN_THOUGHT]), "its", "their")
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
    for what in sorted(counts):
        if what.startswith(UNDER):
            told += counts[what]
            yield (
                f"{_share(counts, what)} empty, but the message has texts under: "
                f"{what.removeprefix(UNDER)}. They are not read, as their meaning is not known: "
                "look at the server's settings"
            )
    if not counts.get(HERE) and empty >= _MANY * of and empty > told:
        yield (
            f"{_share(counts, EMPTY)} empty, and nothing says why: look at the server's log, if a "
            "server answered"
        )
    yield from _notes_on_ends(counts)
    if counts.get(FILTERED):
        share = _share(counts, FILTERED, "was", "were")
        yield f"{share} refused or cut by a content filter"


def _notes_on_ends(counts: Mapping[str, float]) -> Iterator[str]:
    """Say that most replies were cut off, or never ended their thought."""
    many = _MANY * counts.get(ALL, 0)
    if counts.get(CUT, 0) >= max(many, 1):
        in_thought = int(counts.get(CUT_IN_THOUGHT, 0))
        where = f", {in_thought:,} of them while thinking" if in_thought else ""
        yield (
            f"{_share(counts, CUT)} cut off at the token limit{where}: ask again with a higher "
            f"limit, {_higher_limit(counts)}, under another name: {ANOTHER_NAME}"
        )
    if counts.get(ENDS_IN_THOUGHT, 0) >= max(many, 1):
        share = _share(counts, ENDS_IN_THOUGHT, "has", "have")
        yield as_called(
            f"{share} no end of the thought, so no answer is read. If other marks end it, type: "
            "python run_findit.py score RUN --thought-marks 'BEGIN END'; if it was cut off, ask "
            "again with a higher limit of tokens"
        )


def _higher_limit(counts: Mapping[str, float]) -> str:
    """Say where a higher limit is stated: of a model on this machine, or at a server."""
    if counts.get(CUT_HERE):
        return "in a sweep file with settings: {max_new_tokens: 8192}"
    return """by --extra-body '{"max_tokens": 8192}'"""


def _notes_here(counts: Mapping[str, float]) -> Iterator[str]:
    """Say what is odd in the replies of a model on this machine, where no server stands between."""
    empty = counts[EMPTY]
    in_thought = counts.get(IN_THOUGHT, 0)
    if in_thought:
        yield f"{_share(counts, IN_THOUGHT)} empty behind a thought: the model ended there"
    if empty >= _MANY * counts[ALL] and empty > in_thought:
        yield as_called(
            f"{_share(counts, EMPTY)} empty, and nothing says why: the model ended at once. See "
            "whether its chat template and its tokenizer are those of its weights: python "
            "run_findit.py data show DATASET --model NAME=CHECKPOINT"
        )


def _share(counts: Mapping[str, float], what: str, one: str = "is", more: str = "are") -> str:
    """Return ``1 of 12 replies is``, with the verb for one reply, or for more."""
    count = int(counts[what])
    return f"{count:,} of {int(counts.get(ALL, 0)):,} replies {agreeing(count, one, more)}"
