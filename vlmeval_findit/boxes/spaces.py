"""Coordinate spaces: what a model's numbers are relative to (protocol section 4).

Pixels of the original are ``(x - left) * W / w`` and ``(y - top) * H / h``. The space comes from
the run's record or the model's row; it is never guessed from the numbers or the truth.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ..core import Group, PluginTable, no_effect, quoted_value, suggestion

Size = tuple[int, int]  # (width, height) of an image in pixels


class ImageExtent(NamedTuple):
    """Where an image lies in a reply's numbers: its size and its upper left corner."""

    width: float
    height: float
    left: float = 0.0
    top: float = 0.0


class ToPixels(NamedTuple):
    """A reply's numbers as pixels: ``x * scale_x + left``, ``y * scale_y + top``."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    left: float = 0.0
    top: float = 0.0

    def extent(self, width: int, height: int) -> ImageExtent:
        """Return where a width x height image lies in the reply's numbers.

        >>> ToPixels(0.64, 0.48).extent(640, 480)
        ImageExtent(width=1000.0, height=1000.0, left=0.0, top=0.0)
        """
        across = self.scale_x
        down = self.scale_y
        left = (0.0 - self.left) / across
        top = (0.0 - self.top) / down
        return ImageExtent(width / across, height / down, left, top)


class SpaceError(ValueError):
    """No coordinate space is known, or its settings cannot be used."""


@dataclass(frozen=True, slots=True)
class Space:
    """A coordinate space with the settings of the run."""

    kind: str  # A row of :data:`SPACE_KINDS`
    scene_max_size: int | None = None  # Longer side in pixels of scenes as sent (None: not shrunk)
    # Bounds, ``two_step`` and ``factor`` are ``smart_resize``'s: wrong bounds score near 0
    min_pixels: int | None = None
    max_pixels: int | None = None
    two_step: bool = False
    factor: int | None = None  # None: Qwen2.5-VL's 28
    # ``letterbox``: padded square in reply units (640: pixels, 1000, 1: fractions)
    side: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in SPACE_KINDS:
            raise SpaceError(
                f"unknown coordinate space {self.kind!r}{suggestion(self.kind, SPACE_KINDS)}"
            )
        needs = SPACE_KINDS[self.kind].needs
        if not all(getattr(self, name) for name in needs):
            example = " ".join(f"{name}={value}" for name, value in needs.items())
            raise SpaceError(
                f"{self.kind} needs the {' and '.join(needs)} that the run used, "
                f"for example {example}"
            )
        if self.side is not None and "side" not in needs:
            raise SpaceError(f"{self.kind} has no side: leave it out, or use kind=letterbox")
        if self.scene_max_size is not None and SPACE_KINDS[self.kind].of_file:
            raise SpaceError(
                f"{self.kind} has no scene_max_size, as it is of the file, not of a shrunk image: "
                "leave it out, or use kind=pixels"
            )
        for name in ("scene_max_size", "min_pixels", "max_pixels", "factor", "side"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpaceError(f"{name} should be at least 1, not {value}")
        if self.min_pixels and self.max_pixels and self.min_pixels > self.max_pixels:
            raise SpaceError(f"min_pixels {self.min_pixels} > max_pixels {self.max_pixels}")

    def as_dict(self) -> dict[str, Any]:
        """Return the kind and the settings that are stated."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value not in (None, False)}


def space_from(settings: str | Mapping[str, Any]) -> Space:
    """Make a space of a name (the release's, too) or a mapping of the fields of :class:`Space`.

    Raises:
        SpaceError: unknown name or field, or settings that cannot be used.
    """
    if isinstance(settings, str):
        settings = {"kind": settings}
    if not isinstance(settings, Mapping):
        raise SpaceError(f"a coordinate space is a name or its settings, not {settings!r}")
    fields = [each.name for each in dataclasses.fields(Space)]
    for key in settings:
        if key not in fields:
            raise SpaceError(
                f"unknown setting {key!r} of a coordinate space{suggestion(key, fields)}"
            )
    if "kind" not in settings:
        raise SpaceError(
            f"the kind of the coordinate space is missing; kinds: {', '.join(SPACE_KINDS)}"
        )
    kind = str(settings["kind"])
    try:
        return Space(**{**settings, "kind": ALIASES.get(kind, kind)})
    except TypeError as error:
        raise SpaceError(f"coordinate space {dict(settings)}: {error}") from None


_OF_RESIZE = ("min_pixels", "max_pixels", "two_step", "factor")


def stated_space(settings: str | Mapping[str, Any] | Space) -> Space:
    """Make a space that a user states: as :func:`space_from`, but keys without effect are refused.

    Records may have them. Which settings the kind of a plug-in uses is not known.

    Raises:
        SpaceError: as :func:`space_from`, or a key is of another kind of space.
    """
    space = settings if isinstance(settings, Space) else space_from(settings)
    row = SPACE_KINDS[space.kind]
    if space.kind not in SPACE_KINDS.builtin or row.needs.keys() & {*_OF_RESIZE}:
        return space
    unused = [name for name in _OF_RESIZE if name in space.as_dict()]
    if unused:
        why = f"{space.kind} has no bounds"
        raise SpaceError(no_effect(unused[0], why, "Leave it out, or use kind=smart_resize"))
    return space


