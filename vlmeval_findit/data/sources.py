"""The registry of data: one row an image folder, a published set, or a benchmark's files.

A row says where its data come from, how they are licensed, read, checked and made into tables.
Datasets that share an image folder (the six RefCOCO splits, say) share its row.  Our rows are in
``sources.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from ..benchmarks.findit import PREFIX, Dataset
from ..core import Group, PluginTable, quoted_value, suggestion
from ..storage import WrittenTable
from .annotated_samples import AnnotationError, Counts, Samples
from .custom.reader_options import ReaderOptions

# The licence of what needs no download
SHIPPED_LICENCE = "this package's"


@dataclass(frozen=True, slots=True)
class Files:
    """Every image is a file at an address."""

    base: str  # Key of its base address
    paths: tuple[str, ...] = ("{}",)  # Below the base, {} the image's name; tried in order


@dataclass(frozen=True, slots=True)
class Archives:
    """Images are members of archives."""

    base: str  # Key of their base address
    files: tuple[str, ...]  # Below the base; read in order until no image is missing
    member: str = "{}"  # End of a member's path, {} the image's name


Origin = Files | Archives


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """One dataset of a published set."""

    name: str  # Within the set; "" where it is the only one
    # Raises AnnotationError, naming the file and the place in it; called with options, if there are
    read: Callable[..., Samples]
    bad_boxes: bool = False  # It has boxes without an area, or outside their image: left out
    options: ReaderOptions | None = None  # Of its reader; None: it takes none


@dataclass(frozen=True, eq=False, slots=True)
class DataSource:
    """One row of the registry.  What is not established is not stated."""

    name: str  # Of the image folder; of a published set: what its dataset is called
    licence: str
    holds: str = ""  # What the user's files must be, where nothing is fetched
    # Images that are fetched
    download: str = ""  # How much comes over the network, in words
    origins: Mapping[str, Origin] = field(default_factory=dict)  # The first that a name begins with
    steps: str = ""  # What a person does where no origin has an address
    frames: str = ""  # Pattern of a frame's name: the video, the number from 0
    # Published sets
    title: str = ""
    address: str = ""  # Where it is published
    # Finds the parts in a folder and reads none of them; raises AnnotationError if there is none
    read: Callable[[Path], Sequence[PublishedPart]] | None = None
    counts: Counts = field(default_factory=Counts)  # Of the whole
    parts: Mapping[str, Counts] = field(default_factory=dict)
    datasets: int = 1
    # Benchmarks' files: makes their tables of the user's files, in a folder; True: although they
    # differ from the published ones
    make: Callable[[Path, Path, bool], Iterable[WrittenTable]] | None = None

    def origin_of(self, image: str) -> Origin | None:
        """Return where an image is fetched from; None: its owners give it only by hand."""
        fitting = (origin for begin, origin in self.origins.items() if image.startswith(begin))
        return next(fitting, None)

    def dataset(self, part: str, name: str | None = None) -> str:
        """What a part's dataset is called, where the set is called ``name`` (None: as the row)."""
        return "_".join(filter(None, (name or self.name, part)))

    def parts_in(self, folder: Path) -> Sequence[PublishedPart]:
        """Find the parts of a published set, or raise an AnnotationError."""
        if self.read is None:
            raise AnnotationError(f"{self.name} is not a published set that can be imported")
        parts = self.read(folder)
        if not isinstance(parts, Sequence):
            raise AnnotationError(
                f"the reader of {self.name} gives {quoted_value(parts)}, not a list"
            )
        for part in parts:
            if not isinstance(part, PublishedPart):
                raise AnnotationError(
                    f"the reader of {self.name} should list PublishedPart, and has "
                    f"{quoted_value(part)}"
                )
        return parts

    def differences(self, part: str, samples: Samples) -> Sequence[str]:
        """Say how a part differs from what is published, in files and counts."""
        published = self.parts.get(part, Counts()) if part else self.counts
        return [*samples.missing, *samples.counts.differences(published)]


WHOLE_REF_L4 = "RefL4Full"

# The files of a source that needs none of the user's
NO_FILES = "nothing: photographs of installed packages"


# --- the rows -------------------------------------------------------------------------------------


def _make_vp_bench(files: Path, out: Path, _force: bool) -> Iterator[WrittenTable]:
    """Make stage 2 of the parts that exist, and stage 1 where it exists or nothing else does."""
    from ..benchmarks.vpbench import stage1_release, stage2_release

    parts = stage2_release.parts_in(files)
    if parts:
        yield stage2_release.prepare_stage2(parts, out)
    if not parts or stage1_release.files_of(files):
        yield stage1_release.prepare_stage1(files, out)


