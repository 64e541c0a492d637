"""The release's Parquet subsets to queries and TSVs; checksums vouch for their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...boxes import Corners, Truth
from ...core import file_sha256, suggestion
from ...storage import TableError, parquet_rows
from .annotation_tables import PreparedTable, corners, write_table
from .dataset_names import group_meant, table_called
from .findit_datasets import BENCHMARK_DATASETS, DATASETS, Dataset
from .findit_query import FindItQuery, Sighting, thinned_query

SubsetRow = Mapping[str, Any]  # In the release's column layout


def query_from_row(index: int, row: SubsetRow, dataset: Dataset, multilabel: bool) -> FindItQuery:
    """Convert a row of a subset to a query (not thinned)."""
    is_video = dataset.family.is_video
    names = row["frame_paths"] if is_video else [row["filename"]]
    boxes: list[Corners] = []
    frames: list[int] = []
    labels: list[str] = []
    for frame, entries in enumerate(row["bboxes"] if is_video else [row["bboxes"]]):
        for entry in entries or ():
            frames.append(frame)
            if multilabel:
                boxes.append(corners(entry["bbox"]))
                labels.append(entry["label"])
            else:
                boxes.append(corners(entry))
    return FindItQuery(
        index=index,
        label=row["label"],
        width=row["width"],
        height=row["height"],
        images=tuple(dataset.image_name(name) for name in names),
        support=tuple(dataset.support_name(name) for name in row.get("support_shots") or ()),
        caption=str(row.get("caption") or ""),
        frame_indices=tuple(row.get("frame_indices") or ()),
        sightings=tuple(Sighting(*seen) for seen in row.get("sightings") or ()),
        truth=Truth(tuple(boxes), tuple(frames), tuple(labels)),
    )


def prepare_subset(subsets: Path, out: Path, dataset: Dataset, multilabel: bool) -> PreparedTable:
    """Write the TSV of a subset; a FileNotFoundError without it, a TableError by its checksum."""
    known = dataset.subset_for(multilabel)
    assert known is not None
    source = subsets / f"{known.file}.parquet"
    if not source.is_file():
        raise FileNotFoundError(f"{source} is missing: it holds {dataset.table_name(multilabel)}")
    checksum = file_sha256(source)
    if checksum != known.sha256:
        raise TableError(
            f"{source}: SHA-256 is {checksum}, but the release's file has {known.sha256}; "
            "scores on other annotations are not FindIt scores"
        )
    thin = [
        thinned_query(query_from_row(i, row, dataset, multilabel), dataset.frames)
        for i, (_, row) in enumerate(parquet_rows(source))
    ]
    origin = {"source": source.name, "source_sha256": checksum}
    return write_table(out, dataset.table_name(multilabel), thin, origin)


def tables_of(names: Iterable[str] | None) -> Iterator[tuple[Dataset, bool]]:
    """Yield the release's tables of the named datasets (default: all), or raise TableError."""
    with_source = {name: row for name, row in BENCHMARK_DATASETS.items() if row.subset is not None}
    for name in with_source if names is None else map(table_called, names):
        # Pascal means both of its tables, Pascal_multilabel only the second.
        dataset = name.removesuffix("_multilabel")
        if dataset not in with_source:
            if dataset not in DATASETS:
                unknown = f"unknown dataset {name!r}{suggestion(name, with_source)}"
                raise TableError(group_meant(name) or unknown)
            how = "a run makes its tables and images when it needs them"
            if DATASETS[dataset].folder is not None:
                how = f"you imported it; type python run_findit.py check FindIt_{name}_xyxy_json"
            raise TableError(f"{dataset} is not of the release: {how}")
        for multilabel in (True,) if name != dataset else (False, True):
            if with_source[dataset].subset_for(multilabel) is not None:
                yield with_source[dataset], multilabel
