"""Score replies: read, map to pixels, match (protocol sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...boxes import (
    SPACE_KINDS,
    AnswerKind,
    Confidences,
    ErrorEvent,
    FormatFailure,
    JudgedAnswer,
    MatchResult,
    MatchRule,
    ParsedReply,
    ReplyFormat,
    classify_errors,
    confidence_details,
    confidences,
    has_number_or_bracket,
    lenient_details,
    mask_details,
    match,
    match_details,
    reader,
    recovered_objects,
    stated_details,
)
from ...protocol import (
    TRUNCATED,
    FailureReasons,
    Identity,
    Replies,
    Reply,
    ScoredRow,
    Settings,
    read_reply,
)
from .annotation_tables import LoadedFindIt
from .box_metrics import (
    METRICS_BY_RULE,
    NEGATIVE_OUTCOMES,
    LenientResult,
    MaskResult,
    NegativeOutcome,
    box_answer_kind,
    lenient_matches,
    mask_matches,
    mask_sums,
)
from .f1_errors import ERRORS, details_of, event_sums
from .findit_query import FindItQuery, asked_labels
from .run_space import SpaceInForce, pixel_map, reply_format, spaces_of
from .variant import FindItVariant


@dataclass(frozen=True, slots=True)
class ScoredReply:
    """One query with its reply, reading and match."""

    query: FindItQuery
    reply: Reply
    reading: ParsedReply
    match: MatchResult
    cut: bool = False  # Boxes may be missing: a well-formed reply was stopped at its limit
    lenient: LenientResult | None = None  # The lenient reading: no score depends on it
    masks: MaskResult | None = None  # Its masks as boxes: no score depends on them
    confidences: Confidences | None = None  # None without recorded logprobs
    match_rule: MatchRule = MatchRule.BOX_OVERLAP

    @property
    def recoverable(self) -> tuple[int, ...]:
        return recovered_objects(self.match, self.lenient.match) if self.lenient else ()

    @property
    def kind(self) -> AnswerKind:
        return box_answer_kind(self.reply, self.reading, self.lenient)

    @property
    def rejection(self) -> NegativeOutcome | None:
        """Classify a reply to a query with nothing to find; None if it has an object.

        An ignored object is one, too: saying that there is none is not right, nor is a box wrong.
        """
        truth = self.query.truth
        if truth.boxes or truth.ignored:
            return None
        return NEGATIVE_OUTCOMES[self.kind]


class FormatFailures(FailureReasons):
    """The reasons of readings of boxes, which hold the boxes that were read before the failure."""

    def unread(self, reason: str) -> ParsedReply:
        return ParsedReply((), (), (), FormatFailure(reason))

    def incomplete(self, parsed: ParsedReply, text: str, reason: str) -> ParsedReply:
        if reason == TRUNCATED:
            is_why = parsed.reason is FormatFailure.NOT_JSON
        else:
            # What says something before an open thought is the answer, whatever is wrong with it.
            is_why = parsed.reason is not None and not has_number_or_bracket(text)
        return parsed._replace(reason=FormatFailure(reason)) if is_why else parsed


FORMAT_FAILURES = FormatFailures()  # Turns replies that are empty or cut into readings of boxes


def match_replies(
    model: str, dataset: LoadedFindIt, replies: Replies, settings: Settings, run: Identity | None
) -> tuple[list[ScoredReply], list[SpaceInForce]]:
    """Read and match replies, and list the spaces in force, or raise SpaceError."""
    variant = dataset.variant
    spaces = spaces_of(replies, model, variant, settings, run)
    formats = _formats(model, variant, replies, settings, run)
    queries = [dataset.queries[reply.index] for reply in replies]
    truths = [query.truth for query in queries]
    readings = [
        read_reply(reply, reader(fmt), FORMAT_FAILURES)
        for reply, fmt in zip(replies, formats, strict=True)
    ]
    maps = [
        pixel_map(space, query, reply)
        for space, query, reply in zip(spaces, queries, replies, strict=True)
    ]
    extents = [
        to_pixels.extent(query.width, query.height)
        for to_pixels, query in zip(maps, queries, strict=True)
    ]
    texts = [reply.answer for reply in replies]
    match_rule = variant.match_rule
    matches = match(readings, truths, maps, match_rule)
    asked = [asked_labels(query, variant) for query in queries]
    units = [SPACE_KINDS[each.space.kind].unit for each in spaces]
    lenient = lenient_matches(
        texts, formats, readings, truths, maps, match_rule, extents, asked, units
    )
    has_no_box = [
        reading.reason not in (None, FormatFailure.FAILED_CALL)
        and not reading.boxes
        and (place not in lenient or not lenient[place].lenient.reading.boxes)
        for place, reading in enumerate(readings)
    ]
    sizes = [(query.width, query.height) for query in queries]
    masks = mask_matches(texts, formats, has_no_box, truths, maps, sizes, asked, units)
    scored: list[ScoredReply] = []
    for place, reply in enumerate(replies):
        reading = readings[place]
        fmt = formats[place]
        scored.append(
            ScoredReply(
                queries[place],
                reply,
                reading,
                matches[place],
                # JSON that parses is complete; text is read as far as it goes.
                cut=reply.cut and fmt.output == "text",
                lenient=lenient.get(place),
                masks=masks.get(place),
                confidences=_confidences(reply, fmt, reading),
                match_rule=match_rule,
            )
        )
    return scored, list(dict.fromkeys(spaces))


def _formats(
    model: str, variant: FindItVariant, replies: Replies, settings: Settings, run: Identity | None
) -> list[ReplyFormat]:
    """Return the format in which each reply is read, by the model table's row that it names."""
    row_of_run = ""
    if run is not None and run.answering.row is not None:
        row_of_run = run.answering.row
    rows = [reply.recorded.model.get("row", row_of_run) for reply in replies]
    by_row = {row: reply_format(model, variant, settings, row) for row in set(rows)}
    return [by_row[row] for row in rows]


