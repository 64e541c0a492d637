"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from vlmeval.config import supported_VLM
from vlmeval.dataset import DATASET_CLASSES

from ..models.table import find_model, local_names
from ..variant import nearest
from .local import maker
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


def add_checkpoint(name: str, checkpoint: str) -> None:
    """Make a name of a local model answer from a checkpoint: a folder or an identifier.

    Raises:
        ValueError: no local model goes by that name, or it is VLMEvalKit's own.
    """
    row = find_model(name)
    if row is None or row.local is None:
        names = ["Replay", *local_names()]
        raise ValueError(
            f"--model {name}={checkpoint}: no local model {name!r}{nearest(name, names)}"
        )
    entry = supported_VLM.get(name)
    if entry is not None and not getattr(getattr(entry, "func", entry), "records_space", False):
        near = nearest(name, local_names())
        raise ValueError(f"--model {name}={checkpoint}: {name} is VLMEvalKit's own model{near}")
    supported_VLM[name] = maker(row, checkpoint)
