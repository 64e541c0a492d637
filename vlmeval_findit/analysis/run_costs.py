"""What the answers of a scored run cost."""

from __future__ import annotations

from ..scoring.query_costs import RunCosts
from ..scoring.scored_run import Run

__all__ = ["RunCosts", "run_costs"]


def run_costs(run: Run) -> RunCosts:
    """Return what the answers of a run cost: seconds, tokens, dollars, pixels; None: not known."""
    return run.provenance.costs