def _confidences(reply: Reply, fmt: ReplyFormat, reading: ParsedReply) -> Confidences | None:
    logprobs = reply.recorded.token_logprobs
    if logprobs is None or not reading.boxes:
        return None
    split = reply.split
    return confidences(split.answer, fmt, reading, logprobs.tokens_after(split.begin))


def events_of(scored: Sequence[ScoredReply]) -> list[list[ErrorEvent]]:
    """Classify the errors in the boxes of replies to a dataset; points have none."""
    if any(item.match_rule is not MatchRule.BOX_OVERLAP for item in scored):
        return [[] for _ in scored]
    return classify_errors(
        [
            JudgedAnswer(
                item.match,
                item.reading,
                item.query.truth,
                item.kind,
                cut=item.cut,
                recoverable=item.recoverable,
            )
            for item in scored
        ]
    )


def scored_row(reply: ScoredReply, events: Sequence[ErrorEvent] = ()) -> ScoredRow:
    """Convert a scored reply to a row of sums with its details."""
    reason = reply.reading.reason
    rule = METRICS_BY_RULE[reply.match_rule]
    sums = rule.sums(reply.reading, reply.match, reply.query.truth)
    if reply.lenient is not None:
        sums |= rule.lenient_sums(reply.match, reply.lenient)
    sums |= mask_sums(reply.reply.recorded.masks, reply.masks)
    if reply.rejection is not None:
        sums[reply.rejection.sum] = 1
    return ScoredRow(
        index=reply.query.index,
        source=reply.query.cluster,
        sums=sums | event_sums(events),
        failed=reply.reply.failed,
        reason=reason.value if reason else None,
        slices=reply.query.tags,
        details=_details(reply, events),
    )


def _details(reply: ScoredReply, events: Sequence[ErrorEvent]) -> Mapping[str, Any]:
    """Return a row's details: boxes in pixels of the original image, points without extent."""
    reading = reply.reading
    matched = reply.match
    result: dict[str, Any] = {
        "label": reply.query.label,
        "image": reply.query.images[0],
        "adherent": reading.reason is None,
        **match_details(matched, reply.match_rule),
        **stated_details(reading),
    }
    if reply.lenient is not None:
        result |= lenient_details(matched, reply.lenient.lenient, reply.lenient.match)
    if reply.masks is not None:
        result |= mask_details(reply.masks.masks.empty, reply.masks.match)
    if events:
        result[ERRORS] = details_of(events, matched, reading, reply.query.truth)
    return result | confidence_details(reply.confidences)
