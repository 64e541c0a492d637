"""Load a dataset, and make its table and images first where the package makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .. import benchmarks
from ..benchmarks.findit import BENCHMARK_DATASETS, DATASETS, PREFIX
from ..protocol import AnyDataset, DatasetNameError, DatasetVariant


def load_dataset(name: str) -> AnyDataset:
    """Load a dataset by name; what the package makes is made first, unless it is up to date.

    Raises:
        DatasetNameError: the name is not valid, or is of a published set that is not imported yet.
        FileNotFoundError: the table is nowhere; the message says how to make it.
        ValueError: the table cannot be read; the message names file, row and column.
    """
    table = parse_dataset(name).table
    if table in MAKERS:
        MAKERS[table](table)
    return benchmarks.load(name)


def parse_dataset(name: str) -> DatasetVariant:
    """Parse the name of a dataset.

    Raises:
        DatasetNameError: it is not valid, or is of a published set that is not imported yet; the
            message says how to make that.
    """
    try:
        return benchmarks.parse(name)
    except DatasetNameError:
        refuse_unmade(name)
        raise


def refuse_unmade(name: str, takes_tables: bool = False) -> None:
    """Raise a DatasetNameError for a published set's dataset that is not here, with its import.

    Args:
        name: of a dataset, or of a table.
        takes_tables: whether the name of a table will do where this one was typed.
    """
    # Imported late: its rows are read from a file, which most commands need not wait for.
    from .sources import published_dataset

    published = published_dataset(name)
    if published is None or published[1] in DATASETS:
        return
    row, dataset = published
    text = name.removeprefix(PREFIX)
    form = text.removeprefix(dataset) if text.startswith(dataset) else ""
    is_table = form in ("", "_multilabel")
    if takes_tables and is_table:
        full_name = f"{dataset}{form}"
    else:
        full_name = f"{PREFIX}{dataset}{form}{'_xyxy_json' if is_table else ''}"
    raise DatasetNameError(
        f"unknown dataset {name!r}: FindIt's is made of files that you have. Type: "
        f"run_findit.py data get {row.name} --from PATH, then name {full_name}"
    )


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
