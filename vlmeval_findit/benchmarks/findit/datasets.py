"""The benchmark's datasets: one row a dataset (protocol section 2).

A row says what is asked of the dataset (its task family), how many frames a row of it is first
thinned to, where its annotations come from and what is known of them.  The counts and checksums
are those of the release's Parquet subsets; ``prepare`` refuses a file that does not have them.
Datasets of one's own (``run_findit.py import``) are rows of the same table, read from a small file
when a name is asked for that is none of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from ...core.data_root import own_datasets_file
from ...core.own_images import DatasetFileError, OwnRow, own_rows
from ...core.paths import unsafe
from ...core.spelling import nearest


class Family(Enum):
    """Task families, by the release's names."""

    OBJDET = "objdet"
    OBJDET_VIDEO = "objdet_video"
    REFEXP = "refexp"
    REFEXP_ALL = "refexp_all"
    INSDET = "insdet"
    INSDET_VIDEO = "insdet_video"

    @property
    def is_video(self) -> bool:
        return self in (Family.OBJDET_VIDEO, Family.INSDET_VIDEO)

    @property
    def has_references(self) -> bool:
        """Whether a query shows reference images of the object instead of naming it."""
        return self in (Family.INSDET, Family.INSDET_VIDEO)


@dataclass(frozen=True, slots=True)
class Subset:
    """What is known of one Parquet file of the release, counted before any thinning.

    ``names`` counts distinct file names: images, videos or scenes.  The RefCOCO files name an
    annotation of an image, so they have fewer images than names.
    """

    file: str
    rows: int
    names: int
    boxes: int
    rows_without_box: int
    sha256: str


OF_THE_RELEASE = (
    "python run_findit.py fetch {table}, "
    "or python run_findit.py prepare --subsets DIR --only {table}"
)
"""The command that makes a table of the release."""


def _same(name: str) -> str:
    return name


def _without_annotation(name: str) -> str:
    """``COCO_train2014_000000047093_2.jpg`` names annotation 2 of an image: drop the last part."""
    stem, dot, suffix = name.rpartition(".")
    return stem.rpartition("_")[0] + dot + suffix


def _with_jpg(name: str) -> str:
    return f"{name}.jpg"


@dataclass(frozen=True, slots=True)
class Dataset:
    """One row of the table.

    ``frames`` is what every row is first thinned to (1: an image dataset).  ``images`` is the key
    of the image folder in ``configs/datasets.yaml``, and of the row of
    :mod:`vlmeval_findit.data.fetch.sources` that says where the release's images come from.
    ``image_name`` maps a name of the subset to a path in that folder, ``support_name`` likewise for
    reference shots.  ``folder`` says where the images of a dataset of one's own lie; ours have
    none, their users configure it.  ``maker`` is the part of this package that makes tables and
    images when they are first asked for (its module ``tables`` has an ``ensure``).
    """

    name: str
    family: Family
    images: str
    subset: Subset | None = None
    multilabel_subset: Subset | None = None
    has_multilabel: bool = False
    has_caption: bool = False
    has_negatives: bool = False
    frames: int = 1
    image_name: Callable[[str], str] = _same
    support_name: Callable[[str], str] = _same
    folder: str | None = None
    maker: str | None = None

    def subset_for(self, multilabel: bool) -> Subset | None:
        return self.multilabel_subset if multilabel else self.subset

    def table_name(self, multilabel: bool) -> str:
        """The name of its TSV, without suffix: ``Pascal``, ``Pascal_multilabel``."""
        return f"{self.name}_multilabel" if multilabel else self.name

    @property
    def how_to_make(self) -> str:
        """The command that makes its tables; ``{table}`` stands for the name of one."""
        if self.folder is not None:
            return f"python run_findit.py import --replace --name {self.name} …"
        if self.maker == "demo":
            return "python run_findit.py prepare --demo"
        if self.maker is not None:
            return "deleting {table}.tsv (it is made when it is asked for)"
        return OF_THE_RELEASE


def _made_here(name: str, maker: str) -> tuple[Dataset, ...]:
    """The tables of a set that this package makes itself: one a task family, the same images."""
    return (
        Dataset(name, Family.OBJDET, images=name, has_multilabel=True, maker=maker),
        Dataset(f"{name}_refexp", Family.REFEXP, images=name, maker=maker),
        Dataset(
            f"{name}_described", Family.REFEXP_ALL, images=name, has_negatives=True, maker=maker
        ),
        Dataset(f"{name}_insdet", Family.INSDET, images=name, maker=maker),
        Dataset(f"{name}_video", Family.OBJDET_VIDEO, images=name, frames=8, maker=maker),
    )


