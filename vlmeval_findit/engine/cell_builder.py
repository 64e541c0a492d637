"""Cells of questions: each table and each image folder is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..benchmarks import benchmark_of, load
from ..core.custom_prompt import CustomPrompt
from ..core.folders import image_folder
from ..core.image_files import rows_to_leave_out
from ..core.question import AnyTask, Question
from .calls import Cell, Images, Prompts, prompts_of, settings_of


class CellBuilder:
    """Tasks and their usable rows.

    ``skip_missing``: leave out rows without a usable image; None: do not check images.
    """

    def __init__(self, skip_missing: bool | None, images: Images | None = None) -> None:
        self.images = images or Images()
        self._skip = skip_missing
        self._tasks: dict[_Rows, AnyTask] = {}
        self._left_out: dict[_Rows, frozenset[int]] = {}
        self._prompts: dict[tuple[Question, str | None, CustomPrompt | None], Prompts] = {}
        self._rows: dict[tuple[int, ...], tuple[int, ...]] = {}

    def task(self, question: Question) -> AnyTask:
        """Return the task of a question; FileNotFoundError or TableError if it has no table."""
        at = _rows_of(question)
        if at not in self._tasks:
            self._tasks[at] = load(question.name)
        return replace(self._tasks[at], name=question.name, question=question)

    def cell(
        self,
        model: str,
        question: Question,
        limit: int | None,
        given: Mapping[str, Any] = MappingProxyType({}),
        *,
        logprobs: bool = False,
        prompt: CustomPrompt | None = None,
        sample: int = 1,
    ) -> Cell:
        """Return the cell of a model, with its settings if known, and a question's first usable
        rows.

        Raises:
            ImageError: images are missing, and their rows are not to be left out.
            ValueError: it is not known how this model is asked.
        """
        left_out = self._rows_left_out(question)
        prompts = self._prompts_for(question, model, prompt)
        queries = prompts.task.queries
        rows = tuple(index for index in queries if index not in left_out)[:limit]
        return Cell(
            model=model,
            prompts=prompts,
            rows=self._rows.setdefault(rows, rows),  # shared by all formats of a table
            left_out=tuple(sorted(left_out)),
            settings=settings_of(question, given, sample),
            logprobs=logprobs,
            sample=sample,
        )

    def _prompts_for(self, question: Question, model: str, prompt: CustomPrompt | None) -> Prompts:
        for asked in (model, None):
            if (question, asked, prompt) in self._prompts:
                return self._prompts[question, asked, prompt]
        task = benchmark_of(question).for_model(self.task(question), model)
        made = prompts_of(task, self.images, prompt)
        self._prompts[question, None if task.base_task is None else model, prompt] = made
        return made

    def _rows_left_out(self, question: Question) -> frozenset[int]:
        at = _rows_of(question)
        if at not in self._left_out:
            self._left_out[at] = frozenset()
            if self._skip is not None:
                queries = list(self.task(question).queries.values())
                folder = image_folder(question.images)
                self._left_out[at] = rows_to_leave_out(queries, folder, self._skip)
        return self._left_out[at]


_Rows = tuple[object, ...]


def _rows_of(question: Question) -> _Rows:
    benchmark = benchmark_of(question)
    return benchmark.name, *benchmark.query_set_key(question)
