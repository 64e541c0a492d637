"""What the authors published of stage 2; by which way of asking is not known to us."""

from __future__ import annotations

from collections.abc import Iterator

from ....core.benchmark import Published
from ..metrics import MEAN_OVER_SOURCES, source_metric

WHERE = "arXiv 2511.11438, stage 2; the way of asking is not known to us"

COLUMN = "Stage2_bvp"
"""Where they are shown."""

_SOURCES = ("MIA", "3D", "street", "GUI", "SGG")

# By source, then the mean, which is over a sixth source too; in percent.
_ROWS = """
InternVL3-78B  53.4 87.0 67.5 97.8 95.0 79.1
InternVL3-38B  48.4 88.7 59.8 99.0 94.2 77.2
Molmo-72B      62.8 78.0 60.8 96.3 91.8 76.2
"""


def published() -> Iterator[Published]:
    """The rows."""
    names = (*(source_metric(source).name for source in _SOURCES), MEAN_OVER_SOURCES.name)
    for line in _ROWS.strip().splitlines():
        model, *figures = line.split()
        yield Published(model, COLUMN, dict(zip(names, map(float, figures), strict=True)), WHERE)
