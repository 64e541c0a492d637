"""The targets of ``findit export --to``, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from ..core import counted, first_few

if TYPE_CHECKING:
    from ..scoring import Run


class ExportError(RuntimeError):
    """Another program or server refused the results or could not be reached; run again to go on."""


class NotExportableError(ValueError):
    """Nothing can be exported like this; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target; its exporter is ``to_<name>(runs, out, **flags)``."""

    module: str  # Of this folder, with the exporter
    what: str
    flags: tuple[str, ...] = ()
    server: str = ""  # Environment variable that may name a server in place of a folder
    metadata: str = ""  # What describes its files beside them, and is no target


_TRACKED = ("project", "pictures")
# What ``export --to`` writes, by name
TARGETS: Mapping[str, Target] = {
    "coco": Target(
        "coco_results",
        "boxes as COCO results, with their ground truth",
        ("confidence",),
        metadata="croissant",
    ),
    "hub": Target("hub", "a dataset for the Hugging Face hub", ("licence",), metadata="croissant"),
    "captions": Target(
        "caption_files", "captions and accuracies of self-retrieval, in its authors' form"
    ),
    "fiftyone": Target("fiftyone", "answers and ground truth as a FiftyOne dataset"),
    "mlflow": Target("mlflow", "metrics and answers in MLflow", _TRACKED, "MLFLOW_TRACKING_URI"),
    "wandb": Target("wandb", "offline runs for Weights & Biases", _TRACKED),
    "trackio": Target("trackio", "metrics and answers in trackio", _TRACKED),
    "training": Target(
        "training_set",
        "what a model got wrong, with right answers, for a trainer",
        ("trainer", "errors", "right", "formats", "yes_test_data"),
    ),
}

# Trainers in whose formats training sets are written
TRAINERS = ("trl", "llama-factory", "ms-swift")

# Takes scored runs and a folder, and yields lines for the user. Before it writes anything it
# raises a scoring.stored_runs.RunError if a run is not complete, occurs twice or lacks its table,
# and a NotExportableError if no run suits the target, or the folder has files of other programs.
Exporter = Callable[..., Iterator[str]]


def exporter(target: str) -> Exporter:
    """Import the exporter of a target; its packages are imported when it is called."""
    module = import_module(f"{__package__}.{TARGETS[target].module}")
    export: Exporter = getattr(module, f"to_{target}")
    return export


def left_out_lines(runs: Sequence[Run], are: str = "no boxes") -> Iterator[str]:
    """Yield a line about the runs that are left out because of what their answers are."""
    if runs:
        names = first_few([run.path.stem for run in runs])
        yield f"left out, their answers are {are}: {counted(len(runs), 'run')} ({names})"
