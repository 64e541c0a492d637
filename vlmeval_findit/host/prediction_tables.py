"""VLMEvalKit's own readers of FindIt's prediction files: JSON, where they expect a table."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from ..benchmarks import name_after_model, resembles_dataset_name
from .runner_reports import prediction_format, replace_everywhere


def give_tables(smp: ModuleType) -> None:
    """Let ``vlmeval.smp.load`` return FindIt's prediction files as tables, for all who call it."""
    load = smp.load
    if hasattr(load, "gives_tables"):
        return

    @functools.wraps(load)
    def table_or_data(f: Any, *arguments: Any, **named: Any) -> Any:
        data = load(f, *arguments, **named)
        is_ours = isinstance(data, list) and name_after_model(Path(str(f)).stem) is not None
        return pd.DataFrame(data) if is_ours else data

    table_or_data.gives_tables = True  # type: ignore[attr-defined]
    replace_everywhere(load, table_or_data)


def scan_findit_files(tools: Any) -> None:
    """Let ``vlmutil scan`` look for FindIt's datasets in the format of their files."""
    scan = getattr(tools, "SCAN", None)
    if scan is None or hasattr(scan, "finds_findit"):
        return

    @functools.wraps(scan)
    def scan_all(root: str, models: Sequence[str], datasets: Sequence[str]) -> None:
        theirs = [name for name in datasets if not resembles_dataset_name(name)]
        if theirs or not datasets:
            scan(root, models, theirs)
        for model in models:
            ours = [name for name in datasets if resembles_dataset_name(name)]
            if not datasets:
                ours = _answered(Path(root), model)
            if ours:
                with _in_format(prediction_format()):
                    scan(root, [model], ours)

    scan_all.finds_findit = True  # type: ignore[attr-defined]
    tools.SCAN = scan_all


def _answered(root: Path, model: str) -> list[str]:
    """Return FindIt's datasets of which a model's folder has a prediction file."""
    files = sorted((root / model).glob(f"*.{prediction_format()}"))
    named = [name_after_model(file.stem) for file in files]
    return [dataset for name, dataset in filter(None, named) if name == model]


@contextmanager
def _in_format(name: str) -> Iterator[None]:
    before = os.environ.get("PRED_FORMAT")
    os.environ["PRED_FORMAT"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["PRED_FORMAT"]
        else:
            os.environ["PRED_FORMAT"] = before
