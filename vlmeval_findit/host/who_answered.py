"""Who answered VLMEvalKit's own datasets: a record beside its files, compared before a call.

VLMEvalKit goes on from any file of a model's and a dataset's name, so in one folder the answers of
one server would pass as another's. FindIt's datasets have an identity; this is the same for all
others, where FindIt's models answer or its command line asks.
"""

from __future__ import annotations

import functools
import inspect
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from vlmeval.smp import get_logger, get_pred_file_path, is_prediction_complete, load

from ..core import error_line, host_version
from ..engine import Deployment
from ..protocol import (
    NOT_SET,
    Identity,
    IdentityConflict,
    apply_force,
    merge_for_resume,
    settings_from,
    under_another_name,
)
from ..scoring import identity_of_others
from ..storage import RunFiles, lmu_data_root, read_record, write_identity
from .free_questions import FREE_QUESTION
from .runner_reports import replace_everywhere

log = get_logger("FindIt")


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """Where VLMEvalKit has a model's answers to a dataset of its own, and our record of them."""

    folder: Path
    model: str
    dataset: str
    predictions: str  # Their file without its suffix; of videos it names the frames, too

    @property
    def record(self) -> Path:
        return RunFiles(self.folder / f"{self.predictions}.json").answered_by

    @property
    def there(self) -> list[Path]:
        """The files with answers, predictions first; links are of another folder's."""
        plain = f"{self.model}_{self.dataset}"
        whole = _one_of(self.predictions, plain)
        frames = rf"{re.escape(plain)}_[\d.-]+(?:frame|fps)_(?:no)?pack"
        names = (
            rf"{whole}\.(?:xlsx|tsv|json|pkl)",
            rf"(?:{whole}|{frames})_(?:checkpoint|PREV|supp)\.pkl",
            rf"\d+_{_one_of(self.predictions, self.dataset)}\.pkl",  # of each process
        )
        inside = [path for path in sorted(self.folder.glob("*")) if not path.is_symlink()]
        return [path for name in names for path in inside if re.fullmatch(name, path.name)]


def _one_of(*names: str) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"


def files_of(given: Mapping[str, Any]) -> AnswerFiles:
    """Return the files of a job of VLMEvalKit's, by its arguments."""
    model = str(given["model_name"])
    dataset = str(given["dataset"].dataset_name)
    result = given.get("result_file")
    predictions = Path(result).stem if result else f"{model}_{dataset}"
    return AnswerFiles(Path(given["work_dir"]), model, dataset, predictions)


def table_of(dataset: Any) -> Path | None:
    """Return the table that a dataset was read from; None if it was read from something else."""
    stated = getattr(dataset, "data_path", None)
    places = [Path(stated)] if isinstance(stated, str) else []
    places.append(lmu_data_root() / f"{dataset.dataset_name}.tsv")
    return next((place for place in places if place.is_file()), None)


def is_finished(files: AnswerFiles, dataset: Any) -> bool:
    """Return whether nothing of a dataset is left to ask."""
    path = get_pred_file_path(str(files.folder), files.model, files.dataset)
    predictions = Path(path).with_stem(files.predictions)
    return bool(is_prediction_complete(str(predictions), list(dataset.data["index"])))


def who_answers(
    files: AnswerFiles, deployment: Deployment, table: Path | None = None, *, here: bool = False
) -> Identity:
    """Return who answers now, as it is recorded.

    Args:
        table: of the dataset; None: not known.
        here: add what only this machine knows, before the first call.

    Raises:
        IdentityError: the files have answers of another, or of whom nothing is recorded, and
            ``--force`` does not go over that.
    """
    answering = deployment.describe(FREE_QUESTION).answering
    if here:
        answering = deployment.on_this_machine(answering)
    now = identity_of_others(files.model, files.dataset, answering, table, host_version())
    there = files.there
    if not there:
        return now
    forced = settings_from({}).force
    recorded = read_record(files.record)
    if recorded is not None:
        return merge_for_resume(recorded, now, forced, there[0])
    who = answering.endpoint or answering.checkpoint or answering.kind
    conflict = IdentityConflict("who answered", NOT_SET, who)
    what = f"{there[0]} has answers, and nothing says whose ({files.record.name} is not there)"
    advice = f"Move the answers away. {under_another_name(now)}"
    notes = apply_force([conflict], forced, what, advice)
    return replace(now, forced=tuple(f"went on: {note}" for note in notes))


def write_record(files: AnswerFiles, who: Identity) -> None:
    """Write who answers beside the files, before the first call."""
    files.folder.mkdir(parents=True, exist_ok=True)
    write_identity(files.record, who)


def copy_records(smp: ModuleType) -> None:
    """Let ``vlmeval.smp.prepare_reuse_files`` copy our record with an earlier run's answers."""
    prepare = smp.prepare_reuse_files
    if hasattr(prepare, "copies_records"):
        return
    signature = inspect.signature(prepare)

    @functools.wraps(prepare)
    def prepare_with_record(*arguments: Any, **named: Any) -> Any:
        result = prepare(*arguments, **named)
        given = signature.bind(*arguments, **named).arguments
        if result.get("source_eval_id") is not None:
            predictions = Path(given["result_file"])
            earlier = Path(given["pred_root_meta"]) / result["source_eval_id"] / predictions.name
            if RunFiles(earlier).answered_by.is_file():
                shutil.copy2(RunFiles(earlier).answered_by, RunFiles(predictions).answered_by)
        return result

    prepare_with_record.copies_records = True  # type: ignore[attr-defined]
    replace_everywhere(prepare, prepare_with_record)


# --- files that a kill cut off --------------------------------------------------------------------


def set_aside_cut(files: AnswerFiles) -> None:
    """Rename files with answers that cannot be read: their questions are asked again."""
    for path in files.there:
        why = _why_unreadable(path)
        if why is None:
            continue
        names = (path.with_name(f"{path.stem}.cut-{n}{path.suffix}") for n in count(1))
        aside = next(name for name in names if not name.exists())
        with suppress(FileNotFoundError):  # Another process of torchrun did the same
            path.rename(aside)
        log.warning(
            "%s cannot be read (%s): a run that was killed, or a full disk, cut it off. It is now "
            "%s; its questions are asked again, but for those that other files have answers to",
            path,
            why,
            aside.name,
        )


def _why_unreadable(path: Path) -> str | None:
    try:
        load(str(path))
    except Exception as error:  # A cut pickle may raise anything
        return error_line(error)
    return None
