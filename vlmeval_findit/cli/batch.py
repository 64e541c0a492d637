"""``--batch`` of ``search`` and ``sweep``: calls in batches."""

from __future__ import annotations

import argparse

from ..models.http.batch.records import BatchKind
from ..sweeps.config import Sweep

_HELP = (
    "ask in batches, at half the price where a provider has such an interface: that of the one "
    "address of --endpoints, or of --provider"
)


def add_batch_flag(parser: argparse.ArgumentParser) -> None:
    """The flag."""
    parser.add_argument("--batch", choices=[kind.value for kind in BatchKind], help=_HELP)


def batch_kind(args: argparse.Namespace) -> BatchKind | None:
    """The batch interface that the flags name."""
    return BatchKind(args.batch) if args.batch else None


def check_batch(sweep: Sweep) -> None:
    """Refuse what batches do not heed, with a ValueError."""
    if sweep.batch is not None and sweep.confidences and sweep.batch.is_plain:
        raise ValueError(f"--confidences: the {sweep.batch.value} interface gives none")
