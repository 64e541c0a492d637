"""Read replies (protocol section 3) in linear time; never raise, never evaluate.

Patterns are possessive (``++``) against backtracking; labels and frames are looked for
backwards from their box.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import inf, isfinite
from typing import Any

from .box_records import FormatFailure, ParsedReply
from .representation import CLASS_KEY, PLURAL_KEYS, Corners, ReplyFormat, Representation

Reader = Callable[[str], ParsedReply]  # Reads a reply's text as boxes

# Label, numbers or the reason why there are none, frame number (images: 0)
RawBox = tuple[str, Any, int]


def read(reply: str, fmt: ReplyFormat) -> ParsedReply:
    """Read a reply in the format of its prompt; boxes are in its units."""
    return reader(fmt)(reply)


@lru_cache(maxsize=4096)
def reader(fmt: ReplyFormat) -> Reader:
    """Return the function that reads replies of a format."""
    if fmt.output == "json":
        return _json_reader(fmt)
    return _text_video_reader(fmt) if fmt.frames > 1 else _text_reader(fmt)


# --- numbers that become boxes --------------------------------------------------------------------


def parsed_reply(
    fmt: ReplyFormat,
    row: Representation,
    raw_boxes: Sequence[RawBox],
    indices: Sequence[int] = (),
    reason: FormatFailure | None = None,
) -> ParsedReply:
    """Make a parsed reply of raw boxes, with the first reason why it does not adhere.

    ``indices`` are all frame numbers, even in malformed entries: they count from 0 if the
    smallest is 0, else from 1.
    """
    # Looked up once, for speed
    width = row.width
    to_corners = row.to_corners
    frame_count = fmt.frames
    has_labels = fmt.multilabel
    first_frame = 1 if indices and min(indices) else 0
    boxes: list[Corners] = []
    labels: list[str] = []
    frames: list[int] = []
    for label, values, index in raw_boxes:
        if type(values) is FormatFailure:
            reason = reason or values
            continue
        frame = index - first_frame
        in_range = 0 <= frame < frame_count
        try:
            numbers = tuple(map(float, values)) if in_range and len(values) == width else ()
        except (TypeError, ValueError, OverflowError):
            numbers = ()
        # The sum tells, except for huge finite numbers.
        if not numbers or not (isfinite(sum(numbers)) or all(map(isfinite, numbers))):
            reason = reason or _why_no_box(width, values, in_range)
            continue
        boxes.append(to_corners(numbers))
        if has_labels:
            labels.append(label)
        if frame_count > 1:
            frames.append(frame)
    return ParsedReply(tuple(boxes), tuple(labels), tuple(frames), reason)


def _why_no_box(width: int, values: Any, in_range: bool) -> FormatFailure:
    if not in_range:
        return FormatFailure.FRAME_OUT_OF_RANGE
    if len(values) != width:
        return FormatFailure.WRONG_SHAPE
    try:
        list(map(float, values))
    except (TypeError, ValueError):
        return FormatFailure.NOT_A_NUMBER
    except OverflowError:
        pass
    return FormatFailure.NOT_FINITE


def as_index(value: object) -> int | None:
    """Return ``int(value)``; None where that is an error."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        # int() refuses thousands of digits: a number, but of no frame.
        return _NO_SUCH_FRAME if isinstance(value, str) and value.strip().isdecimal() else None


_NO_SUCH_FRAME = 10**9

# GLM's markers around its answer
_OPEN = "<|begin_of_box|>"
_CLOSE = "<|end_of_box|>"


def _marked(text: str) -> Iterator[str]:
    """Yield the texts between markers."""
    end = 0
    while True:
        start = text.find(_OPEN, end)
        end = text.find(_CLOSE, start + len(_OPEN)) if start >= 0 else -1
        if end < 0:
            return
        yield text[start + len(_OPEN) : end]
        end += len(_CLOSE)


# --- text -----------------------------------------------------------------------------------------

_NUMBER = r"(\d++(?:\.\d++)?)"
_COMMA = r"\s*+,\s*+"
_EMPTY_LIST = re.compile(r"\[\s*+\]")
_PAIR = re.compile(rf"\(\s*+{_NUMBER}{_COMMA}{_NUMBER}\s*+\)")
_INDEX = r"(?<!\d)(\d++)\s*+>?+\s*+:"  # Of a frame: ``2:`` or ``<2>:``


def _bracketed(row: Representation, before: str = "", brackets: str = r"\[\]") -> re.Pattern[str]:
    numbers = _COMMA.join([_NUMBER] * row.width)
    return re.compile(rf"{before}{brackets[:2]}\s*+{numbers}\s*+{brackets[2:]}")


def _labelled(stops: str) -> str:
    """Make the pattern of a label and its colon; it begins after a stop, or each try would scan."""
    return rf"(?<![^{stops}])([^{stops}]++):\s*+"


