"""Where a loss lies: in pictures of some sizes or shapes, while the others agree with the figure.

It is no cause, but says where to look for one: a resize, a turn, or a limit of some pictures only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from ..benchmarks.findit import ScoredReply
from ..boxes import Size
from .cause_evidence import Evidence
from .reproduction_records import CauseLook
from .stated_causes import find_group_loss

GROUPS = "some pictures"
# Of the published value: sizes are many, and some have less by chance
_LOW = 0.5


def picture_shape(size: Size) -> str:
    """Name pictures of the shape of a size, in words."""
    width, height = size
    if width == height:
        return "square pictures"
    return "wide pictures" if width > height else "tall pictures"


def _shape(scored: ScoredReply) -> str:
    return picture_shape((scored.query.width, scored.query.height))


def _file_type(scored: ScoredReply) -> str:
    suffix = PurePath(scored.query.images[0]).suffix
    return f"{suffix[1:].upper()} files" if suffix else ""


def _size(scored: ScoredReply) -> str:
    return f"pictures of {scored.query.width} x {scored.query.height}"


_GROUPS: tuple[Callable[[ScoredReply], str], ...] = (_shape, _file_type, _size)


def check_picture_groups(evidence: Evidence) -> CauseLook:
    """Look whether only pictures of some shapes, file types or sizes are lost."""
    for name_of in _GROUPS:
        loss = find_group_loss(evidence, name_of, below=_LOW)
        if loss is not None:
            cause = evidence.cause(
                GROUPS,
                loss.words("about"),
                loss.value,
                "Something treats these pictures otherwise (a turn, a resize, a limit): send one "
                "of them as it is and look at its boxes: python run_findit.py coords --model NAME",
                may_be=True,
            )
            return CauseLook(GROUPS, "the loss lies in some pictures", cause)
    return CauseLook(GROUPS, "no shape, file type or size of pictures has the loss alone")