def _make_self_retrieval(file: Path, out: Path, force: bool) -> Iterator[WrittenTable]:
    from ..benchmarks.selfretrieval import image_pairs

    yield image_pairs.prepare(file, out, force)


def _make_demo(_files: Path, _out: Path, _force: bool) -> Iterator[WrittenTable]:
    from .demo.photos import prepare_demo

    yield from prepare_demo()


_MAKERS = {
    "VPBench": _make_vp_bench,
    "SelfRetrieval": _make_self_retrieval,
    "Demo": _make_demo,
}


def _read_by(module: str, function: str, *more: str) -> Callable[[Path], Sequence[PublishedPart]]:
    """Return a function of ``published_set_readers/``, which is imported when it is called."""

    def read(folder: Path) -> Sequence[PublishedPart]:
        find = getattr(import_module(f".published_set_readers.{module}", __package__), function)
        parts: Sequence[PublishedPart] = find(folder, *more)
        return parts

    return read


def _origin(base: str, files: Sequence[str] = (), **more: Any) -> Origin:
    if files:
        return Archives(base, tuple(files), **more)
    return Files(base, tuple(more.get("paths", ("{}",))))


def _row(name: str, values: dict[str, Any]) -> DataSource:
    origins = {begin: _origin(**stated) for begin, stated in values.pop("origins", {}).items()}
    parts = {part: Counts(**stated) for part, stated in values.pop("parts", {}).items()}
    counts = Counts(**values.pop("counts", {}))
    read = values.pop("read", None)
    return DataSource(
        name,
        **values,
        origins=origins,
        read=_read_by(*read) if read else None,
        counts=counts,
        parts=parts,
        make=_MAKERS.get(name),
    )


def _rows() -> dict[str, DataSource]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = Path(__file__).with_name("sources.yaml").read_text(encoding="utf-8")
    return {name: _row(name, dict(values)) for name, values in yaml.load(text, loader).items()}


def _problem(row: DataSource) -> str | None:
    """Return why a plug-in's row cannot join the table; None if it can."""
    if row.read is None:
        return "nothing reads it: give it a function `read`"
    if not callable(row.read):
        return f"read should be a function, and is {quoted_value(row.read)}"
    for name in ("licence", "holds", "title", "address"):
        if not isinstance(getattr(row, name), str):
            return f"{name} should be text, and is {quoted_value(getattr(row, name))}"
    if not isinstance(row.counts, Counts):
        return f"counts should be Counts, and is {quoted_value(row.counts)}"
    if not isinstance(row.parts, Mapping):
        return f"parts should be Counts by name, and is {quoted_value(row.parts)}"
    return None


# The table, by the name of the image folder or of the set
SOURCES: PluginTable[DataSource] = PluginTable(
    Group.SOURCES,
    _rows(),
    DataSource,
    _problem,
)


def published_sets() -> Mapping[str, DataSource]:
    """Return the published sets, plug-ins' too."""
    return {name: row for name, row in SOURCES.items() if row.read is not None}


def published_dataset(name: str) -> tuple[DataSource, str] | None:
    """Return the published set of a name, and the dataset that is meant; None for others.

    >>> row, dataset = published_dataset("FindIt_RefCOCOFull_testA_xyxy_json")
    >>> row.name, dataset
    ('RefCOCOFull', 'RefCOCOFull_testA')
    >>> published_dataset("RefCOCOFull")[1], published_dataset("FindIt_RefCOCO_testA_xyxy_json")
    ('RefCOCOFull_val', None)
    """
    text = name.removeprefix(PREFIX)
    matching = []
    for row in published_sets().values():
        datasets = [row.dataset(part) for part in row.parts or ("",)]
        if text == row.name:
            return row, datasets[0]
        matching += [(row, each) for each in datasets if f"{text}_".startswith(f"{each}_")]
    return max(matching, key=lambda item: len(item[1]), default=None)


def made_sources() -> Mapping[str, DataSource]:
    """Return the sources whose tables are made of the user's files."""
    return {name: row for name, row in SOURCES.items() if row.make is not None}


def source_for(dataset: Dataset) -> DataSource:
    """Return where the images of a dataset come from, or raise a ValueError."""
    if dataset.images not in SOURCES.builtin:
        near = suggestion(dataset.images, SOURCES.builtin)
        why = f"nothing says where the images {dataset.images!r} come from{near}"
        raise ValueError(f"{dataset.name}: {why}")
    return SOURCES.builtin[dataset.images]
