"""Sweeps of many calls with a model that answers at once, and what each stage of them took."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonl_data import write_lines
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import forget_names
from vlmeval_findit.cli import main
from vlmeval_findit.engine import answering
from vlmeval_findit.engine.journal import writer as journal
from vlmeval_findit.sweeps import sweep_run

PICTURES = 100

SIZE = (160, 120)
"""Width and height of every picture."""

BOX = (5, 6, 50, 60)
"""Where what is asked for is in each of them, in pixels."""

GRID = """
models: FullImage
datasets: [Scale]
representations: all
outputs: all
keys: all
"""


def import_table(
    folder: Path,
    rows: int,
    patch: pytest.MonkeyPatch,
    pictures: int = PICTURES,
    size: tuple[int, int] = SIZE,
) -> None:
    """A table of one's own of so many rows, over at most so many pictures of a size; other tests do
    not see it.
    """
    (folder / "lmu").mkdir()
    patch.setenv("LMUData", str(folder / "lmu"))
    forget_names()
    images = folder / "pictures"
    images.mkdir(parents=True)
    random = np.random.default_rng(0)
    for at in range(min(pictures, rows)):
        pixels = random.integers(0, 255, (*size[::-1], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / f"{at}.png")
    lines = [
        {"image": f"{at % pictures}.png", "expression": f"thing {at}", "boxes": [BOX]}
        for at in range(rows)
    ]
    path = write_lines(folder / "scale.jsonl", lines)
    given = ["data", "import", str(path), "--image-root", str(images), "--name", "Scale"]
    assert main(given) == 0


Seconds = dict[str, float]

STAGES = {
    "journal opened": (journal.Journal, "__init__"),
    "prepared": (sweep_run, "_prepare"),
    "foreign refused": (sweep_run, "merge_predictions"),
    "planned": (answering, "Plan"),
    "left found": (answering, "calls_left"),
    "begun": (answering, "begin"),
    "recorded": (answering, "record_of"),
    "appended": (journal.Journal, "append"),
    "finished": (answering.Engine, "finish"),
    "asked": (answering, "answer"),
}
"""By what a stage is called, the function whose seconds are counted."""


@contextmanager
def stages_timed(patch: pytest.MonkeyPatch) -> Iterator[Seconds]:
    """The seconds that each stage of the sweeps within takes, without those of stages within it."""
    found: Seconds = defaultdict(float)
    inner = [0.0]

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            start = time.process_time()
            inner.append(0.0)
            try:
                return function(*arguments, **named)
            finally:
                took = time.process_time() - start
                found[name] += took - inner.pop()
                inner[-1] += took

        return call

    with patch.context() as within:
        for name, (where, what) in STAGES.items():
            within.setattr(where, what, timed(name, getattr(where, what)))
        yield found
