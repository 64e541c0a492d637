"""Names that datasets of one's own may have."""

from __future__ import annotations

import re

from ...benchmarks.findit import PREFIX
from ...benchmarks.findit.datasets import BENCHMARK, own_datasets
from ...boxes.representation import KEYS, OUTPUTS, REPRESENTATIONS, STRUCTURES
from .annotations import AnnotationError


def _grammar() -> dict[str, str]:
    """Every word that may stand between underscores in a variant's name, and what it is there."""
    words = {word: "a part of a JSON key" for key in KEYS for word in key.split("_")}
    words |= {word: "a part of a JSON structure" for s in STRUCTURES for word in s.split("_")}
    words |= dict.fromkeys(REPRESENTATIONS, "a representation")
    words |= dict.fromkeys(OUTPUTS, "an output format")
    words |= {"multilabel": "an axis of the grid", "caption": "an axis of the grid"}
    return words | {PREFIX.rstrip("_").lower(): "what every name begins with"}


def check_name(name: str, replace: bool) -> None:
    """Raise an AnnotationError for a name that would make the names of variants ambiguous."""
    if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name) or not re.search("[A-Za-z]", name):
        raise AnnotationError(
            f"name {name!r}: only letters, digits, '-', and single '_' between them"
        )
    grammar = _grammar()
    for part in name.lower().split("_"):
        if part in grammar:
            raise AnnotationError(f"name {name!r}: the part {part!r} is {grammar[part]}")
        if re.fullmatch(r"f\d+", part):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a number of frames")
        if part.startswith("cx-"):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a centre experiment")
    # Letters of both cases: tables are files, and some file systems do not tell them apart.
    taken = {row.name.lower(): row.name for row in BENCHMARK.values()}
    taken |= {
        subset.file.lower(): row.name
        for row in BENCHMARK.values()
        if (subset := row.subset) is not None
    }
    if name.lower() in taken:
        raise AnnotationError(f"name {name!r}: is the benchmark's own {taken[name.lower()]}")
    for own in own_datasets():
        if own.lower() == name.lower() and not (replace and own == name):
            raise AnnotationError(f"name {name!r}: {own} was imported before (--replace)")
