"""Custom queries without a table: their prompts and formats, and replies to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike, fspath
from typing import Any

from ..benchmarks import is_dataset_name, parse
from ..benchmarks.findit import (
    BENCHMARK,
    Dataset,
    FindItQuery,
    FindItVariant,
    VariantError,
    parse_format,
)
from ..benchmarks.findit import Family as Family
from ..boxes import Space, Truth
from ..core import suggestion
from ..protocol import (
    NO_REPLY,
    THINK,
    USUAL_THOUGHTS,
    MarksError,
    Message,
    NotAReplyError,
    Reply,
    ReplyRecord,
    ThoughtMarks,
    ThoughtRule,
    is_assistant,
    last_answer,
    messages_in,
    rule_of,
    thought_marks,
)

SpaceLike = str | Mapping[str, Any] | Space
"""A coordinate space: its name, the fields of a :class:`.Space`, or a :class:`.Space`."""

Chat = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Messages ``{"role": …, "content": …}`` of a chat, or a single message."""

MarksLike = str | Sequence[str]
"""Marks around thoughts or answers: ``("<plan>", "</plan>")``, or a text with a blank between."""

ReplyLike = str | Reply | Chat | None
"""A reply: its text; a :class:`.Reply` with its record; a chat, whose last message of the assistant
is the reply; None if the call failed."""

ImagePath = str | PathLike[str]

NOTHING_TO_FIND = Truth((), ())

_MOST_FRAMES = 9999

_CUSTOM = {
    family.value: Dataset(
        family.value,
        family,
        images="custom",
        has_multilabel=family in (Family.OBJDET, Family.OBJDET_VIDEO),
        has_caption=True,
        has_negatives=family is Family.REFEXP_ALL,
        frames=_MOST_FRAMES if family.is_video else 1,
    )
    for family in Family
}
"""Datasets of custom queries: a row for each family."""


@dataclass(frozen=True, slots=True)
class CustomVariant(FindItVariant):
    """The variant of a custom query; ``dataset`` is the name of a family."""

    @property
    def data(self) -> Dataset:
        return _CUSTOM[self.dataset]


@lru_cache(maxsize=1024)
def variant_of(
    format: str,
    frames: int = 1,
    multilabel: bool = False,
    family: Family | str = Family.OBJDET,
    caption: bool = False,
) -> FindItVariant:
    """Return the variant of a custom query.

    >>> variant_of("xyxy_json_bbox_2d", frames=8).reply.key
    'bbox_2d'
    >>> variant_of("xyxy_jsn")
    Traceback (most recent call last):
    vlmeval_findit.benchmarks.findit.variant.VariantError: xyxy_jsn: unknown output format 'jsn': \
did you mean json?

    Args:
        format: ``<representation>_<text|json>[_<key>][_<structure>]…``, the end of a FindIt name.
        frames: number of shown frames of a video; 1: an image.
        multilabel: whether every box has a label.
        family: the family of queries.
        caption: whether a caption is shown.

    Raises:
        VariantError: the format does not exist; the message names the part and the nearest name.
    """
    if not isinstance(frames, int) or not 1 <= frames <= _MOST_FRAMES:
        raise VariantError(f"frames: {frames!r} should be a whole number, 1 to {_MOST_FRAMES}")
    if multilabel not in (True, False):
        raise VariantError(f"multilabel: {multilabel!r} should be True or False")
    row = _CUSTOM[_family(family, frames)]
    parts = []
    if multilabel:
        parts.append("multilabel")
    if caption:
        parts.append("caption")
    if row.family.is_video:
        parts.append(f"f{frames}")
    parts.append(format)
    variant, why = parse_format("_".join(parts), row, CustomVariant)
    if variant is None and is_dataset_name(format):
        end = repr(parse(format).format)
        raise VariantError(f"{format} is a dataset: a format is the end of its name, {end}")
    if variant is None:
        raise VariantError(f"{format}: {why}")
    if (variant.multilabel, variant.caption, variant.frames) != (multilabel, caption, frames):
        raise VariantError(
            f"{format}: frames, labels and captions are separate arguments "
            "(frames=8, multilabel=True), not parts of a format"
        )
    return variant


def _family(family: Family | str, frames: int) -> str:
    """Return the name of a family; for several frames, of its video family."""
    name = family.value if isinstance(family, Family) else family
    if name not in _CUSTOM:
        raise VariantError(f"unknown family {name!r}{suggestion(name, _CUSTOM)}")
    video = f"{name.removesuffix('_video')}_video"
    if frames > 1 and video not in _CUSTOM:
        raise VariantError(f"{name} is asked about one image, not {frames} frames")
    return video if frames > 1 else name


# --- prompts --------------------------------------------------------------------------------------


def prompt(
    label: str | Sequence[str],
    format: str,
    images: ImagePath | Sequence[ImagePath],
    *,
    family: Family | str = Family.OBJDET,
    references: Sequence[ImagePath] = (),
    caption: str = "",
) -> Message:
    """Return the message that asks for boxes, in the words of FindIt's runs.

    >>> for kind, value in prompt("dog", "xyxy_json_bbox_2d", "park.jpg"):
    ...     print(kind.value, value, sep=": ")
    image: park.jpg
    text: Find every instance of "dog" in the image. Return one bounding box for each, as a JSON \
list in this form: [{"bbox_2d": [x_min, y_min, x_max, y_max]}, ...]. Answer with nothing else.

    Args:
        label: what to find: a label, an expression, or several labels.
        format: format of the boxes: the end of a FindIt name, as ``xyxy_json``.
        images: path of the image, or paths of the frames in their order.
        family: ``objdet`` (every instance of the labels), ``refexp`` (the object that an
            expression describes), ``refexp_all`` (every object that it describes, possibly none),
            ``insdet`` (the object of the references).
        references: paths of images of the object, for ``insdet``.
        caption: a text about the image that is shown before the prompt.

    Returns:
        The parts in the order in which a model sees them: (kind, text or path) each.

    Raises:
        VariantError: the format or the family does not exist, or does not go with the arguments.
    """
    return BENCHMARK.prompts()[0].message(
        *custom_query(label, format, images, family=family, references=references, caption=caption)
    )