# fmt: off
_ROWS = (
    Dataset(
        name="Pascal",
        family=Family.OBJDET,
        images="Pascal",
        has_multilabel=True,
        subset=Subset(
            "pascal", 1000, 944, 2032, 0,
            "793fab7ad8e8ae5b2e9729995087f55c40b5dce4caa00c5fa9c9937af7f3e617",
        ),
        multilabel_subset=Subset(
            "pascal_multilabel", 1000, 1000, 3053, 0,
            "5d3a44b81e470e2fd3d89c862b0d22b0f202b588af19d1b43a1d14f14b234cba",
        ),
    ),
    Dataset(
        name="OpenImages",
        family=Family.OBJDET,
        images="OpenImages",
        has_multilabel=True,
        image_name=_with_jpg,
        subset=Subset(
            "openimages", 1000, 992, 2301, 0,
            "f9183fd8a64d12e6635d16c723e1e7ab40fb71f6c0c955dc470eadc641319cf5",
        ),
        multilabel_subset=Subset(
            "openimages_multilabel", 1000, 1000, 8474, 0,
            "c0dcd8d8527ff3ed41b7588ffc5c9c3bd7a882bd9b7d0232604f7e5e914c84da",
        ),
    ),
    Dataset(
        name="iGround",
        family=Family.OBJDET_VIDEO,
        images="iGround",
        has_multilabel=True,
        has_caption=True,
        frames=8,
        subset=Subset(
            "iground", 1000, 530, 42749, 0,
            "9defc23dec7d96023bf9cf05403adbb94015498874402815b53296b55e606f97",
        ),
        multilabel_subset=Subset(
            "iground_multilabel", 1000, 668, 118775, 0,
            "7ab44e33d7852854df670811665a9648d780baacbe0a0e58a57f10243fbcc0fd",
        ),
    ),
    Dataset(
        name="RefCOCO",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_test", 1000, 942, 1000, 0,
            "d2b9ce59dc0cb530aaed1d56ffcd1eb942b01b5b5b2c68172c06e990dd801c21",
        ),
    ),
    Dataset(
        name="RefCOCO_testA",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_testA", 1000, 860, 1000, 0,
            "b661066defd01f3fee0deb490fd73acd43c233888776c97769c0e0eba1300f86",
        ),
    ),
    Dataset(
        name="RefCOCO_testB",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_testB", 1000, 842, 1000, 0,
            "9a51fe4c60994e2f194776758a3221808b5526f4013ee601db561244ec85f1a0",
        ),
    ),
    Dataset(
        name="RefCOCOplus_testA",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_plus_testA", 1000, 859, 1000, 0,
            "e29af5902eaa84a32a5cfe32b9ab2fac112ab598559b7aae059a56dc5bcf2436",
        ),
    ),
    Dataset(
        name="RefCOCOplus_testB",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_plus_testB", 1000, 838, 1000, 0,
            "aaf4900530ad39d7c8b1e536b976de3d8dd90afef9f30d74a1028b7843098dd5",
        ),
    ),
    Dataset(
        name="RefCOCOg",
        family=Family.REFEXP,
        images="COCO_train2014",
        image_name=_without_annotation,
        subset=Subset(
            "refcoco_g_test", 1000, 952, 1000, 0,
            "964da86fe4ad892d7732c53e5d246fe47b74ab03700ee3d9919b49f97214f443",
        ),
    ),
    Dataset(
        name="RefL4",
        family=Family.REFEXP,
        images="RefL4",
        subset=Subset(
            "refl4", 1000, 961, 1000, 0,
            "a7d1715f1196814ba72bc77d7e5ce916b015689edf5afcf8e0673ef9fcf58199",
        ),
    ),
    Dataset(
        name="SVG",
        family=Family.REFEXP,
        images="VisualGenome",
        subset=Subset(
            "svg_relations", 1000, 986, 1000, 0,
            "9e855089a9222166ce2c1684642f52032208fd1542b322a3788fac4f49760edb",
        ),
    ),
    Dataset(
        name="PhraseCut",
        family=Family.REFEXP_ALL,
        images="VisualGenome",
        subset=Subset(
            "phrasecut", 1000, 806, 1707, 0,
            "609e0839fddbca9eecdfa13208a5e04f1c75bdce363fe5706e15340496c2a3b5",
        ),
    ),
    Dataset(
        name="Flickr30k",
        family=Family.REFEXP_ALL,
        images="Flickr30k",
        has_caption=True,
        subset=Subset(
            "flickr30k", 1000, 986, 1583, 0,
            "8d94a4e806bb9af4e3f07ef69bdd92b13a27863f7e91dea7f51dfef1a5fe9c63",
        ),
    ),
    Dataset(
        name="D3",
        family=Family.REFEXP_ALL,
        images="D3",
        has_negatives=True,
        subset=Subset(
            "d3", 1000, 969, 468, 696,
            "8d7e99d7d7bcd4335e0d88f2d071bbca1b8f499bb17e50291d3c5c304366bda6",
        ),
    ),
    Dataset(
        name="HRInsDet_easy",
        family=Family.INSDET,
        images="HRInsDet",
        image_name=lambda name: f"Scenes/easy/{name}",
        support_name=lambda name: f"Objects/{name}",
        subset=Subset(
            "hr_insdet_easy", 1000, 120, 1005, 0,
            "5c1e90b32394afd9ce5abeadc8f46fcbd078f0720149cc62dec77c43c81cc205",
        ),
    ),
    Dataset(
        name="HRInsDet_hard",
        family=Family.INSDET,
        images="HRInsDet",
        image_name=lambda name: f"Scenes/hard/{name}",
        support_name=lambda name: f"Objects/{name}",
        subset=Subset(
            "hr_insdet_hard", 963, 40, 963, 0,
            "6de1ae628313d2a5891f43922a5ea1df35f120fdb8dfd75c24722612298cf439",
        ),
    ),
    Dataset(
        name="RoboTools",
        family=Family.INSDET_VIDEO,
        images="RoboTools",
        frames=64,
        image_name=lambda name: f"test/{name}",
        support_name=lambda name: f"test_video/{name}",
        subset=Subset(
            "robotools", 161, 24, 9109, 0,
            "6fb5bd64f6e8e149ac3d77510bfee1ded10d20466ef2b164eaa7b71eea09238d",
        ),
    ),
    # The demonstration: photographs that ship in Python packages, annotated by hand.
    *_made_here("Demo", maker="demo"),
    # Scenes that are rendered from seeds: the test set, and a small one of other scenes.
    *_made_here("Scenes", maker="rendered"),
    *_made_here("Scenes_mini", maker="rendered"),
    # Pictures of chosen sizes with one object each: `probe` asks a deployment about them.
    Dataset("Probe", Family.REFEXP, images="Probe", maker="probe"),
)
# fmt: on

