"""Gather the prompts, replies and drawings of runs, if their files exist.

Metrics need neither table, images nor predictions; the answers of a page need the table. A run
without it, or with another table than it was scored over, is left out, and the page shows the
reason. Without images or predictions an answer has boxes only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..analysis import check_table
from ..benchmarks.findit import coco_size
from ..data import load_dataset
from ..protocol import (
    AnyDataset,
    DatasetVariant,
    Drawing,
    DrawnBox,
    PartKind,
    PromptSet,
    Role,
    ScoredRow,
)
from ..scoring import Run, accepted_answer, recorded_prompts
from ..storage import image_folder, read_predictions
from .value_text import rounded_down


@dataclass(frozen=True, slots=True)
class Transcript:
    """A run with its dataset, prompts and images."""

    run: Run
    dataset: AnyDataset
    prompts: PromptSet | None  # None if they are not known
    images: Path  # Folder that the paths of images are relative to

    def read_replies(self, indices: Collection[int]) -> dict[int, str]:
        """Read the replies to some queries by index; empty if the prediction file does not exist.

        They are not stored: a page has a few replies of each of thousands of runs.
        """
        path = self.run.path
        replies = read_predictions(path, frozenset(indices)) if path.is_file() else []
        return {reply.index: reply.text for reply in replies}

    def prompt(self, index: int) -> str:
        """Return the message of a query as text, with ``[image: …]`` for an image."""
        if self.prompts is None:
            asked = f"Asked in {self.run.provenance.prompts}, whose words are not at hand"
            return f"{asked}. {self.run.benchmark.prompts_help}".rstrip()
        parts = self.prompts.message(self.dataset.queries[index], self.run.variant)
        marks = {PartKind.IMAGE: "[image: {}]", PartKind.SYSTEM: "[system: {}]"}
        return "\n".join(marks.get(part.kind, "{}").format(part.value) for part in parts)

    def draw(self, row: ScoredRow) -> Drawing:
        """Draw an answer, and the label or the accepted answer that it was scored by."""
        benchmark = self.run.benchmark
        accepted = accepted_answer(row)
        if accepted is None:
            return benchmark.draw(self.dataset, row)
        query = benchmark.with_label(self.dataset, self.dataset.queries[row.index], accepted)
        reviewed = replace(self.dataset, queries={row.index: query})
        return benchmark.draw(reviewed, row)


class Missing(NamedTuple):
    """A run without answers and curves on the page."""

    run: Run
    reason: str


def gather_transcripts(runs: Iterable[Run]) -> tuple[list[Transcript], list[Missing]]:
    """Return the transcripts of runs, and the runs without one."""
    datasets: dict[tuple[str, str], AnyDataset] = {}
    hashes = _PromptHashes()
    transcripts: list[Transcript] = []
    missing: list[Missing] = []
    for run in runs:
        key = (run.benchmark.name, run.variant.board_dataset)
        try:
            if key not in datasets:
                datasets[key] = load_dataset(run.variant.name)
            dataset = replace(datasets[key], variant=run.variant)
            recorded = run.provenance.identity.resolved_options if run.provenance.identity else {}
            of_model = run.benchmark.for_model(dataset, run.model, recorded)
            transcripts.append(_transcript(run, of_model, hashes))
        except (FileNotFoundError, ValueError) as error:
            missing.append(Missing(run, str(error)))
    return transcripts, missing


class _PromptHashes:
    """Hashes of prompt sets: each is made once for a variant and its queries."""

    def __init__(self) -> None:
        # With the queries, so that no others get their id
        self._known: dict[tuple[PromptSet, DatasetVariant, int], tuple[str, Any]] = {}

    def of(self, prompts: PromptSet, dataset: AnyDataset) -> str:
        queries = dataset.shared_dataset.queries
        key = (prompts, dataset.variant, id(queries))
        if key not in self._known:
            self._known[key] = (prompts.hash(dataset), queries)
        return self._known[key][0]


def _transcript(run: Run, dataset: AnyDataset, hashes: _PromptHashes) -> Transcript:
    check_table(dataset, run)
    identity = run.provenance.identity
    recorded = run.provenance.prompt_hash
    named = recorded_prompts(run.benchmark, run.provenance.prompts, identity)
    prompts = next((each for each in named if hashes.of(each, dataset) == recorded), None)
    return Transcript(run, dataset, prompts, image_folder(run.variant.images).path)


# --- drawings -------------------------------------------------------------------------------------

_IMAGES = 8
_REFERENCES = 4
_LINES = 12
_FAR = 1e6

# Returns the number of an image (path, width, height) among all images of a page
NumberOf = Callable[[tuple[Path, int, int]], int]


def drawn_values(drawing: Drawing, folder: Path, number: NumberOf) -> dict[str, Any]:
    """Return images with boxes, reference images and lines of text, ready for JSON.

    ``frames[j].boxes`` are [role, x1, y1, x2, y2, label, overlap] in pixels of the original (the
    overlap is None if it is not computed); ``lines`` are [role, text]. ``sizes`` are the COCO sizes
    of the objects, ``iou`` is their mean IoU (None if none was compared, as for points).
    """
    count = len(drawing.images)
    places = np.linspace(0, count - 1, min(count, _IMAGES), dtype=int).tolist()
    every = (box for image in drawing.images for box in image.boxes)
    objects = [box for box in every if box.role is Role.TRUTH]
    ious = [box.value for box in objects if box.value is not None]
    return {
        "shots": [number((folder / name, 0, 0)) for name in drawing.support[:_REFERENCES]],
        "frames": [
            {
                "frame": image.number,
                "name": image.name,
                "image": number((folder / image.path, image.width, image.height)),
                "boxes": [_box(box) for box in image.boxes],
            }
            for image in (drawing.images[at] for at in places)
        ],
        "count": count,
        "lines": [[line.role.value, str(line.text)] for line in drawing.lines[:_LINES]],
        "sizes": sorted({coco_size(box.box) for box in objects}),
        "iou": rounded_down(sum(ious) / len(ious)) if ious else None,
    }


def _box(box: DrawnBox) -> list[Any]:
    overlap = None if box.value is None else rounded_down(box.value)
    # Answered boxes may lie anywhere.
    corners = [round(min(max(n, -_FAR), _FAR), 1) for n in box.box]
    return [box.role.value, *corners, str(box.label), overlap]
