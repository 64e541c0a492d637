"""The regions of a row: what its cells say of each picture, role and box.

Every function raises ValueError with a message that says what a cell should hold; whoever calls
knows file, row and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from . import values
from .row import Marked, Role, Source


def names(given: Sequence[str], data_file: Any) -> list[str]:
    """What the pictures of a row are called in its other cells."""
    listed = data_file if isinstance(data_file, list) else [data_file]
    numbered = list(given) == [str(at) for at in range(len(given))]
    if numbered and len(listed) == len(given) and all(isinstance(one, str) for one in listed):
        return listed
    return list(given)


def by_picture(value: Any, names: Sequence[str]) -> list[Any]:
    """What a cell says of each picture, in the order of pictures."""
    if value is None:
        return [None] * len(names)
    if isinstance(value, Mapping):
        if len(names) == 1 and set(value) <= {role.value for role in Role}:
            return [value]
        if set(value) == set(names):
            return [value[name] for name in names]
        files = {PurePosixPath(name).name: one for name, one in value.items()}
        wanted = [PurePosixPath(name).name for name in names]
        if len(value) == len(names) == 1:
            return list(value.values())
        if len(files) == len(wanted) and set(files) == set(wanted):
            return [files[name] for name in wanted]
        raise ValueError(f"is about {', '.join(value)}, the pictures are {', '.join(names)}")
    if len(names) == 1:
        return [value]
    if not isinstance(value, list) or len(value) != len(names):
        raise ValueError(f"has no entry for each of {len(names)} pictures")
    return value


def by_role(pictures: Sequence[Any], source: Source) -> list[dict[Role, Any]]:
    """What stands under each role, picture by picture.

    Lists name no roles: of two entries of the source that asks for relations the first is the
    subject.
    """
    found = []
    for value in pictures:
        if source is Source.SGG and isinstance(value, list) and len(value) == 2:
            found.append({Role.SUBJECT: value[0], Role.OBJECT: value[1]})
        else:
            found.append(values.roles(value))
    return found


class _Where(NamedTuple):
    picture: int
    role: Role


def marks_of(
    boxes: Sequence[Mapping[Role, Sequence[values.Numbers]]],
    polygons: Sequence[Mapping[Role, Any]],
) -> Iterator[Marked]:
    """The regions of a row, picture by picture, the subject before the object.

    Args:
        boxes: of every picture, by role, as they stand: nothing says yet what the numbers are.
        polygons: of every picture, by role, what a cell says of outlines.
    """
    outlined = {
        _Where(at, role): value for at, by in enumerate(polygons) for role, value in by.items()
    }
    for at, by in enumerate(boxes):
        for role, quads in by.items():
            lines = _one_a_box(outlined.pop(_Where(at, role), None), len(quads))
            for quad, line in zip(quads, lines, strict=True):
                yield Marked(at, role, quad, line)  # type: ignore[arg-type]
    for left in outlined:
        which = f"picture {left.picture + 1}, {left.role.value}"
        raise ValueError(f"has outlines of {which}, which has no box")


def _one_a_box(value: Any, boxes: int) -> list[values.Outlines]:
    """The outlines of each box."""
    if values.is_absent(value):
        return [()] * boxes
    if boxes == 1:
        return [values.outlines(value)]
    if len(value) != boxes:
        raise ValueError(f"has {len(value)} entries for {boxes} boxes")
    return [values.outlines(one) for one in value]
