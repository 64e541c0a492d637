"""Our datasets as VLMEvalKit's: one class a task family.

The host hands its command-line arguments to a dataset whose constructor names them.  That is how
everything that can be refused is refused here, before the first call of a model: an unknown name, a
missing image, a coordinate space that nobody knows, predictions that were asked in other words.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from vlmeval.dataset.image_base import ImageBaseDataset

from ..datasets import DATASETS, Family
from ..images import rows_to_leave_out, skips_missing
from ..metrics import FIGURES
from ..models.table import find_model, unknown_space
from ..places import image_folder
from ..predictions import PredictionError
from ..prompts import PartKind
from ..records import Query
from ..release_prompts import prompt_set
from ..results import score_row, write_score
from ..scoring import check_settings, score_file, settings_from
from ..tasks import Asked, Task, asked_now, load_task, read_asked, write_asked
from ..variant import VariantError, is_variant, parse
from .resume import set_torn_aside

log = logging.getLogger(__name__)


class VariantNames(Sequence[str]):
    """The names that a class supports: any valid variant is in it, one a table is listed."""

    def __init__(self, families: frozenset[Family]) -> None:
        self._families = families
        self._listed = [
            parse(f"FindIt_{row.table_name(multilabel)}_xyxy_json").name
            for row in DATASETS.values()
            if row.family in families
            for multilabel in (False, True)[: 1 + row.has_multilabel]
        ]

    def __contains__(self, name: object) -> bool:
        return is_variant(name) and parse(str(name)).row.family in self._families

    def __getitem__(self, at: Any) -> Any:
        return self._listed[at]

    def __len__(self) -> int:
        return len(self._listed)


class _FindItDataset(ImageBaseDataset):  # type: ignore[misc]
    """One variant of the grid as a dataset of the host.

    Args:
        dataset: a variant's name, or one of the release's task names.
        skip_noimg: the host's; images are checked here in any case.
        space: the coordinate space of the replies (``--config`` files; else ``--judge-args``).
        reads_like: a model whose way of answering ``unconstrained`` prompts is expected.
        skip_missing: leave out rows without a usable image; the result says which.
        model, judge_args, mode, work_dir, reuse: the host's command line, where it passes them.

    Raises:
        VariantError, TableError, ImageError, SpaceError, PredictionError: before any model call.
    """

    TYPE = "FindIt"
    MODALITY = "IMAGE"
    DEFAULT_JUDGE = ""
    force_use_dataset_prompt = True
    families: frozenset[Family] = frozenset()

    def __init__(
        self,
        dataset: str,
        skip_noimg: bool = True,
        space: str | Mapping[str, Any] | None = None,
        reads_like: str | None = None,
        skip_missing: bool | None = None,
        model: str | Sequence[str] | None = None,
        judge_args: str | None = None,
        mode: str = "all",
        work_dir: str | None = None,
        reuse: bool = False,
    ) -> None:
        self._task = load_task(dataset)
        if self._task.variant.row.family not in self.families:
            raise VariantError(f"{dataset}: {type(self).__name__} is not its class")
        given: dict[str, Any] = json.loads(judge_args) if judge_args else {}
        self._config = {**_ours({"space": space, "reads_like": reads_like}), **_ours(given)}
        self._settings = settings_from(self._config)
        check_settings(self._settings, self._task.variant)
        self._folder = image_folder(self._task.variant.row.images)
        skip = skips_missing() if skip_missing is None else skip_missing
        # Scoring alone needs no images, but then it must expect the rows that inference had.
        self._left_out = (
            frozenset()
            if mode == "eval" and not skip
            else rows_to_leave_out(list(self._task.queries.values()), self._folder, skip)
        )
        self._prompts, self._make = prompt_set()
        super().__init__(dataset=dataset, skip_noimg=skip_noimg)
        self.img_root = str(self._folder.path)
        models = [model] if isinstance(model, str) else list(model or ())
        self._runs = {name: self._run_settings(name) for name in models}
        if mode != "eval" and work_dir is not None:
            for name in models:
                self._write_asked(Path(work_dir) / name, name, reuse)

    @classmethod
    def supported_datasets(cls) -> VariantNames:
        return VariantNames(cls.families)

    def load_data(self, dataset: str) -> pd.DataFrame:
        """What the host iterates over and writes into prediction files; never the ground truth."""
        kept = [q for q in self._task.queries.values() if q.index not in self._left_out]
        return pd.DataFrame(
            {
                "index": [q.index for q in kept],
                "label": [q.label for q in kept],
                "width": [q.width for q in kept],
                "height": [q.height for q in kept],
            }
        )

    def build_prompt(self, line: int | Mapping[str, Any]) -> list[dict[str, str]]:
        """The interleaved message of a row, images as absolute paths."""
        row = self.data.iloc[line] if isinstance(line, int) else line
        return _host_message(
            self._make(self._task.queries[int(row["index"])], self._task.variant),
            self._folder.path,
        )

    def dump_image(self, line: Mapping[str, Any]) -> list[str]:
        """The paths of a row's images: support shots first."""
        query = self._task.queries[int(line["index"])]
        return [str(self._folder.path / name) for name in (*query.support, *query.images)]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> dict[str, float]:
        """Score a prediction file, leave the score's files beside it, return the figures."""
        path = Path(eval_file)
        if read_asked(path) is None:
            # A run of a --config file: its folder was not known before.
            write_asked(path.with_name(f"{path.stem}_asked.json"), self._asked(None))
        run = score_file(
            path, settings_from({**self._config, **_ours(judge_kwargs)}), self.dataset_name
        )
        files = write_score(run, path)
        log.info("FindIt: score in %s, details in %s", files.score, files.details)
        row = score_row(run)
        return {
            **{name: round(row[name], 4) for name in FIGURES},
            "scored": row["scored"],
            "rows": row["rows"],
            "failed calls": row["failed calls"],
            "left out": row["left out"],
        }

    @classmethod
    def report_primary_metric(cls, metrics: Mapping[str, Any] | None) -> dict[str, float | int]:
        return {name: metrics[name] for name in FIGURES[:1] if metrics and name in metrics}

    @classmethod
    def report_judge_err(
        cls, prediction_file: Any, *, total_samples: int | None, **kwargs: Any
    ) -> dict[str, int | None]:
        """No judge is asked, so none fails."""
        return {"failed": 0, "total": total_samples}

    # --- before the first call --------------------------------------------------------------------

    def _run_settings(self, model: str) -> Mapping[str, Any] | None:
        """The space that the configuration of a model's run says; refuses a model without one."""
        bounds = stock_bounds(model)
        known = self._settings.space or bounds or records_space(model) or find_model(model)
        if not known:
            raise unknown_space(model)
        return bounds

    def _asked(self, space: Mapping[str, Any] | None) -> Asked:
        return asked_now(self._task, sorted(self._left_out), space)

    def _write_asked(self, folder: Path, model: str, reuse: bool) -> None:
        """Record what this run asks, unless replies to other questions lie in its way."""
        set_torn_aside(folder, model, self.dataset_name)
        stem = f"{model}_{self.dataset_name}"
        path = folder / f"{stem}_asked.json"
        asked = self._asked(self._runs[model])
        before = read_asked(folder / f"{stem}.json")
        replies = [f for f in folder.glob(f"**/{stem}.*") if reuse or f.parent == folder]
        if before is not None and replies and _other_questions(before, asked):
            raise PredictionError(
                f"{replies[0]} holds replies to other prompts or another table "
                f"({before.prompts}, now {asked.prompts}); VLMEvalKit would go on with them. "
                "Use another --work-dir, or move them away."
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_asked(path, asked)


def _ours(values: Mapping[str, Any]) -> dict[str, Any]:
    """Our settings among the host's judge arguments."""
    return {key: values[key] for key in ("space", "reads_like") if values.get(key)}


def _other_questions(before: Asked, now: Asked) -> bool:
    same = replace(before, left_out=now.left_out, space=now.space)
    return same != now


class FindItObjectDetection(_FindItDataset):
    """Every instance of a label, or of several."""

    families = frozenset({Family.OBJDET})


class FindItReferringExpression(_FindItDataset):
    """The object, or all objects, that an expression describes."""

    families = frozenset({Family.REFEXP, Family.REFEXP_ALL})


class FindItInstanceDetection(_FindItDataset):
    """The object of reference images in a scene."""

    families = frozenset({Family.INSDET})


class FindItVideoDetection(_FindItDataset):
    """Objects, named or shown, in the frames of a video."""

    families = frozenset({Family.OBJDET_VIDEO, Family.INSDET_VIDEO})


DATASET_CLASSES = (
    FindItObjectDetection,
    FindItReferringExpression,
    FindItInstanceDetection,
    FindItVideoDetection,
)


def _host_message(parts: Sequence[Any], folder: Path) -> list[dict[str, str]]:
    return [
        {
            "type": part.kind.value,
            "value": str(folder / part.value) if part.kind is PartKind.IMAGE else part.value,
        }
        for part in parts
    ]


def messages_of(task: Task) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """The message of every row of a task, with its index, as the host would send it."""
    folder = image_folder(task.variant.row.images).path
    _, make = prompt_set()
    query: Query
    for index, query in task.queries.items():
        yield index, _host_message(make(query, task.variant), folder)


# --- what the host's model entries say ------------------------------------------------------------


def _entry(model: str) -> Any:
    from vlmeval.config import supported_VLM

    return supported_VLM.get(model)


def records_space(model: str) -> bool:
    """Whether a model's class records the coordinate space with every reply."""
    entry = _entry(model)
    return bool(getattr(getattr(entry, "func", entry), "records_space", False))


def stock_bounds(model: str) -> Mapping[str, Any] | None:
    """The resize bounds of one of the host's own Qwen2.5-VL entries, as a coordinate space.

    The host's entries set other bounds than the paper's runs; scored within the wrong ones, perfect
    boxes reach a recall of a few percent.
    """
    if not model.startswith("Qwen2.5-VL") or records_space(model):
        return None
    words = getattr(_entry(model), "keywords", {})
    if "min_pixels" not in words or "max_pixels" not in words:
        return None
    return {
        "kind": "smart_resize",
        "min_pixels": words["min_pixels"],
        "max_pixels": words["max_pixels"],
    }
