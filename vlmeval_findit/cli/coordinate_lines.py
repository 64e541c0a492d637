"""Lines about coordinates that the checks of runs and of deployments share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ..coords import Distortion, describe_convention
from ..core import as_called


def some_described(names: Sequence[str], most: int = 3) -> str:
    """Describe the first of many conventions: "pixels of the image, xywh | … | 2 more"."""
    descriptions = [describe_convention(name) for name in names[:most]]
    if len(names) > most:
        descriptions.append(f"{len(names) - most} more")
    return " | ".join(descriptions)


def folded(lines: Sequence[str]) -> Iterator[str]:
    """Fold lines at 80 columns; continuations are indented, and paths and flags stay whole."""
    for text in lines:
        line = as_called(text.rstrip())
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        yield from wrap(
            line,
            80,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [line]


def scale_and_offset(distortion: Distortion) -> str:
    """Return a distortion in words: scale and offset by axis, with standard errors."""
    scale = distortion.scale
    offset = 100 * distortion.at_origin
    errors = zip(distortion.scale_error, 100 * distortion.at_origin_error, strict=True)
    return "; ".join(
        f"{axis} × {scale[at]:.3f} ± {by_scale:.3f}, {offset[at]:+.1f} ± {by_offset:.1f} %"
        for at, (axis, (by_scale, by_offset)) in enumerate(zip("xy", errors, strict=True))
    )
