"""Pages of label reviews with made-up rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image, ImageDraw

from vlmeval_findit.protocol import Answer, AuditRecord, Box, RowChoice
from vlmeval_findit.report import ReviewRow, Source, make_review_page

TABLE = "sha256:" + "7" * 64
VOTERS = ("run-of-model-a", "run-of-model-b", "run-of-model-c")
SIZE = (400, 300)
LABEL: Box = (40, 60, 160, 200)
PROPOSAL: Box = (220, 80, 360, 260)


def row_of(
    folder: Path,
    index: int,
    label: Answer | None = None,
    proposal: Answer | None = None,
    size: tuple[int, int] = SIZE,
    **fields: object,
) -> ReviewRow:
    """Make a row with a picture of its own: a blue and an orange thing."""
    image = folder / f"{index}.jpg"
    picture = Image.new("RGB", size, (90, 110 + index % 40, 90))
    pen = ImageDraw.Draw(picture)
    pen.ellipse(LABEL, fill=(60, 60, 170))
    pen.ellipse(PROPOSAL, fill=(200, 120, 60))
    picture.save(image)
    values = {
        "asked": f"the thing number {index}",
        "source": Source.MODELS,
        "drawn": RowChoice.LISTED,
        "voters": VOTERS,
        "votes": 2,
        "kind": "wrong object",
        "p": 0.987654,
        "single": True,
        **fields,
    }
    return ReviewRow(
        index=index,
        row=f"sha256:{index:064x}",
        image=image,
        size=size,
        label=Answer((LABEL,)) if label is None else label,
        other=Answer((PROPOSAL,)) if proposal is None else proposal,
        **values,  # type: ignore[arg-type]
    )


def random_row(folder: Path, index: int, **fields: object) -> ReviewRow:
    return row_of(folder, index, drawn=RowChoice.RANDOM, kind="", p=None, votes=0, **fields)  # type: ignore[arg-type]


def write_page(
    path: Path, rows: Sequence[ReviewRow], dataset: str = "Fruit", seed: int = 3
) -> Path:
    """Write the page of rows, and return it."""
    listed = tuple(row.index for row in rows if row.drawn is RowChoice.LISTED)
    audit = AuditRecord(TABLE, 1000, listed, 1000 - len(listed), seed, VOTERS)
    html = make_review_page(dataset, audit, rows, datetime.now(UTC))
    path.write_text(html, encoding="utf-8")
    return path