BENCHMARK: Mapping[str, Dataset] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows that ship with us: the benchmark's and those that we make."""


# --- datasets of one's own ------------------------------------------------------------------------


class Datasets(Mapping[str, Dataset]):
    """The one table: our rows, then those of one's own.

    The file of one's own datasets is read when a name is looked up that is none of ours, or when
    all names are listed; importing this module reads nothing.

    Raises:
        DatasetFileError: on such a look-up, where the file is damaged.
    """

    def __getitem__(self, name: str) -> Dataset:
        row = BENCHMARK.get(name)
        return own_datasets()[name] if row is None else row

    def __iter__(self) -> Iterator[str]:
        yield from BENCHMARK
        yield from own_datasets()

    def __len__(self) -> int:
        return len(BENCHMARK) + len(own_datasets())


DATASETS: Mapping[str, Dataset] = Datasets()


def own_datasets() -> Mapping[str, Dataset]:
    """The datasets of one's own, by name.

    Raises:
        DatasetFileError: their file is damaged, or one has a name that it cannot have.
    """
    return _own_rows(tuple(own_rows().items()))


@lru_cache(maxsize=8)
def _own_rows(rows: tuple[tuple[str, OwnRow], ...]) -> Mapping[str, Dataset]:
    return MappingProxyType({name: _own_row(name, row) for name, row in rows})


def _own_row(name: str, row: OwnRow) -> Dataset:
    path = own_datasets_file()
    if name in BENCHMARK:
        raise DatasetFileError(f"{path}: {name} is a dataset of ours; rename yours")
    if re.search(r"[/\\]", name) or unsafe(name):
        raise DatasetFileError(f"{path}: {name!r} is no name of a dataset: tables are named by it")
    families = {family.value: family for family in Family}
    if row.family not in families:
        raise DatasetFileError(
            f"{path}, {name}, family: no {row.family!r}{nearest(row.family, families)}"
        )
    return Dataset(
        name,
        families[row.family],
        images=name,
        has_multilabel=row.multilabel,
        has_caption=row.captions,
        has_negatives=row.negatives,
        frames=row.frames,
        folder=row.folder,
    )
