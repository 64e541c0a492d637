"""Our datasets as VLMEvalKit's: one class a task family.

What can be refused without knowing who answers is refused in the constructor: an unknown name, a
missing image, a space that there is not.  What contradicts a run is refused by :mod:`.inference`,
before the first call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from vlmeval.dataset.image_base import ImageBaseDataset

from ..benchmarks.findit.datasets import DATASETS, Family
from ..benchmarks.findit.metrics import METRICS
from ..benchmarks.findit.names import is_variant, parse
from ..benchmarks.findit.query import Query
from ..benchmarks.findit.release_prompts import prompt_set
from ..benchmarks.findit.run_space import check_settings
from ..benchmarks.findit.task import FindItTask, load_task
from ..benchmarks.findit.variant import VariantError
from ..core.image_checks import rows_to_leave_out, skips_missing
from ..core.messages import PartKind
from ..core.places import image_folder
from ..core.settings import settings_from
from ..runs.results import score_row, write_score
from ..runs.score import score_file
from ..sweep.calls import Cell, settings_of
from . import entries

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


class FindItDataset(ImageBaseDataset):  # type: ignore[misc]
    """One variant of the grid as a dataset of the host.

    Args:
        dataset: a variant's name, or one of the release's task names.
        skip_noimg: the host's; images are checked here in any case.
        space: the coordinate space of the replies (``--config`` files; else ``--judge-args``).
        reads_like: a model whose way of answering ``unconstrained`` prompts is expected.
        skip_missing: leave out rows without a usable image; the result says which.
        judge_args, mode: the host's command line, where it passes them.

    Raises:
        VariantError, TableError, ImageError, SpaceError: before any model call.
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
        judge_args: str | None = None,
        mode: str = "all",
    ) -> None:
        _refuse_what_cannot_work()
        self.task = load_task(dataset)
        if self.task.variant.row.family not in self.families:
            raise VariantError(f"{dataset}: {type(self).__name__} is not its class")
        given = json.loads(judge_args) if judge_args else entries.judge_args()
        self._config = {**_ours({"space": space, "reads_like": reads_like}), **_ours(given)}
        self.settings = settings_from(self._config)
        check_settings(self.settings, self.task.variant)
        self.folder = image_folder(self.task.variant.row.images)
        skip = skips_missing() if skip_missing is None else skip_missing
        # Scoring alone needs no images, but then it must expect the rows that inference had.
        self.left_out = (
            frozenset()
            if mode == "eval" and not skip
            else rows_to_leave_out(list(self.task.queries.values()), self.folder, skip)
        )
        _, self._make = prompt_set()
        super().__init__(dataset=dataset, skip_noimg=skip_noimg)
        self.img_root = str(self.folder.path)

    @classmethod
    def supported_datasets(cls) -> VariantNames:
        return VariantNames(cls.families)

    def load_data(self, dataset: str) -> pd.DataFrame:
        """What the host iterates over and writes into prediction files; never the ground truth."""
        kept = [q for q in self.task.queries.values() if q.index not in self.left_out]
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
            self._make(self.task.queries[int(row["index"])], self.task.variant),
            self.folder.path,
        )

    def dump_image(self, line: Mapping[str, Any]) -> list[str]:
        """The paths of a row's images: support shots first."""
        query = self.task.queries[int(line["index"])]
        return [str(self.folder.path / name) for name in (*query.support, *query.images)]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> dict[str, float]:
        """Score a prediction file, leave the score's files beside it, return the figures."""
        path = Path(eval_file)
        run = score_file(path, settings_from({**self._config, **_ours(judge_kwargs)}))
        files = write_score(run, path)
        log.info("FindIt: score in %s, details in %s", files.score, files.details)
        row = score_row(run)
        return {
            **{name: round(row[name], 4) for name in run.figures if row[name] is not None},
            "scored": row["scored"],
            "rows": row["rows"],
            "failed calls": row["failed calls"],
            "left out": row["left out"],
        }

    @classmethod
    def report_primary_metric(cls, metrics: Mapping[str, Any] | None) -> dict[str, float | int]:
        return {name: metrics[name] for name in (METRICS[0].name,) if metrics and name in metrics}

    @classmethod
    def report_judge_err(
        cls, prediction_file: Any, *, total_samples: int | None, **kwargs: Any
    ) -> dict[str, int | None]:
        """No judge is asked, so none fails."""
        return {"failed": 0, "total": total_samples}

    def cell(self, model: str, settings: Mapping[str, Any]) -> Cell:
        """A model over the rows that the host is going to ask.

        Args:
            model: its name.
            settings: what its answers depend on beside the message.
        """
        return Cell(
            model=model,
            task=self.task,
            rows=tuple(int(index) for index in self.data["index"]),
            left_out=tuple(sorted(self.left_out)),
            folder=self.folder,
            make=self._make,
            settings=settings_of(self.task.variant, settings),
        )


def _refuse_what_cannot_work() -> None:
    """Refuse what the host would run to its end and then not score, or ask in another way.

    Raises:
        VariantError: a configuration gives a dataset another name.
        ValueError: ``--api-mode``, whose pipeline does not ask through us.
    """
    for name, dataset in entries.renamed_datasets().items():
        raise VariantError(renamed(name, dataset))
    if entries.has_flag("--api-mode"):
        raise ValueError(NO_API_MODE)


NO_API_MODE = (
    "--api-mode is VLMEvalKit's own way of asking. FindIt's datasets are asked by FindIt, "
    "--api-nproc calls at a time: leave the flag out"
)


def renamed(name: str, dataset: str) -> str:
    """Why a dataset cannot have another name in a configuration."""
    return (
        f"the configuration calls {dataset} {name!r}: VLMEvalKit looks for its predictions under "
        f"the one name and writes them under the other. Call it {dataset}"
    )


def _ours(values: Mapping[str, Any]) -> dict[str, Any]:
    """Our settings among the host's judge arguments."""
    return {key: values[key] for key in ("space", "reads_like", "force") if values.get(key)}


class FindItObjectDetection(FindItDataset):
    """Every instance of a label, or of several."""

    families = frozenset({Family.OBJDET})


class FindItReferringExpression(FindItDataset):
    """The object, or all objects, that an expression describes."""

    families = frozenset({Family.REFEXP, Family.REFEXP_ALL})


class FindItInstanceDetection(FindItDataset):
    """The object of reference images in a scene."""

    families = frozenset({Family.INSDET})


class FindItVideoDetection(FindItDataset):
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


def messages_of(task: FindItTask) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """The message of every row of a task, with its index, as the host would send it."""
    folder = image_folder(task.variant.row.images).path
    _, make = prompt_set()
    query: Query
    for index, query in task.queries.items():
        yield index, _host_message(make(query, task.variant), folder)
