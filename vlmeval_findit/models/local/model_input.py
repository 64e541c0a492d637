"""What a model on this machine is shown of a query, without its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.messages import Message
from ...core.question import Question
from ..families import LocalFamily
from ..row import ModelRow
from .pictures import Pictures
from .run_settings import RunSettings
from .runner import plan

if TYPE_CHECKING:
    from .encoding import Encoded, Encoder


class NotHereError(ValueError):
    """The processor is not on this machine, or what it needs is not installed."""


def shown(row: ModelRow, checkpoint: str, question: Question, message: Message) -> Encoded:
    """A message (images as paths of files) as the model takes it: text, tokens, sizes.

    Raises:
        NotHereError: the checkpoint's processor is not here (nothing is downloaded).
        OSError: an image cannot be read.
    """
    how = plan(row, question, RunSettings())
    return _encoder(how.family, checkpoint).encode(message, Pictures(how.bounds), how.bounds)


def _encoder(family: LocalFamily, checkpoint: str) -> Encoder:
    try:
        from .encoding import Encoder
        from .transformer import load_processor

        return Encoder(load_processor(checkpoint, local_files_only=True), family)
    except (ImportError, OSError) as error:
        raise NotHereError(f"{checkpoint}: {str(error).splitlines()[0]}") from None
