"""Batches as files, for ``vllm run-batch``: no server, no network.

A batch is ``NAME.jsonl`` in a folder; its results are wanted as ``NAME.results.jsonl`` beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Container
from pathlib import Path
from typing import BinaryIO

from ....core.files import replacing
from .records import Batch, BatchKind, BatchMatch, BatchStatus
from .results import Results
from .services import BatchService


class BatchFiles(BatchService):
    """A folder of batches.

    Args:
        folder: made when the first batch is written.
        model: the served model's name, for the command that is said.
    """

    kind = BatchKind.FILES
    works_alone = False

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._model = model

    async def submit(self, batch: Batch, lines: BinaryIO, uploaded: Callable[[str], None]) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._requests(batch.name)) as temporary, temporary.open("wb") as f:
            shutil.copyfileobj(lines, f)
            f.flush()
            os.fsync(f.fileno())
        return batch.name

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        return BatchMatch(batch.name if self._requests(batch.name).is_file() else "")

    async def status(self, id: str) -> BatchStatus:
        if self._results(id).is_file():
            return BatchStatus("worked", ended=True, whole=False)
        if not self._requests(id).is_file():
            return BatchStatus("gone", refused=f"{self._requests(id)} is not there any more")
        return BatchStatus("written")

    async def results(self, id: str) -> Results:
        return Results(self._results(id).open("rb"))

    def to_do(self, id: str) -> str:
        files = f"-i {self._requests(id)} -o {self._results(id)}"
        return f"vllm run-batch {files} --model {self._model}"

    def _requests(self, id: str) -> Path:
        return self._folder / f"{id}.jsonl"

    def _results(self, id: str) -> Path:
        return self._folder / f"{id}.results.jsonl"