def _text_reader(fmt: ReplyFormat) -> Reader:
    """Read replies about an image: every ``[a, b, c, d]`` or ``label: [a, b, c, d]``."""
    row = fmt.numbers
    free = fmt.representation == "unconstrained"
    square = _bracketed(row, _labelled(r":\[\]") if fmt.multilabel else "")
    round_ = _bracketed(row, _labelled(r":\[\]()") if fmt.multilabel else "", r"\(\)")

    def reading(reply: str) -> ParsedReply:
        text = next(_marked(reply), reply) if _OPEN in reply else reply
        matches = square.findall(text)
        if free:
            if not fmt.multilabel:
                pairs = iter(_PAIR.findall(text))
                # (a, b) … (c, d): the first pair belongs to the second, the third to the fourth.
                matches += [each + other for each, other in zip(pairs, pairs, strict=False)]
            matches += round_.findall(text)
        if not matches:
            # A reply adheres if it has a box or says that there is none.
            return _without_boxes(text, None if _EMPTY_LIST.search(text) else FormatFailure.NO_BOX)
        if fmt.multilabel:
            return parsed_reply(fmt, row, [(label.strip(), box, 0) for label, *box in matches])
        return parsed_reply(fmt, row, [("", box, 0) for box in matches])

    return reading


def _text_video_reader(fmt: ReplyFormat) -> Reader:
    """Read replies about frames: every ``<index>: [a, b, c, d]``, labels after the index."""
    row = fmt.numbers
    label = r"([^:\[\]]*+):\s*+" if fmt.multilabel else r"()\s*+"
    pattern = _bracketed(row, before=_INDEX + label)

    def reading(reply: str) -> ParsedReply:
        text = next(_marked(reply), reply) if _OPEN in reply else reply
        raw_boxes: list[RawBox] = []
        indices: list[int] = []
        for number, label, *box in pattern.findall(text):
            index = as_index(number) or 0
            raw_boxes.append((label.strip(), box, index))
            indices.append(index)
        if not raw_boxes:
            return _without_boxes(text, FormatFailure.NO_BOX)
        return parsed_reply(fmt, row, raw_boxes, indices)

    return reading


def _without_boxes(text: str, reason: FormatFailure | None) -> ParsedReply:
    if reason is not None and not text.strip():
        reason = FormatFailure.EMPTY
    return ParsedReply((), (), (), reason)


# --- JSON -----------------------------------------------------------------------------------------

_BLANKS = " \t\r\n"
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_scan_long = json.JSONDecoder(parse_int=lambda s: int(s) if len(s) < 4000 else inf).scan_once  # type: ignore[attr-defined]


def _parse(text: str) -> Any:
    """Parse a JSON text, or return the reason why it is none."""
    text = text.strip(_BLANKS)
    try:
        value, end = _scanned(text)
    except StopIteration as stop:
        return _cut_or_not(text, stop.value)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated")
        return FormatFailure.TRUNCATED if unterminated else _cut_or_not(text, error.pos)
    except RecursionError:
        return FormatFailure.NOT_JSON
    return value if end == len(text) else FormatFailure.NOT_JSON


def _scanned(text: str) -> tuple[Any, int]:
    """Return the JSON value at the beginning of a text, and its end."""
    try:
        return _scan(text, 0)  # type: ignore[no-any-return]
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python refuses to convert an integer of thousands of digits, which is valid JSON.
        return _scan_long(text, 0)  # type: ignore[no-any-return]


# The unread rest of a JSON number or word that is cut off
_CUT_TOKEN = re.compile(r"-|\.|[eE][+-]?|tr?u?|fa?l?s?|nu?l?")


def _cut_or_not(text: str, at: int) -> FormatFailure:
    """Return whether a text that is no JSON from a place on was cut off there."""
    text = text.rstrip()
    if at >= len(text) or _CUT_TOKEN.fullmatch(text, at):
        return FormatFailure.TRUNCATED
    return FormatFailure.NOT_JSON


_OPENING = re.compile(r"[\[{]")


def _unfenced(reply: str) -> str:
    """Return the content of the first fence, or everything."""
    start = reply.find("```") + 3
    if reply[start : start + 4].lower() == "json":
        start += 4
    end = reply.find("```", start)
    return reply if end < 0 else reply[start:end].strip()


def _image_json(text: str) -> Any:
    value = _first_json_block(text)
    return _parse(text) if isinstance(value, FormatFailure) else value


def _video_json(text: str) -> Any:
    """Parse a reply about frames; any text before the first marker is the answer."""
    if next(_marked(text), None) is None:
        return _parse(text)
    before = text[: text.find(_OPEN)]
    return _parse(before) if before.strip() else _first_json_block(text)


