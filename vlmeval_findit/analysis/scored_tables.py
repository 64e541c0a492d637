"""Load the table that a run was scored over."""

from __future__ import annotations

from ..core import file_sha256
from ..data import load_dataset
from ..protocol import AnyDataset
from ..scoring import Run, RunError, score_command


def load_scored_dataset(run: Run) -> AnyDataset:
    """Load a run's dataset.

    Raises:
        FileNotFoundError: its table is nowhere.
        RunError: it is not the table that was scored; the message says what to type.
        ValueError: it cannot be read.
    """
    dataset = load_dataset(run.variant.name)
    try:
        check_table(dataset, run)
    except ValueError as error:
        again = score_command(run.path, run.variant.name)
        raise RunError(f"{error}. Score it again: {again}") from None
    return dataset


def check_table(dataset: AnyDataset, run: Run) -> None:
    """Raise ValueError if a run was scored over another table than its dataset has now."""
    checksum = file_sha256(dataset.table)
    if checksum != run.provenance.table_sha256:
        raise ValueError(
            f"{dataset.table} has SHA-256 {checksum[:12]}…, but the run was scored over a table "
            f"with {run.provenance.table_sha256[:12]}…"
        )
