"""FindIt's datasets as VLMEvalKit's: the classes of every benchmark.

The constructor refuses an unknown name, a missing image, an unknown space; :mod:`.inference`
refuses identity conflicts before the first call.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from vlmeval.dataset.image_base import ImageBaseDataset

from ..benchmarks import begins_with_prefix, benchmark_of, benchmarks, is_dataset_name
from ..core import EXIT_SOME_FAILED
from ..data import load_dataset
from ..engine import Cell, prompts_of, settings_of
from ..models import HostMessage, check_stated, to_host_message
from ..protocol import (
    Benchmark,
    CustomPrompt,
    DatasetNameError,
    our_settings,
    settings_from,
    skips_missing,
)
from ..protocol import judge_args as read_judge_args
from ..scoring import score_file, score_row, write_score
from ..storage import is_users_table, make_folders_of_host, rows_to_leave_out
from .outcomes import ANY, OUTCOMES
from .runner_reports import RUNNER
from .space_when_scored import complete_space

log = logging.getLogger(__name__)


class Names(Sequence[str]):
    """Names that a class supports: contains all valid variants, lists the first of each table.

    A mistyped name is of its benchmark's first class, which says what is wrong with it: VLMEvalKit
    would skip it.
    """

    def __init__(self, benchmark: Benchmark, host_class: str) -> None:
        self._class = host_class
        self._benchmark = benchmark

    # VLMEvalKit asks every class for a name, many times in a run: names are listed only when read.
    @cached_property
    def _listed(self) -> list[str]:
        names = self._benchmark.variant_names()
        return [name for name in names if class_of(name) == self._class]

    def __contains__(self, name: object) -> bool:
        if is_dataset_name(name):
            return class_of(str(name)) == self._class
        return isinstance(name, str) and self._is_mistyped(name) and self._is_first

    @property
    def _is_first(self) -> bool:
        return class_of(self._benchmark.variant_names()[0]) == self._class

    def _is_mistyped(self, name: str) -> bool:
        if not begins_with_prefix(name) or is_users_table(name):
            return False
        return type(benchmark_of(name)) is type(self._benchmark)

    def __getitem__(self, at: Any) -> Any:
        return self._listed[at]

    def __len__(self) -> int:
        return len(self._listed)


def class_of(name: str) -> str:
    """Return the name of a dataset's class."""
    benchmark = benchmark_of(name)
    return benchmark.host_class(benchmark.parse(name))


_NOT_PASSED = "not passed"


