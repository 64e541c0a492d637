"""A name that a user gives to a checkpoint: which known model it is run like."""

from __future__ import annotations

from ..core.model_names import check_model_name
from ..core.spelling import closest
from .revision import refuse_missing
from .row import ModelRow
from .table import find_model, local_names


def row_of_checkpoint(name: str, checkpoint: str, row: str | None = None) -> ModelRow:
    """The known model whose prompts and coordinates a checkpoint shares.

    Args:
        name: of the results; any, where ``row`` says what it is run like.
        checkpoint: a folder or an identifier.
        row: a row of the model table, or a name of one.

    Raises:
        ValueError: no row says how it is run, the checkpoint is not there, or no file can have
            the name.
    """
    check_model_name(name)
    known = find_model(row or name)
    if known is None or known.local is None:
        near = closest(row or name, ["Replay", *local_names()])
        meant = f": did you mean {near}?" if near else " (names: run_findit.py models)."
        raise ValueError(
            f"{name}={checkpoint}: no local model {row or name!r}{meant}"
            + ("" if row else " Say which model it is run like: --row Qwen3-VL")
        )
    refuse_missing(checkpoint)
    return known
