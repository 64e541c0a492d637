"""What the authors published of stage 1, as far as it is known: no scorer can tell it from ours."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.benchmark import Published
from . import PREFIX
from .metrics import AS_PUBLISHED, shape_metric
from .tables import STAGE_1

SOURCE = "arXiv 2511.11438, stage 1"

_SHAPES = ("box", "oval", "tag", "mask", "point", "scribble")

# By shape, then of all questions; in percent.
_ROWS = """
Human           97.3 94.9 89.0 85.3 90.7 82.8 90.0
InternVL3-78B   94.3 95.8 93.9 80.0 81.6 80.9 88.0
GPT-4o          74.2 79.8 70.0 65.3 49.3 64.5 68.8
Qwen2.5-VL-72B  92.9 92.8 92.3 68.7 69.6 74.8 82.8
"""


def published() -> Iterator[Published]:
    """The rows, beside every figure by the authors' reading."""
    names = (*(shape_metric(shape).name for shape in _SHAPES), AS_PUBLISHED.name)
    for line in _ROWS.strip().splitlines():
        model, *figures = line.split()
        values = dict(zip(names, map(float, figures), strict=True))
        yield Published(model, STAGE_1.removeprefix(PREFIX), values, SOURCE)
