"""Causes that single replies show: calls that failed, answers that cannot be read, or were cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..benchmarks.findit import FindItVariant, ScoredReply
from ..boxes import NO_BOX, FormatFailure
from ..coords import find_other_format
from ..core import counted
from ..data import NOT_STATED
from ..protocol import Reply
from .boxless_replies import check_boxless, example_of, look_at_replies
from .cause_evidence import Evidence
from .figure_metric import ReadReplies, read_predictions
from .reproduction_records import Cause, CauseLook

# Of what is missing, so that answers left out are a possible cause
_EXPLAINS_MUCH = 0.5

_CUT = (FormatFailure.TRUNCATED, FormatFailure.TRUNCATED_THINKING)


def _is_cut(scored: ScoredReply) -> bool:
    return scored.reply.cut or scored.reading.reason in _CUT


def _is_unreadable(scored: ScoredReply) -> bool:
    """Return whether an answer is not in its format, for another reason than its end."""
    has_answer = not scored.reply.failed and not _is_cut(scored)
    return has_answer and scored.reading.reason is not None


# --- failed calls ---------------------------------------------------------------------------------


def check_failed_calls(evidence: Evidence) -> CauseLook:
    """Look at calls that failed: they are misses, and the figure's authors may have had none."""
    failed = evidence.attempt.failed
    if not failed:
        return CauseLook("failed calls", "none")
    result = evidence.count_of_all(failed)
    value = evidence.without(lambda scored: scored.reply.failed)
    cause = None
    if value is None or evidence.matters(value) or evidence.costs_much(failed):
        cause = evidence.cause(
            "failed calls",
            f"{result} calls failed, and count as misses",
            value,
            "Type the same command again: only these calls are made again",
            stated=True,
        )
    return CauseLook("failed calls", result, cause)


# --- replies that cannot be read ------------------------------------------------------------------


def check_format(evidence: Evidence) -> CauseLook:
    """Look at answers that are not in the format asked for; published scripts may read more."""
    in_thoughts = _answers_in_thoughts(evidence)
    if in_thoughts is not None:
        return CauseLook("format", "answers are in thoughts", in_thoughts)
    unreadable = [scored for scored in evidence.scored if _is_unreadable(scored)]
    boxless = sum(
        scored.reading.reason is None and not scored.reading.boxes for scored in evidence.scored
    )
    is_any_cut = any(_is_cut(scored) for scored in evidence.scored)
    which = "all answers that are whole" if is_any_cut else "all answers"
    result = f"{which} are readable{_and_boxless(boxless)}"
    if not unreadable:
        return CauseLook("format", result, check_boxless(evidence, _silent(evidence)))
    part = evidence.count_of_all(len(unreadable))
    result = f"{part} not readable{_and_boxless(boxless)}"
    value = evidence.value_of([_read_leniently(each) for each in evidence.replies])
    without_boxes = check_boxless(evidence, _silent(evidence))
    explains_less = without_boxes is None or without_boxes.explains is None
    boxes = sum(_has_lenient_box(scored) for scored in unreadable)
    if not evidence.matters(value) and not (evidence.costs_much(boxes) and explains_less):
        return CauseLook("format", result, without_boxes)
    cause = evidence.cause(
        "format",
        f"{part} replies are not in the format asked for: {_reasons(unreadable)}; for example "
        f"{example_of(unreadable[0])}",
        value,
        _format_advice(evidence, len(unreadable)),
    )
    return CauseLook("format", result, cause)


def _silent(evidence: Evidence) -> list[ScoredReply]:
    return [scored for scored in evidence.scored if _is_silent(scored)]


def _reasons(unreadable: Sequence[ScoredReply]) -> str:
    reasons = Counter(each.reading.reason.value for each in unreadable if each.reading.reason)
    return ", ".join(f"{reason} {number:,}" for reason, number in reasons.most_common(3))


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


def _answers_in_thoughts(evidence: Evidence) -> Cause | None:
    """Return a cause where answers are empty, and their thoughts are answers.

    Servers with the parser of another model take a whole reply for a thought.
    """
    swapped = sum(_is_in_thought(scored.reply) for scored in evidence.scored)
    if not swapped:
        return None
    read = []
    for each in evidence.attempt.predictions:
        replies = [_thought_as_text(reply) for reply in each.replies]
        read.append(_read_leniently(read_predictions(replace(each, replies=replies))))
    value = evidence.value_of(read)
    if not evidence.matters(value):
        return None
    return evidence.cause(
        "format",
        f"{evidence.count_of_all(swapped)} replies are empty, and their thoughts are the answers",
        value,
        "Start the server without its reasoning parser, or with that of this model (vllm, sglang: "
        "--reasoning-parser)",
    )


