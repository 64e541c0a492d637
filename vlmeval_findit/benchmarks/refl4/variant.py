"""Ways of asking Ref-L4: those of any FindIt dataset whose answer is one box.

``FindIt_RefL4Full_<val|test|all>_<variant>``: the grammar behind the split is FindIt's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

from ...boxes.representation import Judging
from ...core.spelling import nearest
from ..findit.datasets import Dataset, Family
from ..findit.names import parse_format
from ..findit.variant import Variant, VariantError
from . import PREFIX
from .annotations import Split

IMAGES = "RefL4"
"""The key of the image folder: FindIt's own subset of Ref-L4 has it too, with the same names."""


def table_name(split: Split) -> str:
    """The name of the annotation table of a split."""
    return f"RefL4Full_{split.value}"


DATASETS = MappingProxyType(
    {table_name(split): Dataset(table_name(split), Family.REFEXP, images=IMAGES) for split in Split}
)
"""The tables of Ref-L4 as FindIt describes datasets."""


@dataclass(frozen=True, slots=True)
class RefL4Variant(Variant):
    """One way of asking one split."""

    judged_by: ClassVar[frozenset[Judging]] = frozenset({Judging.BY_OVERLAP})

    @property
    def data(self) -> Dataset:
        return DATASETS[self.dataset]

    @property
    def split(self) -> Split:
        return Split(self.dataset.rpartition("_")[2])


@lru_cache(maxsize=4096)
def parse(name: str) -> RefL4Variant:
    """The way of asking that a name stands for.

    >>> parse("FindIt_RefL4Full_val_xyxy_json_bbox_2d").column
    'RefL4Full_val'

    Raises:
        VariantError: the name is not valid; the message names the part and the nearest valid one.
    """
    if not name.startswith(PREFIX):
        raise VariantError(f"{name}: a name of Ref-L4 begins with {PREFIX}")
    said, _, rest = name.removeprefix(PREFIX).partition("_")
    splits = [split.value for split in Split]
    if said not in splits:
        raise VariantError(f"{name}: no split {said!r}{nearest(said, splits)}")
    made, why = parse_format(rest, DATASETS[table_name(Split(said))], RefL4Variant)
    if name.endswith("_") and rest:
        made, why = None, "a name does not end in '_'"
    if not isinstance(made, RefL4Variant):
        raise VariantError(f"{name}: {why}")
    return made
