"""What a model on this machine is shown of a query, without its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..places import image_folder
from ..prompts import Message, PartKind
from ..records import Query
from ..release_prompts import prompt_set
from ..variant import Variant
from .families import LocalFamily
from .local import RunSettings, plan
from .pictures import Pictures
from .table import ModelRow

if TYPE_CHECKING:
    from .encoding import Encoded, Encoder


class NotHereError(ValueError):
    """The processor is not on this machine, or what it needs is not installed."""


def shown(row: ModelRow, checkpoint: str, query: Query, variant: Variant) -> Encoded:
    """A query as the model takes it: the exact text, and the sizes of its images.

    Raises:
        NotHereError: the checkpoint's processor is not here (nothing is downloaded).
        ImageError, OSError: an image cannot be read.
    """
    how = plan(row, variant, RunSettings())
    return _encoder(how.family, checkpoint).encode(
        located(query, variant), Pictures(how.bounds), how.bounds
    )


def _encoder(family: LocalFamily, checkpoint: str) -> Encoder:
    try:
        from .encoding import Encoder
        from .transformer import load_processor

        return Encoder(load_processor(checkpoint, local_files_only=True), family)
    except (ImportError, OSError) as error:
        raise NotHereError(f"{checkpoint}: {str(error).splitlines()[0]}") from None


def located(query: Query, variant: Variant) -> Message:
    """The message of a query, images as paths of files."""
    folder = image_folder(variant.row.images).path
    _, make = prompt_set()
    return tuple(
        part._replace(value=str(folder / part.value)) if part.kind is PartKind.IMAGE else part
        for part in make(query, variant)
    )
