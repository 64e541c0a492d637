"""FindIt's datasets (protocol section 2), with the checksums of the release's Parquet subsets.

Custom datasets (``data import``) are rows of the same table, read from a small file when an unknown
name is looked up for the first time, and when the file changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from ...core import quoted_value, suggestion
from ...storage import (
    CustomDataset,
    DatasetFileError,
    custom_datasets,
    custom_datasets_file,
    known_custom_datasets,
)


class Family(Enum):
    """Families of datasets, named as in the release; people read their titles."""

    OBJDET = "objdet"
    OBJDET_VIDEO = "objdet_video"
    REFEXP = "refexp"
    REFEXP_ALL = "refexp_all"
    INSDET = "insdet"
    INSDET_VIDEO = "insdet_video"

    @property
    def title(self) -> str:
        """Return its name for people."""
        return _WORDS[self].title

    @property
    def target(self) -> str:
        """Return in words which boxes answer its queries."""
        return _WORDS[self].target

    @property
    def is_video(self) -> bool:
        return self in (Family.OBJDET_VIDEO, Family.INSDET_VIDEO)

    @property
    def has_references(self) -> bool:
        """Return whether queries show the object in reference images instead of naming it."""
        return self in (Family.INSDET, Family.INSDET_VIDEO)


class _FamilyWords(NamedTuple):
    title: str
    target: str


_WORDS = {
    Family.OBJDET: _FamilyWords("Object detection", "every object of a label"),
    Family.OBJDET_VIDEO: _FamilyWords(
        "Detection in video", "every object of a label in the frames of a video"
    ),
    Family.REFEXP: _FamilyWords("Referring expressions", "the object that an expression describes"),
    Family.REFEXP_ALL: _FamilyWords(
        "Described objects", "every object that an expression describes"
    ),
    Family.INSDET: _FamilyWords("Instance detection", "the object of reference images"),
    Family.INSDET_VIDEO: _FamilyWords(
        "Instances in video", "the object of reference images in the frames of a video"
    ),
}


@dataclass(frozen=True, slots=True)
class Subset:
    """A Parquet file of the release."""

    file: str
    sha256: str


# The command that makes a table of the release
OF_THE_RELEASE = "python run_findit.py data get {table} [--from DIR]"


def _without_annotation(name: str) -> str:
    """Drop the annotation's number: the 2 of ``COCO_train2014_000000047093_2.jpg``."""
    stem, dot, suffix = name.rpartition(".")
    return stem.rpartition("_")[0] + dot + suffix


@dataclass(frozen=True, slots=True)
class Dataset:
    """One dataset."""

    name: str
    family: Family
    images: str  # Key of the image folder (configs/datasets.yaml) and in data.sources
    subset: Subset | None = None
    multilabel_subset: Subset | None = None
    has_multilabel: bool = False
    has_caption: bool = False
    has_negatives: bool = False
    has_points: bool = True  # Whether its benchmark has metrics for points
    frames: int = 1  # That rows are thinned to; 1: an image dataset
    image_name: Callable[[str], str] = str  # Name in the subset to path in the image folder
    support_name: Callable[[str], str] = str  # Likewise for reference shots
    folder: str | None = None  # Image folder of a custom dataset
    is_made: bool = False  # Whether the package makes tables and images, on first use
    for_training: bool = False  # Whether models may be trained on it

    def subset_for(self, multilabel: bool) -> Subset | None:
        return self.multilabel_subset if multilabel else self.subset

    def table_name(self, multilabel: bool) -> str:
        """Return the stem of its TSV: ``Pascal``, ``Pascal_multilabel``."""
        return f"{self.name}_multilabel" if multilabel else self.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of its tables."""
        return (self.name, self.table_name(True)) if self.has_multilabel else (self.name,)

    @property
    def how_to_make(self) -> str:
        """Return the command that makes its tables; ``{table}`` stands for a table's name."""
        if self.folder is not None:
            return f"python run_findit.py data import --replace --name {self.name} …"
        if self.images == "Demo":
            return "python run_findit.py data get Demo"
        if self.is_made:
            return "deleting {table}.tsv (the next run makes it again)"
        return OF_THE_RELEASE


