"""What the user says of annotations that their files do not tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..annotated_samples import BoxForm, Units
from .class_rules import ClassRules


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Options of every reader; ``data import`` refuses those that a format cannot use."""

    units: Units | None = None  # Of boxes; None: as the format has them
    form: BoxForm | None = None  # Of numbers without names; None: as the format has them
    split: str | None = None  # None: the validation split, where it is clear
    frames: int | None = None  # Videos are thinned to so many; None: all have one number
    # Of texts that do not say it themselves; None: UTF-8
    encoding: str | None = None
    first_pixel: int | None = None  # Number of the first pixel of VOC; None: as it stands, 0
    classes: ClassRules = field(default_factory=ClassRules)
    # Whether images without objects ask for a class that is not there; published sets do not.
    negatives: bool = True
    # Whether every image is asked about every class of the set, there or not
    all_classes: bool = False
    masks: bool = True  # Whether masks are read; only points are compared with them
    # Told of what was read, and how many more
    progress: Callable[[str, int], None] = lambda what, count: None
