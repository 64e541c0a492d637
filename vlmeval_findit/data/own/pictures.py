"""The pictures of queries: every one is decoded, and every box brought to its stored pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ...boxes.records import Mask
from ...boxes.representation import Corners
from ...core.files import unsafe
from ...core.image_files import ImageFileError, Size, header, misfit, orientation, problem
from ...marks.region import PackedMask, RLEError, packed_mask
from .annotations import AnnotationError, Units
from .asked import AskedQuery, AskedSet
from .exif import Drawn, mask_to_stored, to_stored, turned_size


@dataclass(frozen=True, slots=True)
class OwnPicture:
    """A picture that can be used: its stored (width, height) and its EXIF orientation (1: none).

    ``stated`` is the size that the annotations state, which may be that of the turned picture.
    """

    size: Size
    orientation: int
    stated: Size | None

    @property
    def drawn(self) -> Drawn | None:
        """On which picture the boxes were drawn, where the stated size fits only one."""
        turned = turned_size(self.size, self.orientation)
        if self.stated is None or turned == self.size:
            return None
        return Drawn.STORED if self.stated == self.size else Drawn.TURNED


def checked_pictures(asked: AskedSet, folder: Path) -> dict[str, OwnPicture]:
    """Decode every picture that a query shows and hold it against what is stated of it.

    Raises an AnnotationError if one is not below the folder, is damaged, or has another size.
    """
    names = list(dict.fromkeys(name for q in asked.queries for name in (*q.images, *q.support)))
    with ThreadPoolExecutor(4) as pool:
        looked = pool.map(lambda name: _look(name, asked.sizes.get(name), folder), names)
        found = dict(zip(names, looked, strict=True))
    whys = [why for why in found.values() if isinstance(why, str)]
    refuse(whys, len(names), "images")
    return {name: one for name, one in found.items() if isinstance(one, OwnPicture)}


def refuse(whys: Sequence[str], count: int, what: str) -> None:
    """Raise an AnnotationError if there is a reason: how many there are and the first of them."""
    if whys:
        raise AnnotationError(f"{len(whys)} of {count} {what} cannot be used; the first: {whys[0]}")


def _look(name: str, stated: Size | None, folder: Path) -> OwnPicture | str:
    why = unsafe(name)
    if why:
        return f"{name!r} {why}, so it does not lie below {folder}"
    path = folder / name
    try:
        found = header(path)
        exchanged = stated is not None and stated == found.size[::-1]
        # Before anything is decoded: reading the orientation of some files does.
        why = misfit(found, found.size if exchanged else stated)
        turn = 1 if why else orientation(path)
    except ImageFileError as error:
        return str(error)
    fits = stated in (found.size, turned_size(found.size, turn))
    why = why or problem(path, found.size if fits else stated)
    return f"{path} {why}" if why else OwnPicture(found.size, turn, stated)


# --- which picture boxes are on -------------------------------------------------------------------


def placed(
    asked: AskedSet, pictures: Mapping[str, OwnPicture], said: Drawn | None
) -> tuple[tuple[AskedQuery, ...], tuple[str, ...]]:
    """The queries with boxes in stored pixels, and what is to be said of how they came there.

    Args:
        asked: what was read.
        pictures: their pictures.
        said: on which pictures boxes were drawn, where a viewer turns them; the size that
            annotations state may say it too.

    Raises:
        AnnotationError: nobody says it, or the stated size says otherwise.
    """
    boxed = dict.fromkeys(
        q.images[frame]
        for q in asked.queries
        for frame in (*q.truth.frames, *(one.frame for one in q.truth.ignored))
    )
    turning = {name: pictures[name] for name in boxed if pictures[name].orientation != 1}
    drawn = _drawn(asked.source, turning, said)
    queries = tuple(_placed(query, pictures, drawn, asked.units) for query in asked.queries)
    return queries, tuple(_notes(turning, drawn))


def _placed(
    query: AskedQuery, pictures: Mapping[str, OwnPicture], drawn: Mapping[str, Drawn], units: Units
) -> AskedQuery:
    def box_of(box: Corners, frame: int) -> Corners:
        name = query.images[frame]
        return _corners(box, pictures[name], drawn.get(name), units)

    def mask_of(mask: Mask | None, frame: int) -> Mask | None:
        name = query.images[frame]
        if mask is None or drawn.get(name) is not Drawn.TURNED:
            return mask
        try:
            pixels = PackedMask(mask.height, mask.width, mask.packed).runs.mask()
        except RLEError as error:
            raise AnnotationError(f"{query.where}: {error}") from None
        return packed_mask(mask_to_stored(pixels, pictures[name].orientation))

    truth = query.truth
    return replace(
        query,
        truth=replace(
            truth,
            boxes=tuple(map(box_of, truth.boxes, truth.frames)),
            masks=tuple(map(mask_of, truth.masks, truth.frames)),
            ignored=tuple(
                one._replace(box=box_of(one.box, one.frame), mask=mask_of(one.mask, one.frame))
                for one in truth.ignored
            ),
        ),
    )


def _drawn(source: Path, turning: Mapping[str, OwnPicture], said: Drawn | None) -> dict[str, Drawn]:
    by_size = {name: one.drawn for name, one in turning.items()}
    for name, stated in by_size.items():
        if said is not None and stated is not None and stated is not said:
            raise AnnotationError(
                f"{source}: --exif {said.value}, but the size stated for {name} is that of the "
                f"{stated.value} picture"
            )
    known = {name: stated or said for name, stated in by_size.items()}
    unknown = [name for name, drawn in known.items() if drawn is None]
    if unknown:
        first = unknown[0]
        raise AnnotationError(
            f"{source}: {len(unknown)} pictures have an EXIF orientation by which viewers turn "
            f"them, the first: {first} (orientation {turning[first].orientation}). Do boxes count "
            "the stored pixels, or those of the turned picture? Say --exif stored or --exif turned"
        )
    return {name: drawn for name, drawn in known.items() if drawn is not None}


def _corners(box: Corners, picture: OwnPicture, drawn: Drawn | None, units: Units) -> Corners:
    is_turned = drawn is Drawn.TURNED
    x1, y1, x2, y2 = box
    if units is Units.FRACTIONS:
        w, h = turned_size(picture.size, picture.orientation) if is_turned else picture.size
        x1, y1, x2, y2 = x1 * w, y1 * h, x2 * w, y2 * h
    corners = (x1, y1, x2, y2)
    return to_stored(corners, picture.orientation, picture.size) if is_turned else corners


def _notes(turning: Mapping[str, OwnPicture], drawn: Mapping[str, Drawn]) -> list[str]:
    notes = []
    for way in Drawn:
        names = [name for name, one in turning.items() if one.drawn is way and drawn[name] is way]
        if names:
            notes.append(
                f"{len(names)} pictures with an EXIF orientation, the first: {names[0]}: boxes "
                f"count the {way.value} picture, whose size the annotations state"
            )
    return notes
