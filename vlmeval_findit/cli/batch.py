"""``--batch`` of ``search`` and ``sweep``: calls in batches."""

from __future__ import annotations

import argparse
import sys

from ..engine.batch_backend import Batching
from ..engine.config import Sweep
from ..models.http.batch.records import BatchKind

_HELP = (
    "ask in batches, at half the price where a provider has such an interface: that of the one "
    "address of --endpoints; files: write them for `vllm run-batch`, and read what it wrote"
)


def add_batch_flag(parser: argparse.ArgumentParser) -> None:
    """The flag."""
    parser.add_argument("--batch", choices=[kind.value for kind in BatchKind], help=_HELP)


def batch_kind(args: argparse.Namespace) -> BatchKind | None:
    """The batch interface that the flags name."""
    return BatchKind(args.batch) if args.batch else None


def batching(sweep: Sweep) -> Batching | None:
    """How the calls of a sweep are batched; None: they are made one by one.

    Raises:
        ValueError: batches do not heed another flag.
    """
    if sweep.batch is None:
        return None
    if sweep.confidences and sweep.batch.is_plain:
        raise ValueError(f"--confidences: the {sweep.batch.value} interface gives none")
    folder = sweep.journal.with_name(f"{sweep.journal.name}.batch-files")
    return Batching(sweep.batch, folder, lambda line: print(line, file=sys.stderr))
