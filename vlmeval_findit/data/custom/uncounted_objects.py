"""What says that an object does not count: one table of flags for every format.

Files call them ``iscrowd``, ``is_crowd``, ``isCrowd``, ``Crowd`` …; case and punctuation make no
difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ...core import quoted_value
from ..annotated_samples import CROWD, DIFFICULT, IGNORED, AnnotationError
from .annotation_values import plain_name

# Why an object does not count, by the flag of it, first what changes scoring most
_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("crowd", "group", "groupof"), CROWD),
    **dict.fromkeys(("difficult", "hard"), DIFFICULT),
    **dict.fromkeys(("ignore", "ignored", "invalid", "dontcare", "donotcare"), IGNORED),
}

# Further names of classes whose boxes mark where nothing counts: KITTI, VisDrone, UA-DETRAC
_CLASSES = frozenset(
    (
        "dontcare",
        "donotcare",
        "ignore",
        "ignored",
        "ignoredregion",
        "ignoredregions",
        "ignoreregion",
        "ignoreregions",
        "ignorearea",
        "dontcount",
        "background",
        "void",
    )
)

_YES = ("1", "1.0", "true", "yes")
# OpenImages writes -1 for "not known", VOC "Unspecified".
_NO = ("", "0", "0.0", "false", "no", "-1", "none", "null", "unspecified")


@cache
def meaning_of_flag(name: str) -> str:
    """Return why an object with this flag does not count; empty: it is no such flag.

    >>> meaning_of_flag("isCrowd"), meaning_of_flag("IsGroupOf"), meaning_of_flag("occluded")
    ('crowd regions', 'crowd regions', '')
    """
    plain = plain_name(name)
    return _FLAGS.get(plain) or _FLAGS.get(plain.removeprefix("is"), "")


def why_ignored(stated: Mapping[str, Any], where: str) -> str:
    """Return why an object does not count by its flags; empty: it counts.

    Raises an AnnotationError for a flag whose value says neither yes nor no.
    """
    if not any(stated.values()):
        # As most flags of most objects: 0
        return ""
    reasons = [
        meaning_of_flag(name) for name, value in stated.items() if _is_set(name, value, where)
    ]
    return min(reasons, key=_ORDER.index, default="")


_ORDER = (CROWD, DIFFICULT, IGNORED)


def _is_set(name: str, value: Any, where: str) -> bool:
    if not value or not meaning_of_flag(name):
        return False
    if isinstance(value, Mapping):
        # A checkbox of VIA: the chosen ones of its options
        chosen = [option for option, is_chosen in value.items() if is_chosen]
        value = chosen[0] if len(chosen) == 1 else bool(chosen)
    plain = str(value).strip().lower()
    if plain not in _YES and plain not in _NO:
        raise AnnotationError(f"{where}, {name}: {quoted_value(value, 40)} should be 0 or 1")
    return plain in _YES


def says_not_to_count(label: str) -> bool:
    """Return whether a class is called as those are where nothing counts.

    >>> [says_not_to_count(name) for name in ("DontCare", "ignored regions", "Car")]
    [True, True, False]
    """
    return plain_name(label) in _CLASSES
