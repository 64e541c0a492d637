"""A format of the grid: the part of a variant that is no dataset's."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...boxes.reply_format import DEFAULT_KEY, DEFAULT_STRUCTURE, default_key
from .variant import Variant, endings


@dataclass(frozen=True, slots=True)
class Format:
    """What a box is asked to look like."""

    representation: str
    output: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    centre: str | None = None
    mark: str | None = None
    decoding: str | None = None

    def __str__(self) -> str:
        parts = [self.representation, self.output]
        parts += [self.key] * (self.key != default_key(self.representation))
        parts += [self.structure] * (self.structure != DEFAULT_STRUCTURE)
        parts += endings(self.centre, self.mark, self.decoding)
        return " ".join(parts)


def format_of(variant: Variant) -> Format:
    """The format of a variant."""
    return Format(**{field.name: getattr(variant, field.name) for field in fields(Format)})
