"""Classes: COCO's joined with those of Objects365.

The authors' table is the one of the published figures.  Ten of its entries name the class before
the one that was meant (bird is a bus there), which the corrected table mends; sports balls are a
class of their own in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from .categories import COCO, OBJECTS365

OWN_CLASS = 100000
"""Number that stands for no class of Objects365: COCO's sports balls are several there."""

_AUTHORS = (
    "1:1 2:47 3:6 4:59 5:115 6:56 7:117 8:66 9:22 10:41 11:177 13:128 14:250 15:25 16:56 17:140 "
    "18:93 19:79 20:100 21:97 22:145 23:296 24:179 25:181 27:39 28:40 31:13 32:44 33:194 34:220 "
    "35:119 36:174 37:100000 38:155 39:138 40:114 41:146 42:147 43:205 44:9 46:36 47:11 48:89 "
    "49:85 50:94 51:26 52:113 53:83 54:266 55:104 56:142 57:153 58:235 59:144 60:151 61:98 62:3 "
    "63:51 64:26 65:76 67:98 70:154 72:37 73:74 74:116 75:133 76:107 77:62 78:164 79:135 80:278 "
    "81:82 82:134 84:19 85:95 86:31 87:170 88:70 89:328 90:227"
)

ONE_TOO_LOW = frozenset({16, 31, 33, 35, 51, 55, 67, 72, 88, 89})
"""COCO ids whose entry in the authors' table is one too low."""

_COCO_PREFIX, _O365_PREFIX = "refcoco_", "o365_"


class PictureSource(Enum):
    """Where an annotated object comes from; the value is its name in tables."""

    COCO = "COCO"
    O365_P1 = "O365-P1"
    """Objects365, of a class that COCO has too."""
    O365_P2 = "O365-P2"
    """Objects365, of a class that COCO lacks."""


ClassTable = Mapping[str, str]
"""From an annotation's ``ori_category_id`` to its class; what is not in it is its own class."""

_PAIRS = [tuple(map(int, pair.split(":"))) for pair in _AUTHORS.split()]

AUTHORS: ClassTable = MappingProxyType(
    {f"{_COCO_PREFIX}{coco}": f"{_O365_PREFIX}{o365}" for coco, o365 in _PAIRS}
)
"""The table of the published figures."""

CORRECTED: ClassTable = MappingProxyType(
    {
        f"{_COCO_PREFIX}{coco}": f"{_O365_PREFIX}{o365 + (coco in ONE_TOO_LOW)}"
        for coco, o365 in _PAIRS
    }
)
"""The same with the ten wrong entries mended."""

_SHARED = frozenset(CORRECTED.values())
# By the corrected table: which classes COCO has is a question about names, not about the evaluator.


def class_of(ori_category_id: str, table: ClassTable) -> str:
    """The class of an annotation.

    >>> class_of("refcoco_16", AUTHORS), class_of("refcoco_16", CORRECTED)
    ('o365_56', 'o365_57')
    >>> class_of("o365_300", AUTHORS)
    'o365_300'
    """
    return table.get(ori_category_id, ori_category_id)


def class_name(key: str) -> str:
    """The name of a class or ``ori_category_id``; what is unknown is its own name.

    >>> class_name("o365_57"), class_name("refcoco_16"), class_name("o365_100000")
    ('Wild Bird', 'bird', 'sports ball')
    """
    prefix, _, number = key.rpartition("_")
    if not (number.isascii() and number.isdecimal()):
        return key
    if f"{prefix}_" == _O365_PREFIX:
        return COCO[37] if int(number) == OWN_CLASS else OBJECTS365.get(int(number), key)
    if f"{prefix}_" == _COCO_PREFIX:
        return COCO.get(int(number), key)
    return key


def source_of(ori_category_id: str) -> PictureSource | None:
    """Where an annotated object comes from; None where its id says neither."""
    if ori_category_id.startswith(_COCO_PREFIX):
        return PictureSource.COCO
    if ori_category_id.startswith(_O365_PREFIX):
        return PictureSource.O365_P1 if ori_category_id in _SHARED else PictureSource.O365_P2
    return None
