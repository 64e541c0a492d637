"""Causes that single replies show: calls that failed, answers that cannot be read, or were cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..benchmarks.findit.reply_scoring import ScoredReply
from ..benchmarks.findit.variant import FindItVariant
from ..boxes.box_records import FormatFailure
from ..coords.probe_verdict import find_other_format
from ..core.formatting import counted
from ..data.published_figures import UNKNOWN
from .cause_evidence import Evidence
from .figure_metric import ReadReplies
from .records import Cause, Checked

_CUT = (FormatFailure.TRUNCATED, FormatFailure.TRUNCATED_THINKING)


def _is_cut(scored: ScoredReply) -> bool:
    return scored.reply.cut or scored.reading.reason in _CUT


def _is_unreadable(scored: ScoredReply) -> bool:
    """Return whether an answer is not in its format, for another reason than its end."""
    has_answer = not scored.reply.failed and not _is_cut(scored)
    return has_answer and scored.reading.reason is not None


def _without(
    evidence: Evidence, is_left_out: Callable[[ScoredReply], bool]
) -> Sequence[ReadReplies]:
    return [
        replace(each, scored=[scored for scored in each.scored if not is_left_out(scored)])
        for each in evidence.replies
    ]


def _of_all(number: int, evidence: Evidence, what: str = "replies") -> str:
    return f"{number:,} of {evidence.attempt.queries:,} {what}"


# --- failed calls ---------------------------------------------------------------------------------


def check_failed_calls(evidence: Evidence) -> Checked:
    """Look at calls that failed: they are misses, and the figure's authors may have had none."""
    failed = evidence.attempt.failed
    if not failed:
        return Checked("failed calls", "none")
    result = _of_all(failed, evidence, "calls failed")
    value = evidence.value_of(_without(evidence, lambda scored: scored.reply.failed))
    cause = None
    if evidence.matters(value) or value is None:
        cause = Cause(
            "failed calls",
            f"{result}, and count as misses",
            value,
            "Type the same command again: only these calls are made again",
        )
    return Checked("failed calls", result, cause)


# --- replies that cannot be read ------------------------------------------------------------------


def check_format(evidence: Evidence) -> Checked:
    """Look at answers that are not in the format asked for; published scripts may read more."""
    unreadable = [scored for scored in evidence.scored if _is_unreadable(scored)]
    boxless = sum(
        scored.reading.reason is None and not scored.reading.boxes for scored in evidence.scored
    )
    if not unreadable:
        return Checked("format", f"all answers are readable{_and_boxless(boxless)}")
    reasons = Counter(each.reading.reason.value for each in unreadable if each.reading.reason)
    listed = ", ".join(f"{reason} {number:,}" for reason, number in reasons.most_common(3))
    result = f"{_of_all(len(unreadable), evidence)} are not readable ({listed})"
    value = evidence.value_of([_read_leniently(each) for each in evidence.replies])
    cause = None
    if evidence.matters(value):
        cause = Cause("format", result, value, _format_advice(evidence, len(unreadable)))
    return Checked("format", result + _and_boxless(boxless), cause)


def _and_boxless(boxless: int) -> str:
    return f"; {counted(boxless, 'answer')} without a box" if boxless else ""


def _read_leniently(replies: ReadReplies) -> ReadReplies:
    """Read answers that are not in their format as a lenient reader does."""
    read = []
    for scored in replies.scored:
        lenient = scored.lenient
        if lenient is not None and _is_unreadable(scored):
            scored = replace(scored, reading=lenient.lenient.reading, match=lenient.match)
        read.append(scored)
    return replace(replies, scored=read)


def _format_advice(evidence: Evidence, unreadable: int) -> str:
    setup = evidence.attempt.setup
    variant = setup.variants[0]
    if evidence.differs("prompt") or evidence.differs("format"):
        return f"Type the same command without {evidence.typed_words}: it then asks as published"
    replies = [scored.reply for scored in evidence.scored]
    other = find_other_format(variant, replies) if isinstance(variant, FindItVariant) else None
    if other is not None and other.count >= unreadable / 2 and not setup.prompts:
        return f"Type the same command with --format {other.variant.format}"
    path = evidence.attempt.predictions[0].path
    where = f" in {path}" if path is not None else ""
    return f"Look at these replies{where}: is it the published checkpoint, with its chat template?"


# --- truncated replies ----------------------------------------------------------------------------


def check_truncation(evidence: Evidence) -> Checked:
    """Look at replies that were cut off at their token limit."""
    cut = [scored for scored in evidence.scored if not scored.reply.failed and _is_cut(scored)]
    if not cut:
        return Checked("truncation", "no reply was cut off")
    thinking = sum(scored.reply.ends_in_thought for scored in cut)
    result = f"{_of_all(len(cut), evidence)} were cut off"
    if thinking:
        result += f", {thinking:,} of them while thinking"
    value = evidence.value_of(_without(evidence, _is_cut))
    cause = None
    if evidence.matters(value) or value is None:
        cause = Cause("truncation", result, value, _limit_advice(evidence, bool(thinking)))
    return Checked("truncation", result, cause)


def _limit_advice(evidence: Evidence, thinking: bool) -> str:
    conditions = evidence.figure.conditions
    decoding = conditions.decoding
    limit = None if decoding == UNKNOWN else decoding.max_tokens
    here = max(variant.max_new_tokens for variant in evidence.attempt.setup.variants)
    stated = evidence.attempt.setup.entry.settings
    here = next((stated[name] for name in ("max_new_tokens", "max_tokens") if name in stated), here)
    if limit is not None and limit > here:
        advice = f"Type the same command with --max-tokens {limit}, as published"
    else:
        advice = f"Type the same command with --max-tokens {8 * here}"
    if thinking:
        advice += ", or ask the model not to think (--extra-body)"
    return advice