@lru_cache(maxsize=65536)
def reply_extent(space: Space, width: int, height: int) -> ImageExtent:
    """Return where a width x height image lies in a reply; a SpaceError if a plug-in is wrong."""
    kind = SPACE_KINDS[space.kind]
    size = (width, height) if kind.of_file else as_sent(space, width, height)
    numbers = kind.reference(size, space)
    if space.kind not in SPACE_KINDS.builtin:
        _check(space.kind, numbers)
    return ImageExtent(*numbers)


def _check(kind: str, value: Any) -> None:
    numbers = value if isinstance(value, tuple) and len(value) in (2, 4) else ()
    good = all(isinstance(n, int | float) and abs(n) < 1e9 for n in numbers)
    if not numbers or not good or min(numbers[:2]) <= 0:
        raise SpaceError(
            f"the space {kind} of {SPACE_KINDS.plugin_of(kind)} gives {quoted_value(value)}"
        )


def reference_size(space: Space, width: int, height: int) -> tuple[float, float]:
    """Return the size (w, h) of a width x height image in the numbers of a reply."""
    return reply_extent(space, width, height)[:2]


@lru_cache(maxsize=65536)
def to_pixels(space: Space, width: int, height: int) -> ToPixels:
    """Return the map from a reply's numbers to pixels of the width x height original."""
    w, h, left, top = reply_extent(space, width, height)
    return ToPixels(width / w, height / h, -left * width / w, -top * height / h)


def as_sent(space: Space, width: int, height: int) -> Size:
    """Return the size in pixels of a width x height image after ``scene_max_size``."""
    limit = space.scene_max_size
    longer = max(width, height)
    if limit is None or longer <= limit:
        return width, height
    # A thin strip keeps at least one pixel.
    return max(round(width * limit / longer), 1), max(round(height * limit / longer), 1)


_SENDER_LIMIT = 4096  # Longer side to which senders of pixel coordinates shrink images first


def _sender_limited(size: Size) -> Size:
    """Shrink to at most 4096 on the longer side, truncating sizes."""
    longer = max(size)
    if longer <= _SENDER_LIMIT:
        return size
    return _truncated(size, _SENDER_LIMIT / longer)


def _truncated(size: Size, scale: float) -> Size:
    return max(int(size[0] * scale), 1), max(int(size[1] * scale), 1)


def _openai_high(size: Size, space: Space) -> Size:
    """Apply OpenAI's documented "high" sizing: side 2048, 2,500 patches of 32 pixels."""
    side = 2048
    patch = 32
    patches = 2500
    w, h = _sender_limited(size)
    if max(w, h) > side:
        w, h = _truncated((w, h), side / max(w, h))
    if math.ceil(w / patch) * math.ceil(h / patch) > patches:
        scale = math.sqrt(patch * patch * patches / (w * h))
        across = w * scale / patch
        down = h * scale / patch
        scale *= min(math.floor(across) / across, math.floor(down) / down)
        w, h = _truncated((w, h), scale)
    return w, h


def _claude(edge: int, tokens: int) -> Callable[[Size, Space], Size]:
    """Make Anthropic's sizing: padded edges up to ``edge``, up to ``tokens`` 28-pixel patches."""
    patch = 28

    def fits(long: int, short: int) -> bool:
        across = math.ceil(long / patch)
        down = math.ceil(short / patch)
        return max(across, down) * patch <= edge and across * down <= tokens

    def reference(size: Size, space: Space) -> Size:
        w, h = _sender_limited(size)
        aspect = max(w, h) / min(w, h)

        def shorter(long: int) -> int:
            return max(round(long / aspect), 1)

        if fits(w, h):
            return w, h
        # Binary search for the largest longer edge that fits.
        low = 1
        high = max(w, h)
        while low < high:
            middle = (low + high + 1) // 2
            if fits(middle, shorter(middle)):
                low = middle
            else:
                high = middle - 1
        return (low, shorter(low)) if w >= h else (shorter(low), low)

    return reference


_QWEN2_5_FACTOR = 28  # Side of one Qwen2.5-VL visual token (two patches) in pixels


def smart_resize(
    size: Size, min_pixels: int, max_pixels: int, factor: int = _QWEN2_5_FACTOR
) -> Size:
    """Resize (w, h) as Qwen's processors do: multiples of ``factor`` within the bounds."""

    def rounded(edge: int) -> int:
        return max(factor, round(edge / factor) * factor)

    def shrunk(edge: int) -> int:
        return max(factor, math.floor(edge / beta / factor) * factor)

    def enlarged(edge: int) -> int:
        return math.ceil(edge * beta / factor) * factor

    width, height = size
    pixels = rounded(width) * rounded(height)
    if pixels > max_pixels:
        beta = math.sqrt(width * height / max_pixels)
        return shrunk(width), shrunk(height)
    if pixels < min_pixels:
        beta = math.sqrt(min_pixels / (width * height))
        return enlarged(width), enlarged(height)
    return rounded(width), rounded(height)