def _is_in_thought(reply: Reply) -> bool:
    is_whole = not reply.failed and not reply.cut
    return is_whole and not reply.answer.strip() and bool(reply.recorded.thought)


def _thought_as_text(reply: Reply) -> Reply:
    if not _is_in_thought(reply):
        return reply
    recorded = replace(reply.recorded, thought="")
    return replace(reply, text=reply.recorded.thought, recorded=recorded)


def _is_silent(scored: ScoredReply) -> bool:
    """Return whether an answer about an object has no box, even for a lenient reader."""
    if scored.reply.failed or _is_cut(scored) or not scored.query.truth.boxes:
        return False
    return not scored.reading.boxes and not _has_lenient_box(scored)


def _has_lenient_box(scored: ScoredReply) -> bool:
    lenient = scored.lenient
    return lenient is not None and bool(lenient.lenient.reading.boxes)


def _format_advice(evidence: Evidence, unreadable: int) -> str:
    setup = evidence.attempt.setup
    variant = setup.variants[0]
    if evidence.differs("prompt") or evidence.differs("format"):
        return f"Type the same command without {evidence.typed_words}: it then asks as published"
    replies = [scored.reply for scored in evidence.scored]
    other = find_other_format(variant, replies) if isinstance(variant, FindItVariant) else None
    if other is not None and other.count >= unreadable / 2 and not setup.prompts:
        return f"Type the same command with --format {other.variant.format}"
    return look_at_replies(evidence)


# --- truncated replies ----------------------------------------------------------------------------


def check_truncation(evidence: Evidence) -> CauseLook:
    """Look at replies that were cut off at their token limit."""
    cut = [scored for scored in evidence.scored if not scored.reply.failed and _is_cut(scored)]
    if not cut:
        return CauseLook("truncation", "no reply was cut off")
    said = sum(scored.reply.cut for scored in cut)
    result = f"{evidence.count_of_all(len(cut))} cut off"
    value = evidence.without(_is_cut)
    if not (value is None or evidence.matters(value) or evidence.costs_much(len(cut))):
        return CauseLook("truncation", result)
    thinking = sum(scored.reply.ends_in_thought for scored in cut)
    finding = f"{evidence.count_of_all(len(cut))} replies were cut off at their limit of tokens"
    if not said:
        finding = (
            f"{evidence.count_of_all(len(cut))} replies end before their box does, as "
            f"{example_of(cut[0])}"
        )
    if thinking:
        finding += f", {thinking:,} of them while thinking"
    advice = _limit_advice(evidence, bool(thinking))
    cause = evidence.cause("truncation", finding, value, advice, stated=True)
    return CauseLook("truncation", result, cause)


def _limit_advice(evidence: Evidence, thinking: bool) -> str:
    conditions = evidence.figure.conditions
    decoding = conditions.decoding
    limit = None if decoding == NOT_STATED else decoding.max_tokens
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


# --- several boxes --------------------------------------------------------------------------------


def check_several_boxes(evidence: Evidence) -> CauseLook:
    """Look at replies with several boxes: the first counts, and other scripts take other boxes."""
    if not evidence.figure.set.metric.startswith(("acc@", "mean of acc@")):
        return CauseLook("several boxes", "the metric counts all boxes")
    several = sum(len(scored.match.boxes) > 1 for scored in evidence.scored)
    if not several:
        return CauseLook("several boxes", "no reply has several")
    result = f"{evidence.count_of_all(several)} replies have several boxes"
    best = [
        replace(each, scored=[_best_box_first(scored) for scored in each.scored])
        for each in evidence.replies
    ]
    value = evidence.value_of(best)
    cause = None
    if evidence.matters(value, _EXPLAINS_MUCH):
        cause = evidence.cause(
            "several boxes",
            f"{result}, of which the first counts, and often another fits",
            value,
            _one_box_advice(evidence),
            may_be=True,
        )
    return CauseLook("several boxes", result, cause)


def _best_box_first(scored: ScoredReply) -> ScoredReply:
    """Put the box first that fits an object best."""
    match = scored.match
    fits = [
        (iou, place)
        for iou, place in zip(match.ious, match.assigned, strict=True)
        if place != NO_BOX
    ]
    if not fits:
        return scored
    _, best = max(fits)
    others = [box for place, box in enumerate(match.boxes) if place != best]
    return replace(scored, match=match._replace(boxes=(match.boxes[best], *others)))


def _one_box_advice(evidence: Evidence) -> str:
    if evidence.differs("prompt"):
        return f"Type the same command without {evidence.typed_words}"
    return (
        "The model lists more than was asked for: check that the checkpoint and its chat template "
        "are the published ones. Whether the figure's script takes another box is not told"
    )
