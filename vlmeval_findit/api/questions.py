"""Custom questions, which are of no table, in the formats of the grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..benchmarks.findit.annotation_tables import FindItTask
from ..benchmarks.findit.dataset_names import parse_format
from ..benchmarks.findit.findit_datasets import Dataset
from ..benchmarks.findit.findit_datasets import Family as Family
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.variant import Variant, VariantError
from ..boxes.spaces import Space, SpaceError, spaces_help
from ..core.formatting import nearest
from ..core.question import Task
from ..core.replies import Recorded, Reply
from ..core.settings import Settings

SpaceLike = str | Mapping[str, Any] | Space
"""A coordinate space: its name, the fields of :class:`.Space`, or one."""

Chat = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Messages ``{"role": …, "content": …}`` of a chat, or one of them."""

ReplyLike = str | Reply | Chat | None
"""What a model said: a text, a reply with its record, the messages of a chat, of which the last of
the assistant is the reply, or None where the call failed."""

_MOST_FRAMES = 9999

_CUSTOM = {
    family.value: Dataset(
        family.value,
        family,
        images="own",
        has_multilabel=family in (Family.OBJDET, Family.OBJDET_VIDEO),
        has_caption=True,
        has_negatives=family is Family.REFEXP_ALL,
        frames=_MOST_FRAMES if family.is_video else 1,
    )
    for family in Family
}
"""Custom questions as FindIt describes datasets: one row a family."""


@dataclass(frozen=True, slots=True)
class CustomVariant(Variant):
    """How a custom question is asked; ``dataset`` is the name of a family."""

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
) -> Variant:
    """Return how a question of a format is asked.

    >>> variant_of("xyxy_json_bbox_2d", frames=8).reply.key
    'bbox_2d'
    >>> variant_of("xyxy_jsn")
    Traceback (most recent call last):
    vlmeval_findit.benchmarks.findit.variant.VariantError: xyxy_jsn: no output format 'jsn': \
did you mean json?

    Args:
        format: ``<representation>_<text|json>[_<key>][_<structure>]…``, the end of a FindIt name.
        frames: how many frames of a video were shown; 1 is a picture.
        multilabel: whether boxes have labels of their own.
        family: what kind of thing is asked for.
        caption: whether a caption is shown.

    Raises:
        VariantError: there is no such format; the message names the part and the nearest valid one.
    """
    if not isinstance(frames, int) or not 1 <= frames <= _MOST_FRAMES:
        raise VariantError(f"frames: {frames!r} should be a whole number, 1 to {_MOST_FRAMES}")
    row = _CUSTOM[_over_frames(_family(family), frames).value]
    parts = ["multilabel"] * multilabel + ["caption"] * caption
    parts += [f"f{frames}"] * row.family.is_video
    made, why = parse_format("_".join([*parts, format]), row, CustomVariant)
    if made is None:
        raise VariantError(f"{format}: {why}")
    if (made.multilabel, made.caption, made.frames) != (multilabel, caption, frames):
        raise VariantError(
            f"{format}: frames, labels and captions are arguments of their own "
            "(frames=8, multilabel=True), and no part of a format"
        )
    return made


def _family(said: Family | str) -> Family:
    known = {family.value: family for family in Family}
    if isinstance(said, str) and said not in known:
        raise VariantError(f"no family {said!r}{nearest(said, known)}")
    return Family(said)


def _over_frames(family: Family, frames: int) -> Family:
    if frames == 1:
        return family
    known = {one.value: one for one in Family}
    video = known.get(f"{family.value.removesuffix('_video')}_video")
    if video is None:
        raise VariantError(f"{family.value} is asked of one picture, not of {frames} frames")
    return video


def replies_of(said: Iterable[ReplyLike]) -> list[Reply]:
    """Return replies with their places as their indices."""
    return [_reply(at, one) for at, one in enumerate(said)]


_NO_ANSWER = Recorded(call={"error": "no reply"})
_PLAIN = Recorded()
_UNSTATED: Mapping[str, Any] = {}


def _reply(at: int, said: ReplyLike) -> Reply:
    if said is None:
        return Reply(at, "", _NO_ANSWER, _UNSTATED)
    if isinstance(said, str):
        return Reply(at, said, _PLAIN, _UNSTATED)
    if isinstance(said, Reply):
        return Reply(at, said.text, said.recorded, _UNSTATED)
    messages = _messages(said)
    if messages:
        return Reply(at, _last_words(at, messages), _PLAIN, _UNSTATED)
    raise TypeError(
        f"reply {at}: {type(said).__name__} is neither a text nor messages "
        '{"role": "assistant", "content": …} (None: the call failed)'
    )


def is_single(said: object) -> bool:
    """Tell one reply from many; messages of the assistant alone are many."""
    if said is None or isinstance(said, (str, Reply)):
        return True
    messages = _messages(said)
    return len(messages) == 1 or any(not _of_assistant(one) for one in messages)


def _messages(said: object) -> list[Mapping[str, Any]]:
    """Return the messages of a chat, as trainers give completions; none of anything else."""
    given = [said] if isinstance(said, Mapping) else said
    if not isinstance(given, Sequence) or isinstance(given, str):
        return []
    is_chat = all(isinstance(one, Mapping) and "content" in one for one in given)
    return list(given) if is_chat else []


def _of_assistant(message: Mapping[str, Any]) -> bool:
    return bool(message.get("role", "assistant") == "assistant")


def _last_words(at: int, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the assistant's last message."""
    for one in filter(_of_assistant, reversed(messages)):
        content = one["content"]
        if content is None or isinstance(content, str):
            return content or ""
        return "".join(str(part.get("text") or "") for part in content)
    raise TypeError(f"reply {at}: no message of the assistant among {len(messages)}")


def task_of(variant: Variant, queries: Iterable[FindItQuery]) -> FindItTask:
    """Make a task without a table."""
    return Task("one's own", variant, Path(), {query.index: query for query in queries})


def settings_of(space: SpaceLike | None, replies: Iterable[Reply]) -> Settings:
    """Return the settings of a score in a space.

    Raises:
        SpaceError: nothing says it; it is not guessed.
    """
    if space is None and not all(reply.failed or reply.recorded.space for reply in replies):
        raise SpaceError(
            f"the coordinate space of the replies is not known, and it is not guessed. "
            f"Say space=… :\n{spaces_help()}"
        )
    if space is None:
        space = next((r.recorded.space for r in replies if r.recorded.space), "grid1000")
    return Settings(space=space.as_dict() if isinstance(space, Space) else space)
