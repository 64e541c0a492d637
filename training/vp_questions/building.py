"""Questions as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from training.vp_questions.asking import Posed
from training.vp_questions.making import lettered, options_of
from training.vp_questions.plan import Absence
from vlmeval_findit.benchmarks.vpbench.vp_query import VPQuery
from vlmeval_findit.marks.style import STYLES, Style


def rows(asked: Sequence[Posed], seed: int, source: str) -> list[VPQuery]:
    """Questions as rows of a table."""
    letters = lettered(asked, seed)
    return [
        VPQuery(
            index=index,
            label=one.question,
            images=(picture_name(index),),
            hint=one.hint,
            question=one.question,
            options=options_of(one, letter),
            answer=letter,
            amount=str(one.amount),
            shapes=(one.slot.style.shape.value,),
            properties=_properties(one.slot.style, one.slot.colour),
            kind=one.slot.kind,
            absent=one.slot.absence is Absence.TRUE,
            source=source,
            cluster=one.picture,
        )
        for index, (one, letter) in enumerate(zip(asked, letters, strict=True), 1)
    ]


def _properties(style: Style, colour: str) -> tuple[str, ...]:
    """Colour, variant and line width, as far as the shape has them."""
    has_width = STYLES[style.shape][style.variant].has_width
    known = (colour, style.variant, f"width {style.width}" if has_width else "")
    return tuple(filter(None, known))


def picture_name(index: int) -> str:
    """The file of a row's picture."""
    return f"{index:05d}.png"
