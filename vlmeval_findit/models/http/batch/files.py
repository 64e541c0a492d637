"""Batches as files, for ``vllm run-batch``: no server, no network.

A batch is ``NAME.jsonl`` in a folder; its results are wanted as ``NAME.results.jsonl`` beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container
from pathlib import Path
from typing import BinaryIO

from ....core.files import replacing
from .dialects import DIALECTS, BatchKind
from .results import Results
from .services import Found, Intent, Look


class BatchFiles:
    """A folder of batches.

    Args:
        folder: made when the first batch is written.
        model: the served model's name, for the command that is said.
    """

    kind = BatchKind.FILES
    dialect = DIALECTS[kind]
    works_alone = False
    name = ""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._model = model

    def submit(self, intent: Intent, requests: BinaryIO) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._requests(intent.name)) as temporary, temporary.open("wb") as f:
            shutil.copyfileobj(requests, f)
            f.flush()
            os.fsync(f.fileno())
        return intent.name

    def find(self, intent: Intent, known: Container[str]) -> Found:
        return Found(intent.name if self._requests(intent.name).is_file() else "")

    def look(self, batch: str) -> Look:
        if self._results(batch).is_file():
            return Look("worked", ended=True, whole=False)
        if not self._requests(batch).is_file():
            return Look("gone", refused=f"{self._requests(batch)} is not there any more")
        return Look("written")

    def results(self, batch: str) -> Results:
        results = Results()
        with results.filled() as into, self._results(batch).open("rb") as f:
            shutil.copyfileobj(f, into)
        return results

    def to_do(self, batch: str) -> str:
        files = f"-i {self._requests(batch)} -o {self._results(batch)}"
        return f"vllm run-batch {files} --model {self._model}"

    def _requests(self, batch: str) -> Path:
        return self._folder / f"{batch}.jsonl"

    def _results(self, batch: str) -> Path:
        return self._folder / f"{batch}.results.jsonl"