def _first_json_block(text: str) -> Any:
    for block in _marked(text):
        value = _parse(block)
        if not isinstance(value, FormatFailure):
            return value
    return FormatFailure.NOT_JSON


def _why_not_json(reply: str) -> FormatFailure:
    """Say why the first list or object of a reply is not JSON."""
    text = reply.strip()
    if not text:
        return FormatFailure.EMPTY
    opening = _OPENING.search(text)
    if opening is None:
        return FormatFailure.NOT_JSON
    value = _parse(text[opening.start() :])
    return value if isinstance(value, FormatFailure) else FormatFailure.NOT_JSON


def _text_of(value: Any) -> str:
    try:
        return str(value).strip()
    except (RecursionError, ValueError):
        return ""


def _label_of(entry: dict[str, Any]) -> str:
    """Return an object's label: missing is "", null is "None" (protocol section 3)."""
    label = entry.get("label", "")
    return label.strip() if type(label) is str else _text_of(label)


def _boxes_of(fmt: ReplyFormat) -> Callable[[dict[str, Any]], tuple[str, Any]]:
    """Return the function that reads an object: its label, and numbers or why there are none."""
    key = PLURAL_KEYS.get(fmt.key, fmt.key) if fmt.structure == "nested" else fmt.key
    keys = fmt.numbers.keys
    excluded_keys = fmt.numbers.excluded_keys

    def decomposed(entry: dict[str, Any]) -> tuple[str, Any]:
        if not excluded_keys.isdisjoint(entry):
            return "", FormatFailure.WRONG_SHAPE
        try:
            return _label_of(entry), [entry[name] for name in keys]
        except KeyError:
            return "", FormatFailure.WRONG_KEY

    def by_class(entry: dict[str, Any]) -> tuple[str, Any]:
        names = [name for name in entry if name != "frame_idx" or fmt.frames == 1]
        if len(names) != 1:
            return "", FormatFailure.WRONG_KEY
        (name,) = names
        return name.strip(), entry[name]

    def labelled(entry: dict[str, Any]) -> tuple[str, Any]:
        if key not in entry:
            return "", FormatFailure.WRONG_KEY
        return _label_of(entry), entry[key]

    def unlabelled(entry: dict[str, Any]) -> tuple[str, Any]:
        return "", entry.get(key, FormatFailure.WRONG_KEY)

    if fmt.structure == "decomposed":
        return decomposed
    if fmt.key == CLASS_KEY:
        return by_class
    return labelled if fmt.multilabel else unlabelled


def _json_reader(fmt: ReplyFormat) -> Reader:
    """Read a list of objects of any structure; over frames each object names its frame."""
    row = fmt.numbers
    boxes_of = _boxes_of(fmt)
    is_nested = fmt.structure == "nested"
    is_video = fmt.frames > 1
    value_in = _video_json if is_video else _image_json

    def reading(reply: str) -> ParsedReply:
        text = _unfenced(reply) if "```" in reply else reply
        entries = value_in(text) if _OPEN in text else _parse(text)
        if is_nested and isinstance(entries, dict):
            entries = [entries]
        if not isinstance(entries, list):
            return ParsedReply((), (), (), _why_no_list(entries, text, reply))
        raw_boxes: list[RawBox] = []
        indices: list[int] = []
        for entry in entries:
            if type(entry) is not dict:
                raw_boxes.append(("", FormatFailure.NOT_AN_OBJECT, 0))
                continue
            index = 0
            if is_video:
                frame = as_index(entry.get("frame_idx"))
                if frame is None:
                    raw_boxes.append(("", FormatFailure.NO_FRAME, 0))
                    continue
                index = frame
                indices.append(frame)
            label, values = boxes_of(entry)
            if type(values) is not list:
                raw_boxes.append((label, _listed(values), index))
            elif is_nested:
                raw_boxes += [(label, _listed(box), index) for box in values]
            else:
                raw_boxes.append((label, values, index))
        if not is_video:
            return parsed_reply(fmt, row, raw_boxes)
        # Entries that are no box are reported before boxes that cannot be used.
        reasons = (values for _, values, _ in raw_boxes if type(values) is FormatFailure)
        reason = next(reasons, None if indices else FormatFailure.NO_FRAME)
        return parsed_reply(fmt, row, raw_boxes, indices, reason)

    return reading


def _why_no_list(value: Any, text: str, reply: str) -> FormatFailure:
    """Say why ``text``, taken from a reply, is no list; ``value`` is what it was parsed to."""
    if not isinstance(value, FormatFailure):
        return FormatFailure.NOT_A_LIST
    is_bare = text is reply and reply.startswith(("[", "{"))
    return value if is_bare else _why_not_json(reply)


def _listed(values: Any) -> Any:
    """Return a list, or the reason why a value is none."""
    return values if isinstance(values, list | FormatFailure) else FormatFailure.WRONG_SHAPE