def _made(name: str, for_training: bool = False) -> tuple[Dataset, ...]:
    shared: dict[str, Any] = {"images": name, "is_made": True, "for_training": for_training}
    return (
        Dataset(name, Family.OBJDET, has_multilabel=True, **shared),
        Dataset(f"{name}_refexp", Family.REFEXP, **shared),
        Dataset(f"{name}_described", Family.REFEXP_ALL, has_negatives=True, **shared),
        Dataset(f"{name}_insdet", Family.INSDET, **shared),
        Dataset(f"{name}_video", Family.OBJDET_VIDEO, frames=8, **shared),
    )


# The release's files and their SHA-256
_FILES = """
pascal                793fab7ad8e8ae5b2e9729995087f55c40b5dce4caa00c5fa9c9937af7f3e617
pascal_multilabel     5d3a44b81e470e2fd3d89c862b0d22b0f202b588af19d1b43a1d14f14b234cba
openimages            f9183fd8a64d12e6635d16c723e1e7ab40fb71f6c0c955dc470eadc641319cf5
openimages_multilabel c0dcd8d8527ff3ed41b7588ffc5c9c3bd7a882bd9b7d0232604f7e5e914c84da
iground               9defc23dec7d96023bf9cf05403adbb94015498874402815b53296b55e606f97
iground_multilabel    7ab44e33d7852854df670811665a9648d780baacbe0a0e58a57f10243fbcc0fd
refcoco_test          d2b9ce59dc0cb530aaed1d56ffcd1eb942b01b5b5b2c68172c06e990dd801c21
refcoco_testA         b661066defd01f3fee0deb490fd73acd43c233888776c97769c0e0eba1300f86
refcoco_testB         9a51fe4c60994e2f194776758a3221808b5526f4013ee601db561244ec85f1a0
refcoco_plus_testA    e29af5902eaa84a32a5cfe32b9ab2fac112ab598559b7aae059a56dc5bcf2436
refcoco_plus_testB    aaf4900530ad39d7c8b1e536b976de3d8dd90afef9f30d74a1028b7843098dd5
refcoco_g_test        964da86fe4ad892d7732c53e5d246fe47b74ab03700ee3d9919b49f97214f443
refl4                 a7d1715f1196814ba72bc77d7e5ce916b015689edf5afcf8e0673ef9fcf58199
svg_relations         9e855089a9222166ce2c1684642f52032208fd1542b322a3788fac4f49760edb
phrasecut             609e0839fddbca9eecdfa13208a5e04f1c75bdce363fe5706e15340496c2a3b5
flickr30k             8d94a4e806bb9af4e3f07ef69bdd92b13a27863f7e91dea7f51dfef1a5fe9c63
d3                    8d7e99d7d7bcd4335e0d88f2d071bbca1b8f499bb17e50291d3c5c304366bda6
hr_insdet_easy        5c1e90b32394afd9ce5abeadc8f46fcbd078f0720149cc62dec77c43c81cc205
hr_insdet_hard        6de1ae628313d2a5891f43922a5ea1df35f120fdb8dfd75c24722612298cf439
robotools             6fb5bd64f6e8e149ac3d77510bfee1ded10d20466ef2b164eaa7b71eea09238d
"""

_SUBSETS = {
    file: Subset(file, sha256) for file, sha256 in map(str.split, _FILES.strip().splitlines())
}


def _released(
    name: str, family: Family, file: str, images: str | None = None, **settings: Any
) -> Dataset:
    """Return the row of a dataset of the release, with its multi-label file, if any."""
    subset = _SUBSETS[file]
    multilabel = _SUBSETS.get(f"{file}_multilabel")
    has_multilabel = multilabel is not None
    return Dataset(name, family, images or name, subset, multilabel, has_multilabel, **settings)


def _refcoco(name: str, file: str) -> Dataset:
    return _released(name, Family.REFEXP, file, "COCO_train2014", image_name=_without_annotation)


def _hr_insdet(level: str) -> Dataset:
    return _released(
        f"HRInsDet_{level}",
        Family.INSDET,
        f"hr_insdet_{level}",
        "HRInsDet",
        image_name=lambda name: f"Scenes/{level}/{name}",
        support_name=lambda name: f"Objects/{name}",
    )


