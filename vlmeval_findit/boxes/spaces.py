"""Coordinate spaces: which size a model's numbers are relative to (protocol section 4).

A space is a function from the original size (W, H) to the size (w, h) that the numbers refer to:
(1000, 1000) for thousandths, (1, 1) for fractions, the resized image for pixels as sent.  A box is
brought back to pixels of the original by ``x * W / w`` and ``y * H / h``, whatever the space.

The space is a fact about a run, not a guess about numbers: it comes from what the run recorded or
from the model's row, and is never inferred from the size of the numbers or from the ground truth.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..core.plugin_table import Table
from ..core.plugins import Group
from ..core.spelling import nearest

ReferenceSize = tuple[float, float]
"""(width, height)."""

_SENDER_LIMIT = 4096
"""Longer side to which senders of pixel coordinates shrink an image first."""


class SpaceError(ValueError):
    """No coordinate space is known, or its settings are not usable."""


@dataclass(frozen=True, slots=True)
class Space:
    """A coordinate space with the settings that the run had.

    ``kind`` is a row of :data:`KINDS`.  ``scene_max_size`` is the longer side in pixels to which
    the run shrank its scenes before sending (None: it did not).  The pixel bounds, ``two_step`` and
    ``factor`` (None: Qwen2.5-VL's 28) are those of ``smart_resize``; the bounds are needed there:
    with wrong ones perfect boxes score near zero.
    """

    kind: str
    scene_max_size: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    two_step: bool = False
    factor: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpaceError(f"no coordinate space {self.kind!r}{nearest(self.kind, KINDS)}")
        bounds = (self.min_pixels, self.max_pixels)
        if self.kind == "smart_resize" and not all(b is not None and b > 0 for b in bounds):
            raise SpaceError(
                "smart_resize needs the min_pixels and max_pixels that the run used, "
                "for example min_pixels=200704 max_pixels=1605632"
            )
        if self.min_pixels and self.max_pixels and self.min_pixels > self.max_pixels:
            raise SpaceError(f"min_pixels {self.min_pixels} > max_pixels {self.max_pixels}")
        if self.scene_max_size is not None and self.scene_max_size < 1:
            raise SpaceError(f"scene_max_size must be at least 1, not {self.scene_max_size}")
        if self.factor is not None and self.factor < 1:
            raise SpaceError(f"factor must be at least 1, not {self.factor}")

    def as_dict(self) -> dict[str, Any]:
        """The settings that are set, for a provenance file; :func:`space_from` reads them back."""
        values = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self))
        return {name: value for name, value in values if value not in (None, False)}


def space_from(settings: str | Mapping[str, Any]) -> Space:
    """A space from a name (ours or the release's) or a mapping with the fields of :class:`Space`.

    Raises:
        SpaceError: unknown name or field; the message lists what there is.
    """
    if isinstance(settings, str):
        settings = {"kind": settings}
    if not isinstance(settings, Mapping):
        raise SpaceError(f"a coordinate space is a name or its settings, not {settings!r}")
    fields = {field.name: field.type for field in dataclasses.fields(Space)}
    for key in settings:
        if key not in fields:
            raise SpaceError(f"no setting {key!r} of a coordinate space{nearest(key, fields)}")
    if "kind" not in settings:
        raise SpaceError(f"the kind of the coordinate space is missing: {', '.join(KINDS)}")
    kind = str(settings["kind"])
    try:
        return Space(**{**settings, "kind": ALIASES.get(kind, kind)})
    except TypeError as error:
        raise SpaceError(f"coordinate space {dict(settings)}: {error}") from None


@lru_cache(maxsize=65536)
def reference_size(space: Space, width: int, height: int) -> ReferenceSize:
    """The size (w, h) that the numbers of a reply about a width x height image refer to."""
    size = KINDS[space.kind].reference(_shrunk_scene(space, width, height), space)
    if space.kind not in KINDS.ours:
        _check_size(space.kind, size)
    return size


def _check_size(kind: str, size: Any) -> None:
    """Refuse a size of a plug-in's that no number can refer to.

    Raises:
        SpaceError: it is none.
    """
    numbers = size if isinstance(size, tuple) and len(size) == 2 else ()
    if not numbers or not all(isinstance(n, int | float) and 0 < n < 1e9 for n in numbers):
        raise SpaceError(f"the space {kind} of {KINDS.plugin_of(kind)} gives {size!r:.60}")


def scale_to_pixels(space: Space, width: int, height: int) -> tuple[float, float]:
    """The factors (x, y) from a reply's numbers to pixels of the width x height original."""
    w, h = reference_size(space, width, height)
    return width / w, height / h


def as_sent(space: Space, width: int, height: int) -> tuple[int, int]:
    """The size in pixels at which the run's own scene limit sends a width x height image."""
    return _shrunk_scene(space, width, height)


def _shrunk_scene(space: Space, width: int, height: int) -> tuple[int, int]:
    limit, longer = space.scene_max_size, max(width, height)
    if limit is None or longer <= limit:
        return width, height
    # No image has no width: a strip keeps at least one pixel.
    return max(round(width * limit / longer), 1), max(round(height * limit / longer), 1)


def _sender_limited(size: tuple[int, int]) -> tuple[int, int]:
    """At most 4096 on the longer side; sizes truncated."""
    longer = max(size)
    if longer <= _SENDER_LIMIT:
        return size
    return _truncated(size, _SENDER_LIMIT / longer)


def _truncated(size: tuple[int, int], scale: float) -> tuple[int, int]:
    return max(int(size[0] * scale), 1), max(int(size[1] * scale), 1)


def _thousandths(size: tuple[int, int], space: Space) -> ReferenceSize:
    return 1000.0, 1000.0


def _fractions(size: tuple[int, int], space: Space) -> ReferenceSize:
    return 1.0, 1.0


def _pixels_as_sent(size: tuple[int, int], space: Space) -> ReferenceSize:
    return _sender_limited(size)


def _openai_high(size: tuple[int, int], space: Space) -> ReferenceSize:
    """OpenAI's documented "high" sizing with side 2048 and 2,500 patches of 32 pixels."""
    side, patch, patches = 2048, 32, 2500
    w, h = _sender_limited(size)
    if max(w, h) > side:
        w, h = _truncated((w, h), side / max(w, h))
    if math.ceil(w / patch) * math.ceil(h / patch) > patches:
        scale = math.sqrt(patch * patch * patches / (w * h))
        across, down = w * scale / patch, h * scale / patch
        scale *= min(math.floor(across) / across, math.floor(down) / down)
        w, h = _truncated((w, h), scale)
    return w, h


def _claude(edge: int, tokens: int) -> Callable[[tuple[int, int], Space], ReferenceSize]:
    """Anthropic's sizing: padded edges at most ``edge``, at most ``tokens`` 28-pixel patches."""
    patch = 28

    def fits(long: int, short: int) -> bool:
        across, down = math.ceil(long / patch), math.ceil(short / patch)
        return max(across, down) * patch <= edge and across * down <= tokens

    def reference(size: tuple[int, int], space: Space) -> ReferenceSize:
        w, h = _sender_limited(size)
        aspect = max(w, h) / min(w, h)

        def shorter(long: int) -> int:
            return max(round(long / aspect), 1)

        if fits(w, h):
            return w, h
        # The largest longer edge that fits: fitting is monotone, so halve the integers between.
        low, high = 1, max(w, h)
        while low < high:
            middle = (low + high + 1) // 2
            if fits(middle, shorter(middle)):
                low = middle
            else:
                high = middle - 1
        return (low, shorter(low)) if w >= h else (shorter(low), low)

    return reference


_QWEN2_5_FACTOR = 28
"""Pixels of the side of two of Qwen2.5-VL's patches, which make one visual token."""


def smart_resize(
    size: tuple[int, int], min_pixels: int, max_pixels: int, factor: int = _QWEN2_5_FACTOR
) -> tuple[int, int]:
    """The Qwen processors' resize of (w, h): multiples of ``factor`` within the pixel bounds."""
    w, h = (max(factor, round(edge / factor) * factor) for edge in size)
    if w * h > max_pixels:
        beta = math.sqrt(size[0] * size[1] / max_pixels)
        w, h = (max(factor, math.floor(edge / beta / factor) * factor) for edge in size)
    elif w * h < min_pixels:
        beta = math.sqrt(min_pixels / (size[0] * size[1]))
        w, h = (math.ceil(edge * beta / factor) * factor for edge in size)
    return w, h


_CHAT_BOUNDS = (4 * 28**2, 16384 * 28**2)


def chat_resize(size: tuple[int, int]) -> tuple[int, int]:
    """The first of the two resizes of Qwen2.5-VL's chat interface, of (w, h) in pixels."""
    return smart_resize(size, *_CHAT_BOUNDS)


def _smart_resize(size: tuple[int, int], space: Space) -> ReferenceSize:
    assert space.min_pixels is not None
    assert space.max_pixels is not None
    if space.two_step:
        size = chat_resize(size)
    return smart_resize(size, space.min_pixels, space.max_pixels, space.factor or _QWEN2_5_FACTOR)


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table: ``reference`` maps the size as sent to the size numbers refer to."""

    name: str
    release_name: str
    means: str
    reference: Callable[[tuple[int, int], Space], ReferenceSize]


_ROWS = (
    Kind("grid1000", "standard", "thousandths of width and height", _thousandths),
    Kind("unit", "unit_rescale", "fractions of width and height", _fractions),
    Kind("pixels", "no_rescale", "pixels of the image as sent", _pixels_as_sent),
    Kind("openai_high", "openai_high", "pixels after OpenAI's 'high' resize", _openai_high),
    Kind(
        "claude_standard",
        "claude_standard",
        "pixels after Anthropic's resize to 1568 pixels",
        _claude(edge=1568, tokens=1568),
    ),
    Kind(
        "claude_highres",
        "claude_highres",
        "pixels after Anthropic's resize to 2576 pixels",
        _claude(edge=2576, tokens=4784),
    ),
    Kind("smart_resize", "smart_resize", "pixels of a Qwen processor's resize", _smart_resize),
)

ALIASES: dict[str, str] = {row.release_name: row.name for row in _ROWS}


def _problem(row: Kind) -> str | None:
    """Why a plug-in's row cannot be used; what it says of sizes is seen when one is asked for."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*", row.name) or row.name in ALIASES:
        return f"{row.name!r} is no name of a coordinate space, or another space's"
    return None if callable(row.reference) else f"reference should not be {row.reference!r:.40}"


KINDS: Table[Kind] = Table(Group.SPACES, {row.name: row for row in _ROWS}, Kind, _problem)


def spaces_help() -> str:
    """The table of coordinate spaces as lines of text, for error messages and ``--help``."""
    return "\n".join(f"  {row.name:<16} {row.means}" for row in KINDS.values())
