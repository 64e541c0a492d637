"""Scored runs for tests: tables, pictures and prediction files of a small world."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import FindItQuery, write_table
from vlmeval_findit.boxes import BoxToWrite, Truth, write
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER, Answering, Identity, Settings
from vlmeval_findit.scoring import Run, load_run, run_identity, score_file, write_score
from vlmeval_findit.storage import RunFiles, write_identity

WIDTH, HEIGHT = 200, 100
Boxes = Sequence[tuple[float, float, float, float]]
CallResult = Callable[[Any, np.random.Generator], str]


@dataclass(frozen=True)
class World:
    """A folder of tables, pictures and runs."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def at_hand(self, patch: pytest.MonkeyPatch) -> None:
        """Set the folders of tables and pictures."""
        patch.setenv("FINDIT_TABLES", str(self.folder))
        patch.setenv("FINDIT_IMAGES", f"Pascal={self.folder / 'pictures'}")

    def table(self, name: str, queries: Iterable[FindItQuery]) -> None:
        write_table(self.folder, name, list(queries), {"source": "a test"})

    def picture(self, name: str, seed: int = 0, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
        path = self.folder / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_noise(seed, size, path.suffix))

    def predict(
        self,
        model: str,
        name: str,
        answer: CallResult,
        rows: int | None = None,
        change: Callable[[Identity], Identity] = lambda run: run,
        folder: str = "",
    ) -> Path:
        """Answer a task, score the answers, and return the prediction file."""
        dataset = load_dataset(name)
        generator = np.random.default_rng(7)
        replies = [
            {"index": index, "prediction": answer(query, generator)}
            for index, query in list(dataset.queries.items())[:rows]
        ]
        path = self.runs / folder / f"{model}_{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(replies), encoding="utf-8")
        asked = [reply["index"] for reply in replies]
        boxes = name.startswith("FindIt_")
        space = {"kind": "grid1000"} if boxes else None
        run = run_identity(dataset, model, Answering("Test"), asked, space)
        write_identity(RunFiles(path).identity, change(run))
        write_score(score_file(path, Settings(force=True)), path)
        return path

    def run(self, model: str, name: str, answer: CallResult, **how: object) -> Run:
        path = self.predict(model, name, answer, **how)  # type: ignore[arg-type]
        return load_run(path.with_name(f"{path.stem}_provenance.json"))


@cache
def _noise(seed: int, size: tuple[int, int], suffix: str) -> bytes:
    """Return a picture's file; most worlds have the same six."""
    noise = np.random.default_rng(seed).integers(0, 255, (size[1] // 4, size[0] // 4, 3))
    image = Image.fromarray(noise.astype(np.uint8)).resize(size)
    file = BytesIO()
    image.save(file, format=Image.registered_extensions()[suffix.lower()])
    return file.getvalue()


def small_world(folder: Path, patch: pytest.MonkeyPatch) -> World:
    """Return a world with two tables of Pascal and two runs' worth of pictures."""
    created = World(folder)
    created.at_hand(patch)
    created.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(12)])
    created.table("Pascal_multilabel", [two_labels(i, f"{i}.jpg") for i in range(5)])
    for i in range(6):
        created.picture(f"{i}.jpg", i)
    return created


def scored_outputs(folder: Path, patch: pytest.MonkeyPatch, **more: CallResult) -> World:
    """Create a small world with runs in ``outputs``, and change into its folder.

    The models are Good, Poor and ``more``.
    """
    created = small_world(folder, patch)
    name = "FindIt_Pascal_xyxy_json_bbox_2d"
    for model, answer in {"Good": speaking(name, 0.9), "Poor": speaking(name, 0.2), **more}.items():
        created.run(model, name, answer)
    created.runs.rename(folder / "outputs")
    patch.chdir(folder)
    return created


def query(index: int, picture: str = "0.jpg", label: str = "cat", boxes: Boxes = ()) -> FindItQuery:
    place = 10.0 + 5 * index % 60
    truth = tuple(boxes) or ((place, 10.0, place + 40, 60.0), (120.0, 20.0, 180.0, 90.0))
    return FindItQuery(index, label, WIDTH, HEIGHT, (picture,), Truth(truth, (0,) * len(truth)))


def two_labels(index: int, picture: str) -> FindItQuery:
    plain = query(index, picture, "cat, dog")
    return replace(plain, truth=replace(plain.truth, labels=("cat", "dog")))


# --- models ---------------------------------------------------------------------------------------


def grid(box: Sequence[float]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = (n * 1000 / side for n, side in zip(box, (WIDTH, HEIGHT) * 2, strict=True))
    return (x1, y1, x2, y2)


def speaking(name: str, chance: float, loose: float = 0.0) -> CallResult:
    """Return a model that answers every box with a chance, shifted by up to ``loose`` pixels."""
    reply = load_dataset(name).variant.reply

    def answer(query: FindItQuery, generator: np.random.Generator) -> str:
        labels = query.truth.labels or [""] * len(query.truth.boxes)
        boxes = []
        for box, label in zip(query.truth.boxes, labels, strict=True):
            shift = generator.uniform(0, loose) if loose else 0.0
            if generator.random() < chance:
                boxes.append(BoxToWrite(grid([n + shift for n in box]), label, 0))
        return write(boxes, reply)

    return answer


def with_facts(run: Run, **facts: Any) -> Run:
    """Return a run whose provenance says otherwise; facts of its identity and files, too."""
    provenance = run.provenance
    of_identity = {name: facts.pop(name) for name in ("prompts", "prompt_hash") if name in facts}
    if of_identity:
        assert provenance.identity is not None
        facts["identity"] = replace(provenance.identity, **of_identity)
    if "table_sha256" in facts:
        facts["table"] = replace(provenance.table, sha256=facts.pop("table_sha256"))
    if "predictions_sha256" in facts:
        sha256 = facts.pop("predictions_sha256")
        facts["predictions"] = replace(provenance.predictions, sha256=sha256)
    return replace(run, provenance=replace(provenance, **facts))


def saying(text: str) -> CallResult:
    """Return a model that always gives the same answer."""
    return lambda query, generator: text


def failing(query: FindItQuery, generator: np.random.Generator) -> str:
    """Return a model whose call fails on every third row."""
    return f"{FAILED_ANSWER} via API." if query.index % 3 == 0 else "[]"