_CHAT_BOUNDS = (4 * 28**2, 16384 * 28**2)


def chat_resize(size: Size) -> Size:
    """Apply the first of the two resizes of Qwen2.5-VL's chat interface to (w, h)."""
    return smart_resize(size, *_CHAT_BOUNDS)


def _smart_resize(size: Size, space: Space) -> Size:
    assert space.min_pixels is not None
    assert space.max_pixels is not None
    if space.two_step:
        size = chat_resize(size)
    return smart_resize(size, space.min_pixels, space.max_pixels, space.factor or _QWEN2_5_FACTOR)


def _letterbox(size: Size, space: Space) -> ImageExtent:
    """Scale to a longer side of ``side``, centred in a square, as YOLO and LLaVA do."""
    assert space.side is not None
    width, height = (space.side * edge / max(size) for edge in size)
    return ImageExtent(width, height, (space.side - width) / 2, (space.side - height) / 2)


@dataclass(frozen=True, slots=True)
class SpaceKind:
    """A kind of coordinate space."""

    name: str
    release_name: str
    means: str
    # (w, h[, left, top]) of an image as sent, in the numbers
    reference: Callable[[Size, Space], tuple[float, ...]]
    # Required settings of :class:`Space`, each with an example
    needs: Mapping[str, int] = field(default_factory=dict)
    of_file: bool = False  # Of the image file, whatever size of it was sent
    unit: str = ""  # What numbers count, in a word that replies may state; "": no such word


PIXELS = "pixels"  # What numbers count in spaces of pixels


def _of_the_image(name: str, release_name: str, means: str, full: float, unit: str) -> SpaceKind:
    """Make the row of a space that counts shares of width and height."""
    return SpaceKind(name, release_name, means, lambda *_: (full, full), unit=unit)


_ROWS = (
    _of_the_image("grid1000", "standard", "1/1000 of width and height", 1000.0, "thousandths"),
    _of_the_image("unit", "unit_rescale", "fractions of width and height", 1.0, "fractions"),
    _of_the_image("percent", "percent", "percent of width and height", 100.0, "percent"),
    SpaceKind(
        "pixels",
        "no_rescale",
        "pixels of the sent image, at most 4096 a side",
        lambda size, _: _sender_limited(size),
        unit=PIXELS,
    ),
    SpaceKind(
        "file_pixels",
        "file_pixels",
        "pixels of the image file, however large",
        lambda size, _: size,
        of_file=True,
        unit=PIXELS,
    ),
    SpaceKind(
        "openai_high",
        "openai_high",
        "pixels after OpenAI's 'high' resize",
        _openai_high,
        unit=PIXELS,
    ),
    SpaceKind(
        "claude_standard",
        "claude_standard",
        "pixels after Anthropic's resize to 1568 pixels",
        _claude(edge=1568, tokens=1568),
        unit=PIXELS,
    ),
    SpaceKind(
        "claude_highres",
        "claude_highres",
        "pixels after Anthropic's resize to 2576 pixels",
        _claude(edge=2576, tokens=4784),
        unit=PIXELS,
    ),
    SpaceKind(
        "smart_resize",
        "smart_resize",
        "pixels of a Qwen processor's resize",
        _smart_resize,
        {"min_pixels": 200_704, "max_pixels": 1_605_632},
        unit=PIXELS,
    ),
    SpaceKind(
        "letterbox",
        "letterbox",
        "a square of `side` with the image in its middle",
        _letterbox,
        {"side": 640},
    ),
)

ALIASES: dict[str, str] = {row.release_name: row.name for row in _ROWS}


def _problem(row: SpaceKind) -> str | None:
    """Say why a plug-in's row cannot be used; its sizes are checked in :func:`reply_extent`."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*", row.name) or row.name in ALIASES:
        return f"{row.name!r} is not a name of a space, or is another space's"
    fields = {each.name for each in dataclasses.fields(Space)} - {"kind"}
    if not {*row.needs} <= fields:
        needs = quoted_value(row.needs, 40)
        return f"needs should be some of {', '.join(sorted(fields))}, not {needs}"
    if callable(row.reference):
        return None
    return f"reference should not be {quoted_value(row.reference, 40)}"


# Kinds of coordinate spaces by name; plug-ins add rows
SPACE_KINDS: PluginTable[SpaceKind] = PluginTable(
    Group.SPACES, {row.name: row for row in _ROWS}, SpaceKind, _problem
)


# Of boxes that answer no picture that was sent: the truth, other programs' predictions
FILE_PIXELS = Space("file_pixels")


def spaces_help() -> str:
    """Format the table of coordinate spaces for error messages and ``--help``."""
    return "\n".join(f"  {row.name:<16} {row.means}" for row in SPACE_KINDS.values())
