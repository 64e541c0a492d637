"""Metrics as ratios of sums, and the slices of a question.

Failed calls only count in metrics that say so, and in the published ones: the authors read them
like any reply.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...marks import Shape
from ...protocol import Better, Metric, Published, SumKey, SumName, Sums, weighted
from .vp_query import SOURCE_NAMES, VPQuery, mark_colours, mark_styles, mark_widths


def _share(name: str, part: str, whole: str, key: str, **more: Any) -> Metric:
    return Metric(name, {part: 1}, {whole: 1}, empty=None, key=key, **more)


@dataclass(frozen=True, slots=True)
class PublishedShare(Metric):
    """The authors' score: they round the fraction to four decimals, not its percentage to two.

    >>> AS_PUBLISHED.printed({"right_as_published": 7, "asked": 160})
    4.37
    """

    def printed(self, sums: Sums) -> float | None:
        shares = []
        for ratio in self.ratios(sums):
            asked = weighted(sums, ratio.whole)
            if asked:
                shares.append(round(weighted(sums, ratio.part) / asked, 4))
        # Their mean over sources is of rounded scores.
        return round(100 * statistics.mean(shares), 2) if shares else self.empty


def _published(name: str, right: SumName, asked: SumName, key: str, **more: Any) -> Metric:
    return PublishedShare(
        f"{name} (as published)", {right: 1}, {asked: 1}, "", None, key=key, **more
    )


def published_metric(kind: str, part: str) -> Metric:
    """Define the published accuracy on a shape of marks or a source."""
    right = SumKey("right_as_published", kind, part)
    asked = SumKey("asked", kind, part)
    return _published(part, right, asked, f"{part}_as_published", in_short_tables=False)


ACCURACY = _share("Accuracy", "right", "answered", "accuracy")
WITH_FAILURES = _share(
    "Accuracy (failed calls as wrong)", "right", "asked", "accuracy_failed_wrong"
)
READ = _share("Read", "readable", "answered", "read")  # replies with a readable letter

# Accuracy by the published reading of letters, failed calls as wrong
AS_PUBLISHED = _published("Accuracy", "right_as_published", "asked", "accuracy_as_published")
HALLUCINATION = _share(  # wrong letters to questions about a mark that is not there
    "Hallucination rate", "hallucinated", "absent", "hallucination_rate", better=Better.LOWER
)
MEAN_OVER_SOURCES = replace(  # sources weigh the same
    _published("Mean over sources", "right_as_published", "asked", "sources_as_published"),
    over="source",
    in_short_tables=False,
)

METRICS = (
    ACCURACY,
    AS_PUBLISHED,
    HALLUCINATION,
    READ,
    *(published_metric("shape", shape.value) for shape in Shape),
    MEAN_OVER_SOURCES,
    *(published_metric("source", source) for source in SOURCE_NAMES.values()),
)

RANKING = (WITH_FAILURES, ACCURACY, READ)
UNSCORED = {"unscored": 1}  # the sums of a question without a known answer

COUNTS = {  # sums in a score's table
    "right": "right",
    "right as published": "right_as_published",
    "about absent marks": "absent",
    "hallucinated": "hallucinated",
    "without a known answer": "unscored",
}


def row_slices(query: VPQuery) -> dict[str, str]:
    """Return the known slices of a question; several shapes are one value: ``box + oval``."""
    shape = _several(query.shapes)
    properties = _several(query.properties)
    colour = _several(mark_colours(query.properties))
    result = {
        "shape": shape,
        "amount": query.amount,
        "kind": query.kind.value,
        "property": properties,
        "colour": colour,
        "width": _several(mark_widths(query.properties)),
        "style": _several(mark_styles(query.properties)),
        "shape x colour": f"{shape}, {colour}" if shape and colour else "",
        "shape x property": f"{shape}, {properties}" if shape and properties else "",
        "mark": "absent" if query.absent else "present",
        "source": query.source,
    }
    return {name: value for name, value in result.items() if value}


def _several(values: Iterable[str]) -> str:
    return " + ".join(sorted(set(values)))


# --- what the authors published -------------------------------------------------------------------

# Stage 1 in percent: by shape, then all questions.
_STAGE_1 = """
Human           97.3 94.9 89.0 85.3 90.7 82.8 90.0
InternVL3-78B   94.3 95.8 93.9 80.0 81.6 80.9 88.0
GPT-4o          74.2 79.8 70.0 65.3 49.3 64.5 68.8
Qwen2.5-VL-72B  92.9 92.8 92.3 68.7 69.6 74.8 82.8
"""

# How a row of stage 1 was asked, where it is told
_STAGE_1_ASKED = {
    "InternVL3-78B": "asked with a description of the mark; without it 81.3 over all questions",
}

# Over all questions of stage 1, without the description of the mark
_STAGE_1_PLAIN = {"InternVL3-78B": 81.3}

# Stage 2 in percent: by source, then the mean, which includes a sixth source.
_STAGE_2 = """
InternVL3-78B  53.4 87.0 67.5 97.8 95.0 79.1
InternVL3-38B  48.4 88.7 59.8 99.0 94.2 77.2
Molmo-72B      62.8 78.0 60.8 96.3 91.8 76.2
"""


def published() -> Iterator[Published]:
    """Yield the authors' results."""
    shapes = ("box", "oval", "tag", "mask", "point", "scribble")
    sources = ("MIA", "3D", "street", "GUI", "SGG")
    first = [*(f"{shape} (as published)" for shape in shapes), AS_PUBLISHED.name]
    second = [*(f"{source} (as published)" for source in sources), MEAN_OVER_SOURCES.name]
    for column, names, rows in (
        ("Stage1", first, _STAGE_1),
        ("Stage2_bvp", second, _STAGE_2),
    ):
        for line in rows.strip().splitlines():
            model, *numbers = line.split()
            values = dict(zip(names, map(float, numbers), strict=True))
            yield Published(model, column, values, _source(column, model))
    for model, accuracy in _STAGE_1_PLAIN.items():
        source = "arXiv 2511.11438, stage 1 without the description; accuracy over all questions"
        yield Published(model, "Stage1_plain", {AS_PUBLISHED.name: accuracy}, source)


def _source(column: str, model: str) -> str:
    """Name where a row is from, and in which conditions it was asked."""
    if column != "Stage1":
        asked = "the way of asking is not known to us; mean over sources, six of them"
        return f"arXiv 2511.11438, stage 2; {asked}"
    asked = _STAGE_1_ASKED.get(model, "whether the mark was described is not told")
    return f"arXiv 2511.11438, stage 1; {asked}; accuracy over all questions"
