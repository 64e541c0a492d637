"""What VLMEvalKit's runner says while it works, heard where it writes its status.

Its loop calls three functions of ``vlmeval.smp`` before and after every dataset. They are replaced
by functions that listen and then do the same; only the prediction files of FindIt's datasets are
JSON instead of xlsx, which cuts replies.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..benchmarks import resembles_dataset_name
from .outcomes import OUTCOMES, ExpectedRun


@dataclass(slots=True)
class RunnerState:
    """What is known of the runner's loop in this process."""

    api_mode: bool = False  # ``--api-mode``
    mode: str | None = None  # all, infer or eval; None: it did not say
    building: str | None = None  # Name of the dataset that it builds now
    # Refuses its ``--config`` by the folder of results, before it makes its first model
    refuse: Callable[[Path], None] | None = None


RUNNER = RunnerState()


def prediction_format() -> str:
    """Return the format of FindIt's prediction files: JSON, unless PRED_FORMAT names another."""
    return os.environ.get("PRED_FORMAT", "").lower() or "json"


def listen(smp: ModuleType) -> None:
    """Replace the functions of ``vlmeval.smp``, also where others imported them already."""
    for name, hear in _HEARD.items():
        told = getattr(smp, name, None)
        if told is not None and not hasattr(told, "heard_by_findit"):
            replace_everywhere(told, _listening(told, hear))


def replace_everywhere(before: Callable[..., Any], after: Callable[..., Any]) -> None:
    """Replace a function of VLMEvalKit in every module that has it."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is before:
                setattr(module, name, after)


def _listening(told: Callable[..., Any], hear: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(told)

    @functools.wraps(told)
    def heard(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named)
        given.apply_defaults()
        instead = hear(given.arguments)
        return told(*arguments, **named) if instead is None else instead

    heard.heard_by_findit = True  # type: ignore[attr-defined]
    return heard


def _hear_path(given: Mapping[str, Any]) -> str | None:
    """Note a run that the loop begins; returns its prediction file if it is FindIt's."""
    model = str(given["model_name"])
    dataset = str(given["dataset_name"])
    OUTCOMES.expect(model, dataset, RUNNER.mode)
    if not resembles_dataset_name(dataset) or os.environ.get("PRED_FORMAT"):
        return None
    return str(Path(given["work_dir"]) / f"{model}_{dataset}.{prediction_format()}")


def _hear_run(given: Mapping[str, Any]) -> None:
    fields = given["fields"]
    RUNNER.api_mode = bool(fields.get("api_mode"))
    RUNNER.mode = fields.get("mode")
    RUNNER.building = None
    refuse = RUNNER.refuse
    RUNNER.refuse = None
    if refuse is not None:
        folder = Path(given["run_dir"])
        of_model = folder if folder.name == fields.get("model_name") else folder.parent
        refuse(of_model.parent)


def _hear_dataset(given: Mapping[str, Any]) -> None:
    name = str(given["dataset_name"])
    status = given["status"]
    RUNNER.building = name if status == "pending" else None
    why = _text(given.get("error_message")) or _text(given.get("skip_reason"))
    is_error = _text(given.get("error_message")) is not None
    OUTCOMES.hear(str(given["model_name"]), name, ExpectedRun(RUNNER.mode, status, why, is_error))


def _text(value: Any) -> str | None:
    """Return a text, not the mark of what the runner leaves out."""
    return value if isinstance(value, str) and value else None


_HEARD: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "get_pred_file_path": _hear_path,
    "upsert_run_status": _hear_run,
    "upsert_dataset_status": _hear_dataset,
}
