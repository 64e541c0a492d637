"""The release's own task names: other names of variants."""

from __future__ import annotations

from ...boxes.reply_format import DEFAULT_KEY, DEFAULT_STRUCTURE, KEYS, OUTPUTS, STRUCTURES
from ...boxes.representation import GRID
from . import PREFIX
from .datasets import BENCHMARK, Dataset, Family
from .name_parts import NameParts
from .variant import Variant, problem

SUBSETS: dict[str, tuple[Dataset, bool]] = {
    subset.file: (row, multilabel)
    for row in BENCHMARK.values()
    for multilabel in (False, True)
    if (subset := row.subset_for(multilabel)) is not None
}
"""The table of each subset file of the release, as (dataset, multi-label)."""


def parse_alias(name: str) -> Variant | None:
    """The variant of one of the release's task names, or None.

    Read: ``FindIt_<subset file>_<family>_<text|json>_<representation>[_<key>][_<structure>]`` with
    our ``_f<N>``, ``_cx-…`` and ``_vp-…`` at the end where they are needed, as in
    ``FindIt_refcoco_testA_refexp_json_xyxy_bbox_2d_per_box``.
    """
    rest = NameParts(name.removeprefix(PREFIX))
    subset = rest.take(SUBSETS)
    family = rest.take(f.value for f in Family)
    output = rest.take(OUTPUTS)
    representation = rest.take(GRID)
    if subset is None or family is None or output is None or representation is None:
        return None
    key, structure = rest.take(KEYS), rest.take(STRUCTURES)
    frames = rest.take_match(r"f([1-9][0-9]{0,3})")
    centre = rest.take_match(r"cx-([a-z]+)")
    mark = rest.take_match(r"vp-([a-z]+)")
    row, multilabel = SUBSETS[subset]
    variant = Variant(
        dataset=row.name,
        representation=representation,
        output=output,
        key=key or DEFAULT_KEY,
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=multilabel,
        frames=int(frames) if frames else row.frames,
        centre=centre,
        mark=mark,
    )
    if rest.text or problem(variant) or family not in (row.family.value, variant.family.value):
        return None
    return variant
