"""Load the table that a run was scored over."""

from __future__ import annotations

from ..core import file_sha256
from ..data import load_dataset
from ..protocol import AnyDataset
from ..scoring import Run


def load_scored_dataset(run: Run) -> AnyDataset:
    """Load a run's dataset.

    Raises:
        FileNotFoundError: its table is nowhere.
        ValueError: it cannot be read, or is not the table that was scored.
    """
    dataset = load_dataset(run.variant.name)
    check_table(dataset, run)
    return dataset


def check_table(dataset: AnyDataset, run: Run) -> None:
    """Raise ValueError if a run was scored over another table than its dataset has now."""
    checksum = file_sha256(dataset.table)
    if checksum != run.provenance.table_sha256:
        raise ValueError(
            f"{dataset.table} has SHA-256 {checksum[:12]}…, but the run was scored over a table "
            f"with {run.provenance.table_sha256[:12]}…"
        )
