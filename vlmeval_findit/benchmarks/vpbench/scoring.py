"""A reply as a row of sums, by both readings; what is drawn of it."""

from __future__ import annotations

from ...core.drawing import Drawing, DrawnLine, DrawnPicture, Role
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from .choice import Choice, Reason
from .extraction import published_letter
from .metrics import UNSCORED, row_slices
from .query import VPQuery
from .reading import read


def chosen(query: VPQuery, reply: Reply) -> Choice:
    """What a reply chose, with what its run recorded: a cut reply without a letter is truncated."""
    if reply.failed:
        return Choice(reason=Reason.FAILED)
    choice = read(reply.text, dict(query.options))
    was_cut = reply.cut or reply.ends_in_thought
    if was_cut and choice.reason in (Reason.EMPTY, Reason.NO_CHOICE):
        return Choice(reason=Reason.TRUNCATED)
    return choice


def scored_row(query: VPQuery, reply: Reply) -> ScoredRow:
    """One question as a row of sums; without a known answer it is counted and nothing else."""
    choice, published = chosen(query, reply), published_letter(reply.text)
    failed = choice.reason is Reason.FAILED
    sums = {
        "asked": 1,
        "answered": not failed,
        "right": choice.letter == query.answer,
        "right_as_published": published == query.answer,
        "read": choice.letter is not None,
        "absent": query.absent and not failed,
        "hallucinated": query.absent and choice.letter not in (None, query.answer),
        **{reason.value: choice.reason is reason for reason in Reason},
    }
    return ScoredRow(
        index=query.index,
        source=query.photograph or query.images[0],
        sums={name: int(value) for name, value in sums.items()} if query.answer else UNSCORED,
        failed=failed,
        reason=choice.reason.value if choice.reason and (query.answer or failed) else None,
        slices=row_slices(query),
        details={"label": query.label, "chosen": choice.letter, "as_published": published},
    )


def draw(query: VPQuery, row: ScoredRow) -> Drawing:
    """The pictures; all options, the right one marked; what was chosen, by both readings."""
    options = dict(query.options)
    lines = [
        DrawnLine(Role.TRUTH if letter == query.answer else Role.OPTION, _option(letter, text))
        for letter, text in query.options
    ]
    letter, published = row.details["chosen"], row.details["as_published"]
    if letter is not None:
        lines.append(_answer(query, letter, _option(letter, options.get(letter, ""))))
    if published != letter:
        said = "no letter" if published is None else _option(published, options.get(published, ""))
        lines.append(_answer(query, published, f"as published: {said}"))
    pictures = tuple(
        DrawnPicture(path, query.width, query.height, number)
        for number, path in enumerate(query.images)
    )
    return Drawing(pictures, query.support, tuple(lines))


def _option(letter: str, text: str) -> str:
    return f"{letter}. {text or 'no such option'}"


def _answer(query: VPQuery, letter: str | None, said: str) -> DrawnLine:
    """Neither right nor wrong where no answer is known."""
    if not query.answer:
        return DrawnLine(Role.OPTION, said)
    return DrawnLine(Role.HIT if letter == query.answer else Role.MISS, said)