_ROWS = (
    _released("Pascal", Family.OBJDET, "pascal"),
    _released("OpenImages", Family.OBJDET, "openimages", image_name=lambda name: f"{name}.jpg"),
    _released("iGround", Family.OBJDET_VIDEO, "iground", has_caption=True, frames=8),
    _refcoco("RefCOCO", "refcoco_test"),
    _refcoco("RefCOCO_testA", "refcoco_testA"),
    _refcoco("RefCOCO_testB", "refcoco_testB"),
    _refcoco("RefCOCOplus_testA", "refcoco_plus_testA"),
    _refcoco("RefCOCOplus_testB", "refcoco_plus_testB"),
    _refcoco("RefCOCOg", "refcoco_g_test"),
    _released("RefL4", Family.REFEXP, "refl4"),
    _released("SVG", Family.REFEXP, "svg_relations", images="VisualGenome"),
    _released("PhraseCut", Family.REFEXP_ALL, "phrasecut", images="VisualGenome"),
    _released("Flickr30k", Family.REFEXP_ALL, "flickr30k", has_caption=True),
    _released("D3", Family.REFEXP_ALL, "d3", has_negatives=True),
    _hr_insdet("easy"),
    _hr_insdet("hard"),
    _released(
        "RoboTools",
        Family.INSDET_VIDEO,
        "robotools",
        frames=64,
        image_name=lambda name: f"test/{name}",
        support_name=lambda name: f"test_video/{name}",
    ),
    # Demonstration: photographs from Python packages, annotated by hand.
    *_made("Demo"),
    # Scenes rendered from seeds: the test set, a small set of other scenes, and a training set.
    *_made("Scenes"),
    *_made("Scenes_mini"),
    *_made("Scenes_train", for_training=True),
    # Images of chosen sizes with one object each, for `probe`.
    Dataset("Probe", Family.REFEXP, images="Probe", is_made=True),
)

# Without custom datasets
BENCHMARK_DATASETS: Mapping[str, Dataset] = {row.name: row for row in _ROWS}


class Datasets(Mapping[str, Dataset]):
    """All datasets, built-in ones before custom ones.

    The file of custom datasets is looked at for unknown names and for lists, never on import; if it
    is damaged, this raises DatasetFileError.
    """

    def __init__(self) -> None:
        self._made: tuple[Mapping[str, CustomDataset], dict[str, Dataset]] = ({}, {})

    def __getitem__(self, name: str) -> Dataset:
        return (
            BENCHMARK_DATASETS[name]
            if name in BENCHMARK_DATASETS
            else self._row(name, custom_datasets())
        )

    def __iter__(self) -> Iterator[str]:
        yield from BENCHMARK_DATASETS
        yield from custom_datasets()

    def __len__(self) -> int:
        return len(BENCHMARK_DATASETS) + len(custom_datasets())

    def known(self, name: str) -> Dataset:
        """Return a dataset as it was when the file was last looked at, which costs nothing.

        For everything that is done for each row of a table. A name that was not in the file is
        looked for again.
        """
        if name in BENCHMARK_DATASETS:
            return BENCHMARK_DATASETS[name]
        custom = known_custom_datasets()
        return self._row(name, custom) if name in custom else self[name]

    def _row(self, name: str, custom: Mapping[str, CustomDataset]) -> Dataset:
        """Return a row of the file, made once as long as the file is the same."""
        made_of, rows = self._made
        if made_of is not custom:
            rows = {}
            self._made = custom, rows
        if name not in rows:
            rows[name] = _custom_row(name, custom[name])
        return rows[name]


DATASETS = Datasets()  # FindIt's datasets by name: the benchmark's, and imported ones


def custom_rows() -> Mapping[str, Dataset]:
    """Read the custom datasets by name, or raise DatasetFileError."""
    return {name: DATASETS.known(name) for name in custom_datasets()}


def _custom_row(name: str, row: CustomDataset) -> Dataset:
    families = [family.value for family in Family]
    if row.family not in families:
        why = f"unknown family {quoted_value(row.family)}{suggestion(row.family, families)}"
        raise DatasetFileError(f"{custom_datasets_file()}, {name}, family: {why}")
    return Dataset(
        name,
        Family(row.family),
        images=name,
        has_multilabel=row.multilabel,
        has_caption=row.captions,
        has_negatives=row.negatives,
        frames=row.frames,
        folder=row.folder,
        for_training=True,
    )
