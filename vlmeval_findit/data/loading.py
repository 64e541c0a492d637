"""Load a dataset, and make its table and images first where the package makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .. import benchmarks
from ..benchmarks.findit import BENCHMARK_DATASETS
from ..protocol import AnyDataset


def load_dataset(name: str) -> AnyDataset:
    """Load a dataset by name; what the package makes is made first, unless it is up to date.

    Raises:
        DatasetNameError: the name is not valid.
        FileNotFoundError: the table is nowhere; the message says how to make it.
        ValueError: the table cannot be read; the message names file, row and column.
    """
    table = benchmarks.parse(name).table
    if table in MAKERS:
        MAKERS[table](table)
    return benchmarks.load(name)


# Makers are imported when they are called: an up-to-date table should cost no more than a look.


def _make_demo(_table: str) -> None:
    from .demo.photos import ensure_demo

    ensure_demo()


def _make_scenes(table: str) -> None:
    from .rendered.tables import ensure_scenes

    ensure_scenes(table)


def _make_marked_scenes(table: str) -> None:
    from .rendered.tables import ensure_marked_scenes

    ensure_marked_scenes(table)


def _make_scene_pairs(table: str) -> None:
    from .rendered.tables import ensure_scene_pairs

    ensure_scene_pairs(table)


def _make_probe(_table: str) -> None:
    from .probe_scenes import ensure_probe

    ensure_probe()


def _findit_tables(images: str) -> Iterator[str]:
    """Yield FindIt's tables about the images of a folder."""
    for dataset in BENCHMARK_DATASETS.values():
        if dataset.images == images:
            yield from dataset.tables


# Makes a table that ships, or a drawn one, and its images.  By the table.
MAKERS: Mapping[str, Callable[[str], None]] = {
    **dict.fromkeys(_findit_tables("Demo"), _make_demo),
    **dict.fromkeys(_findit_tables("Scenes"), _make_scenes),
    **dict.fromkeys(_findit_tables("Scenes_mini"), _make_scenes),
    **dict.fromkeys(_findit_tables("Scenes_train"), _make_scenes),
    **dict.fromkeys(("VPBench_Scenes", "VPBench_Scenes_mini"), _make_marked_scenes),
    **dict.fromkeys(("SelfRetrieval_Scenes", "SelfRetrieval_Scenes_mini"), _make_scene_pairs),
    "Probe": _make_probe,
}
