"""Formats, boxes and the reading that the tests of lenient parsing share."""

from __future__ import annotations

from vlmeval_findit.boxes import (
    Corners,
    ImageExtent,
    LenientReply,
    ReplyFormat,
    parse_leniently,
    read,
)

TEXT = ReplyFormat("text", "xyxy")
TEXT_SIZES = ReplyFormat("text", "xywh")
TEXT_CENTRES = ReplyFormat("text", "cxcywh")
TEXT_YX = ReplyFormat("text", "yxyx")
TEXT_CORNERS = ReplyFormat("text", "all")
TEXT_LABELS = ReplyFormat("text", "xyxy", multilabel=True)
TEXT_VIDEO = ReplyFormat("text", "xyxy", frames=3)
POINT = ReplyFormat("text", "point")
JSON = ReplyFormat("json", "xyxy", "bbox_2d")
JSON_LABELS = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True)
NESTED = ReplyFormat("json", "xyxy", "bbox_2d", "nested")

A: Corners = (100, 200, 300, 400)
B: Corners = (500, 600, 700, 800)
A_JSON = '{"bbox_2d": [100, 200, 300, 400]}'
B_JSON = '{"bbox_2d": [500, 600, 700, 800]}'
GRID1000 = ImageExtent(1000, 1000)


def leniently(reply: str, form: ReplyFormat) -> LenientReply | None:
    return parse_leniently(reply, form, read(reply, form), GRID1000)