class VariantDataset(ImageBaseDataset):  # type: ignore[misc]
    """A variant over its table as a dataset of VLMEvalKit; :func:`dataset_classes` subclass it.

    Args:
        dataset: a variant's name, or another that its benchmark takes for it.
        skip_noimg: the host's; images are checked here in any case.
        space: the coordinate space of the replies (``--config`` files; else ``--judge-args``).
        reads_like: a model whose way of answering ``unconstrained`` prompts is expected.
        encoder: what scores captions (default: the dataset's).
        skip_missing: leave out rows without a usable image; the result says which.
        judge_args, mode, limit: the host's, where it passes them. Else it passes ``--judge-args``
            to :meth:`evaluate` only, and an unknown space is refused there; and the runner says
            in inference how many rows it asks: :meth:`take` checks their images.

    Raises:
        DatasetNameError, TableError, ImageError, SpaceError: before any model call.
    """

    MODALITY = "IMAGE"
    DEFAULT_JUDGE = ""
    force_use_dataset_prompt = True
    benchmark: Benchmark
    data: pd.DataFrame  # The rows that are asked

    def __init__(
        self,
        dataset: str,
        skip_noimg: bool = True,
        space: str | Mapping[str, Any] | None = None,
        reads_like: str | None = None,
        encoder: str | None = None,
        skip_missing: bool | None = None,
        judge_args: str | None = _NOT_PASSED,
        mode: str = "all",
        limit: int | None = None,
    ) -> None:
        # VLMEvalKit's loop logs a refusal, goes on, and ends with status 0.
        with OUTCOMES.of(ANY, dataset):
            make_folders_of_host()
            self.loaded = load_dataset(dataset)
            _refuse_what_is_not_scored(dataset)
            if class_of(dataset) != type(self).__name__:
                raise DatasetNameError(f"{dataset}: {type(self).__name__} is not its class")
            self.space_may_come = judge_args == _NOT_PASSED
            given = read_judge_args(None if self.space_may_come else judge_args)
            own_arguments = {"space": space, "reads_like": reads_like, "encoder": encoder}
            self._config = {**our_settings(own_arguments), **our_settings(given)}
            self.settings = settings_from(self._config)
            check_stated(self.settings)
            self.prompts = prompts_of(self.loaded)
            self.left_out = frozenset[int]()
            self._limit = limit
            self._skip = skips_missing() if skip_missing is None else skip_missing
            # The runner's loop says in inference only how many rows it asks, if it has --config.
            limit_comes = self.space_may_come and RUNNER.building is not None
            # Scoring alone needs no images, but then it must expect the rows that inference had.
            if self._skip or (mode != "eval" and not limit_comes):
                self._check_images(limit)
            super().__init__(dataset=dataset, skip_noimg=skip_noimg)
            self.img_root = str(self.prompts.folder.path)

    def take(self, limit: int | None) -> None:
        """Leave only the first rows to be asked, or raise ImageError.

        None: as many as the class was told in a ``--config`` file, else all.
        """
        asked = self._limit if limit is None else limit
        self._check_images(asked)
        self.data = self.data.iloc[:asked]

    def _check_images(self, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"--limit {limit} should be at least 1")
        queries = list(self.loaded.queries.values())
        self.left_out = rows_to_leave_out(queries, self.prompts.folder, self._skip, limit)

    @classmethod
    def supported_datasets(cls) -> Names:
        return Names(cls.benchmark, cls.__name__)

    def load_data(self, dataset: str) -> pd.DataFrame:
        """Return the rows that the host writes into prediction files, without ground truth."""
        asked = [q for q in self.loaded.queries.values() if q.index not in self.left_out]
        columns = ("index", "label", "width", "height")
        return pd.DataFrame({name: [getattr(q, name) for q in asked] for name in columns})

    def build_prompt(self, line: int | Mapping[str, Any]) -> HostMessage:
        """Return the interleaved message of a row, with paths of images."""
        row = self.data.iloc[line] if isinstance(line, int) else line
        return to_host_message(self.prompts.message(int(row["index"])))

    def dump_image(self, line: Mapping[str, Any]) -> list[str]:
        """Return the paths of a row's images, support shots first."""
        query = self.loaded.queries[int(line["index"])]
        return [str(self.prompts.folder.path / name) for name in (*query.support, *query.images)]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> dict[str, float]:
        """Score a prediction file, write the score's files, and return the metrics."""
        path = Path(eval_file)
        with OUTCOMES.of(path.stem.removesuffix(f"_{self.dataset_name}"), self.dataset_name) as out:
            settings = settings_from({**self._config, **our_settings(judge_kwargs)})
            check_stated(settings)
            complete_space(path, settings)
            run = score_file(path, settings)
            files = write_score(run, path)
            log.info("FindIt: score in %s, details in %s", files.score, files.details)
            notes = (run.stated_note, run.answered_note, run.reply_note, run.coords_doubt)
            for doubt in filter(None, notes):
                log.warning("FindIt: %s %s: %s", run.model, run.dataset.name, doubt)
            row = out.score = score_row(run)
        metrics = {n: round(row[n], 4) for n in run.metric_values if row[n] is not None}
        return metrics | {
            name: row[name] for name in ("scored", "rows", "failed calls", "left out")
        }

    @classmethod
    def report_primary_metric(cls, metrics: Mapping[str, Any] | None) -> dict[str, float | int]:
        headlines = cls.benchmark.headlines
        return {name: metrics[name] for name in headlines if metrics and name in metrics}

    @classmethod
    def report_judge_err(
        cls, prediction_file: Any, *, total_samples: int | None, **kwargs: Any
    ) -> dict[str, int | None]:
        """Report no failures: there is no judge."""
        return {"failed": 0, "total": total_samples}

    def cell(
        self, model: str, settings: Mapping[str, Any], prompt: CustomPrompt | None = None
    ) -> Cell:
        """Return a model's cell over the host's rows.

        Raises ValueError if the benchmark has no prompts for the model.
        """
        dataset = self.benchmark.for_model(self.loaded, model)
        return Cell(
            model=model,
            prompts=prompts_of(dataset, custom=prompt),
            rows=tuple(int(index) for index in self.data["index"]),
            left_out=tuple(sorted(self.left_out)),
            settings=settings_of(self.loaded.variant, settings),
        )


def _refuse_what_is_not_scored(dataset: str) -> None:
    """Refuse a renamed dataset, which the host would not score, and ``--api-mode``."""
    name = RUNNER.building
    if name not in (None, dataset):
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            raise SystemExit(EXIT_SOME_FAILED)  # The other processes are not told, and would wait
        raise DatasetNameError(
            f"the configuration calls {dataset} {name!r}: VLMEvalKit writes predictions under "
            f"one of these names and looks for them under the other. Call it {dataset}"
        )
    if RUNNER.api_mode:
        raise ValueError(
            "--api-mode is VLMEvalKit's way to ask. FindIt asks its datasets itself, "
            "--api-nproc calls at a time: leave the flag out"
        )


@cache
def dataset_classes() -> tuple[type[VariantDataset], ...]:
    """Return the classes of all benchmarks, plug-ins included."""
    classes = []
    for benchmark in benchmarks():
        values = {"benchmark": benchmark, "TYPE": benchmark.name, "__module__": __name__}
        values["__doc__"] = benchmark.__doc__
        names = dict.fromkeys(map(class_of, benchmark.variant_names()))
        classes += [type(name, (VariantDataset,), values) for name in names]
    return tuple(classes)