def custom_query(
    label: str | Sequence[str],
    format: str,
    images: ImagePath | Sequence[ImagePath],
    *,
    family: Family | str = Family.OBJDET,
    references: Sequence[ImagePath] = (),
    caption: str = "",
    size: tuple[int, int] = (0, 0),
) -> tuple[FindItQuery, FindItVariant]:
    """Return a custom query and its variant."""
    paths = (images,) if isinstance(images, (str, PathLike)) else tuple(images)
    labels = (label,) if isinstance(label, str) else tuple(label)
    if not paths or not labels:
        raise VariantError(f"at least one {'label' if paths else 'image'} is needed")
    several = not isinstance(label, str)
    variant = variant_of(format, len(paths), several, family, bool(caption))
    if variant.has_references != bool(references):
        how = "with" if variant.has_references else "without"
        why = f"is asked {how} references (images of the object)"
        raise VariantError(f"{variant.family_name} {why}")
    query = FindItQuery(
        0,
        ", ".join(labels),
        *size,
        tuple(fspath(path) for path in paths),
        NOTHING_TO_FIND,
        support=tuple(fspath(path) for path in references),
        caption=caption,
    )
    return query, variant


# --- replies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplyMarks:
    """What is known of the texts around an answer, besides the usual marks of thoughts."""

    thoughts: MarksLike | None = None
    thought_opened: bool = False  # By the prompt, so replies begin within a thought
    answer: MarksLike | None = None  # What stands between them is read

    def __post_init__(self) -> None:
        if not isinstance(self.thought_opened, bool):
            raise MarksError(f"thought_opened: {self.thought_opened!r} should be True or False")

    @property
    def rule(self) -> ThoughtRule:
        """Return the rule of thoughts, or raise MarksError."""
        return USUAL_THOUGHTS if self.thoughts is None else rule_of(thought_marks(self.thoughts))

    @property
    def opening(self) -> str:
        """Return the mark that the prompt wrote; "" if it wrote none."""
        if not self.thought_opened:
            return ""
        return THINK.opens if self.thoughts is None else thought_marks(self.thoughts).opens

    @property
    def around_answer(self) -> ThoughtMarks | None:
        """Return the marks of answers, or raise MarksError."""
        return None if self.answer is None else thought_marks(self.answer, "answer_marks")


USUAL_MARKS = ReplyMarks()


def replies_of(values: Iterable[ReplyLike], marks: ReplyMarks = USUAL_MARKS) -> list[Reply]:
    """Return replies with their places as their indices.

    >>> (reply,) = replies_of(["so</think><answer>[]</answer>"],
    ...                       ReplyMarks(thought_opened=True, answer="<answer> </answer>"))
    >>> reply.answer, reply.recorded.thought
    ('[]', 'so')

    Raises:
        TypeError: a value is no reply.
        MarksError: marks are no pair of texts.
    """
    replies = [_reply(at, value) for at, value in enumerate(values)]
    if marks is USUAL_MARKS:
        return replies
    rule = marks.rule
    around = marks.around_answer
    if marks.thoughts is not None:
        replies = [replace(reply, thoughts=rule) for reply in replies]
    if marks.opening:
        replies = [_in_thought(reply, marks.opening) for reply in replies]
    if around is not None:
        replies = [_between(reply, around) for reply in replies]
    return replies


def _in_thought(reply: Reply, opening: str) -> Reply:
    """Return a reply with the mark that its prompt wrote, unless its thought was taken out."""
    has_it = reply.text.lstrip().startswith(opening)
    if reply.failed or reply.recorded.thought or has_it:
        return reply
    return replace(reply, text=opening + reply.text)


def _between(reply: Reply, marks: ThoughtMarks) -> Reply:
    """Return a reply whose answer is what the last marks enclose; without them all of it."""
    split = reply.split
    begin = split.answer.rfind(marks.opens)
    if reply.failed or begin < 0:
        return reply
    begin += len(marks.opens)
    end = split.answer.rfind(marks.closes, begin)
    answer = split.answer[begin:end] if end >= 0 else split.answer[begin:]
    record = replace(
        reply.recorded,
        thought=reply.recorded.thought or split.thought,
        ends_in_thought=reply.ends_in_thought,
    )
    return replace(reply, text=answer.strip(), recorded=record)


_PLAIN = ReplyRecord()


def _reply(at: int, value: ReplyLike) -> Reply:
    if value is None:
        return Reply(at, "", NO_REPLY)
    if isinstance(value, str):
        return Reply(at, value, _PLAIN)
    if isinstance(value, Reply):
        return Reply(at, value.text, value.recorded, thoughts=value.thoughts)
    if messages := messages_in(value):
        try:
            text, thought = last_answer(messages)
        except NotAReplyError as error:
            raise TypeError(f"reply {at}: {error}") from None
        return Reply(at, text, ReplyRecord(thought=thought) if thought else _PLAIN)
    raise TypeError(
        f"reply {at}: {type(value).__name__} is neither text nor messages "
        '{"role": "assistant", "content": …} (None: the call failed)'
    )


def is_single(value: object) -> bool:
    """Tell whether a value is a single reply; messages of the assistant alone are many."""
    if value is None or isinstance(value, (str, Reply)):
        return True
    messages = messages_in(value)
    return len(messages) == 1 or any(not is_assistant(message) for message in messages)
