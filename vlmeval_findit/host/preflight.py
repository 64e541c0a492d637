"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from vlmeval.config import supported_VLM
from vlmeval.dataset import DATASET_CLASSES

from ..variant import nearest
from .models import FindItReplay


def preflight(names: Sequence[str], models: Sequence[str], args: Namespace) -> None:
    """Make every dataset once, as the host will.

    Raises:
        ValueError: what a dataset refuses; or a model that the host does not know.
    """
    if names and args.base_url is None:
        for model in models:
            if model not in supported_VLM:
                raise ValueError(
                    f"VLMEvalKit has no model {model!r}{nearest(model, supported_VLM)}"
                )
    for name in names:
        cls = next(c for c in DATASET_CLASSES if name in c.supported_datasets())
        cls(
            name,
            model=models,
            judge_args=args.judge_args,
            mode=args.mode,
            work_dir=args.work_dir,
            reuse=args.reuse,
        )


def add_replay(path: str) -> None:
    """Make ``Replay`` answer from a prediction file or a folder of them."""
    supported_VLM["Replay"] = partial(FindItReplay, predictions=path)
