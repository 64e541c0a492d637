"""Make tables of files that a user brings, and of the demonstration's photographs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...benchmarks.selfretrieval import image_pairs
from ...benchmarks.vpbench import stage1_release, stage2_release
from ...core.table_files import WrittenTable
from ..demo.photos import prepare_demo


def make_vp_bench(files: Path, out: Path, _force: bool) -> Iterator[WrittenTable]:
    """Make stage 2 of the parts that exist, and stage 1 where it exists or nothing else does."""
    parts = stage2_release.parts_in(files)
    if parts:
        yield stage2_release.prepare(parts, out)
    if not parts or stage1_release.files_of(files):
        yield stage1_release.prepare(files, out)


def make_self_retrieval(file: Path, out: Path, force: bool) -> Iterator[WrittenTable]:
    """Make the table of pairs; ``force``: although they are not the published pairs."""
    yield image_pairs.prepare(file, out, force)


def make_demo(_files: Path, _out: Path, _force: bool) -> Iterator[WrittenTable]:
    """Make the tables of photographs, always in VLMEvalKit's data folder."""
    return (table.written for table in prepare_demo())
