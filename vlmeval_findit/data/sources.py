"""The registry of data: one row an image folder, a published set, or a benchmark's files.

A row says where its data come from, how they are licensed, read, checked and made into tables.
Datasets that share an image folder (the six RefCOCO splits, say) share its row.  Licences are what
is published with the data; the owners' pages decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ..benchmarks.findit.findit_datasets import Dataset
from ..core.formatting import nearest
from ..core.plugin_rows import Group, PluginTable
from ..core.table_files import WrittenTable
from .annotated_samples import AnnotationError, Counts, Samples

SHIPPED = "this package's"
"""The licence of what needs no download."""


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
    read: Callable[[], Samples]  # Raises AnnotationError, naming the file and the place in it


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

    def dataset(self, part: str, name: str | None = None) -> str:
        """What a part's dataset is called, where the set is called ``name`` (None: as the row)."""
        return "_".join(filter(None, (name or self.name, part)))

    def parts_in(self, folder: Path) -> Sequence[PublishedPart]:
        """Find the parts of a published set, or raise an AnnotationError."""
        if self.read is None:
            raise AnnotationError(f"{self.name} is no published set that is read")
        return self.read(folder)

    def differences(self, part: str, samples: Samples) -> Sequence[str]:
        """Say how a part differs from what is published, in files and counts."""
        published = self.parts.get(part, Counts()) if part else self.counts
        return [*samples.missing, *samples.counts.differences(published)]


WHOLE_REF_L4 = "RefL4Full"

NOTHING = "nothing: photographs of installed packages"
"""The files of a source that needs none of the user's."""


def _by(module: str, function: str, *more: str) -> Callable[..., Any]:
    """Return a function of ``published/``, which is imported when it is called."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f".published.{module}", __package__), function)(*given, *more)

    return call


def _make_vp_bench(files: Path, out: Path, _force: bool) -> Iterator[WrittenTable]:
    """Make stage 2 of the parts that exist, and stage 1 where it exists or nothing else does."""
    from ..benchmarks.vpbench import stage1_release, stage2_release

    parts = stage2_release.parts_in(files)
    if parts:
        yield stage2_release.prepare(parts, out)
    if not parts or stage1_release.files_of(files):
        yield stage1_release.prepare(files, out)


def _make_self_retrieval(file: Path, out: Path, force: bool) -> Iterator[WrittenTable]:
    from ..benchmarks.selfretrieval import image_pairs

    yield image_pairs.prepare(file, out, force)


def _make_demo(_files: Path, _out: Path, _force: bool) -> Iterator[WrittenTable]:
    from .demo.photos import prepare_demo

    return (table.written for table in prepare_demo())


# --- images -------------------------------------------------------------------------------------

_COCO = Files("coco_train2014")
_REF_L4 = Archives("refl4", ("images.tar.gz",))
_VOC_2007 = Archives(
    "voc2007",
    ("VOCtest_06-Nov-2007.tar", "VOCtrainval_06-Nov-2007.tar"),
    "VOCdevkit/VOC2007/JPEGImages/{}",
)

_IMAGES = (
    DataSource(
        name="Pascal",
        licence="photographs from Flickr, under Flickr's terms of use; research use (VOC 2007)",
        download="up to 0.9 GB are read (two archives), 0.2 GB kept",
        origins={"": _VOC_2007},
    ),
    DataSource(
        name="COCO_train2014",
        licence="COCO: annotations CC BY 4.0, photographs under Flickr's terms of use",
        download="555 to 920 images a split, 3,012 for all six, about 0.5 GB",
        origins={"": _COCO},
    ),
    DataSource(
        name="RefL4",
        licence="Ref-L4 CC BY-NC 4.0; COCO under Flickr's terms, Objects365 CC BY 4.0",
        download="602 COCO images singly, about 100 MB; 359 from an archive of several GB, which "
        "is read to its end",
        origins={"COCO_train2014_": _COCO, "": _REF_L4},
    ),
    DataSource(
        # In the folder of FindIt's subset of it: what is there already is not fetched again.
        name=WHOLE_REF_L4,
        licence="Ref-L4 CC BY-NC 4.0; COCO under Flickr's terms, Objects365 CC BY 4.0",
        download="the authors' archive of 3.5 GB is read; 9,735 images for all",
        origins={"": _REF_L4},
    ),
    DataSource(
        name="OpenImages",
        licence="photographs CC BY 2.0 as listed by their authors, annotations CC BY 4.0",
        download="about 2,000 images, 0.6 GB",
        origins={"": Files("openimages", ("test/{}",))},
    ),
    DataSource(
        name="VisualGenome",
        licence="Visual Genome CC BY 4.0, photographs under Flickr's terms of use",
        download="about 1,800 images, 150 MB",
        origins={"": Files("visual_genome", ("VG_100K/{}", "VG_100K_2/{}"))},
    ),
    DataSource(
        name="Flickr30k",
        licence="photographs under Flickr's terms of use; non-commercial research and education",
        download="986 images, 130 MB",
        origins={"": Archives("flickr30k", ("flickr30k-images.zip",))},
        steps="Fill in the form at https://shannon.cs.illinois.edu/DenotationGraph/ and unpack the "
        "photographs (<id>.jpg) into {folder}. Where you may use a mirror, such as one of the "
        "Hugging Face hub, set sources.flickr30k to the folder that holds its "
        "flickr30k-images.zip: then only the named members are read from it.",
    ),
    DataSource(
        name="D3",
        licence="D3 CC BY-NC 4.0, photographs under Flickr's terms; non-commercial research",
        download="969 images, 0.3 GB",
        origins={"": Archives("d3", ("d3_images.zip",))},
        steps="Follow the links to the images in the README of https://github.com/shikras/d-cube "
        "and unpack them so that {folder}/<group>/<file>.jpg exist. Or put d3_images.zip onto a "
        "web server and set sources.d3 to its folder.",
    ),
    DataSource(
        name="HRInsDet",
        licence="as stated by its authors (insdet/instance-detection); research use",
        download="160 scenes of 8192x6144 and 100 object shots, 1 to 2 GB",
        origins={"": Files("hrinsdet")},
        steps="Follow the links in the README of https://github.com/insdet/instance-detection and "
        "unpack so that {folder}/Scenes/<easy|hard>/<scene>/rgb_NNN.jpg and "
        "{folder}/Objects/<object>/images/NNN.jpg exist.",
    ),
    DataSource(
        name="RoboTools",
        licence="as stated by its authors (Jaraxxus-Me/VoxDet); research use",
        download="1,330 frames of 1920x1080, about 3 GB",
        origins={"": Files("robotools")},
        steps="Follow the links in the README of https://github.com/Jaraxxus-Me/VoxDet and unpack "
        "so that {folder}/test/<scene>/rgb/NNNNN.png and "
        "{folder}/test_video/<object>/rgb/NNNNNN.png exist. From videos named <scene>.mp4 and "
        "<object>.mp4 the named frames are cut: data get RoboTools --videos DIR.",
        frames=r"test(?:_video)?/([^/]+)/rgb/(\d+)\.png",
    ),
    DataSource(
        name="iGround",
        licence="frames of HowTo100M videos, under YouTube's terms; research use",
        download="nothing; 8,000 frames are cut from the videos that you bring",
        steps="Get the videos that https://github.com/EvanKazakos/iground names (from HowTo100M, "
        "<video>.mp4) into one folder; then the named frames are cut: "
        "data get iGround --videos DIR. "
        "Or put the frames themselves into {folder} as <video>_f<number>.jpg, the number counted "
        "from 0 in six digits.",
        frames=r"(.+)_f(\d+)\.jpg",
    ),
    DataSource(
        name="VPBench",
        licence="terms of jinpeng0528/VP-Bench",
        holds="jinpeng0528/VP-Bench of Hugging Face: a TSV or Parquet files, of both stages",
        make=_make_vp_bench,
    ),
    DataSource(
        name="SelfRetrieval",
        licence="its authors' terms; COCO 2014: photographs under Flickr's terms",
        holds="the dataset.json of D3 self-retrieval",
        make=_make_self_retrieval,
    ),
    DataSource(
        name="Demo",
        licence="that of each photograph: vlmeval_findit/data/demo/photos.yaml",
        holds=NOTHING,
        make=_make_demo,
    ),
    *(
        DataSource(name=name, licence=SHIPPED)
        for name in (
            *("Scenes", "Scenes_mini", "Scenes_train", "VPBench_Scenes", "VPBench_Scenes_mini"),
            *("SelfRetrieval_Scenes", "SelfRetrieval_Scenes_mini"),
        )
    ),
)

# --- published sets -------------------------------------------------------------------------------


ODINW_13 = {
    # The folder in a subset's in which its splits lie; classes, and images of test and of valid.
    # PascalVOC has no test split of its own.
    "AerialMaritimeDrone": ("large", 5, 7, 15),
    "Aquarium": ("Aquarium Combined.v2-raw-1024.coco", 7, 63, 127),
    "CottontailRabbits": ("", 1, 10, 19),
    "EgoHands": ("generic", 1, 480, 480),
    "NorthAmericaMushrooms": ("North American Mushrooms.v1-416x416.coco", 2, 5, 5),
    "Packages": ("Raw", 1, 3, 4),
    "PascalVOC": ("", 20, 3422, 3422),
    "pistols": ("export", 1, 297, 297),
    "pothole": ("", 1, 67, 133),
    "Raccoon": ("Raccoon.v2-raw.coco", 1, 17, 29),
    "ShellfishOpenImages": ("raw", 3, 58, 116),
    "thermalDogsAndPeople": ("", 2, 20, 41),
    "VehiclesOpenImages": ("416x416", 5, 126, 250),
}


def _odinw(split: str) -> DataSource:
    """ODinW-13 in one of its splits, ``test`` or ``valid``."""
    counts = {
        name: Counts(images={"test": test, "valid": valid}[split], classes=classes)
        for name, (_, classes, test, valid) in ODINW_13.items()
    }
    return DataSource(
        name="ODinW13" if split == "test" else "ODinW13_valid",
        title=f"Object Detection in the Wild, the 13 sets of GLIP, split {split}",
        licence="that of each set, as stated at public.roboflow.com (not looked up here)",
        address="https://huggingface.co/GLIPModel/GLIP/tree/main/odinw_35",
        holds="a folder a subset (Aquarium, EgoHands …), as the zip files unpack",
        read=_by("coco_sets", "find_odinw", split),
        parts=counts,
        datasets=len(counts),
    )


_SETS = (
    DataSource(
        name="COCO_val2017",
        title="COCO val2017, all of it",
        licence="annotations CC BY 4.0, photographs under Flickr's terms of use",
        address="https://cocodataset.org",
        holds="annotations/instances_val2017.json and val2017/*.jpg",
        read=_by("coco_sets", "find_val2017"),
        counts=Counts(images=5000, boxes=36_335, classes=80, ignored=446),
    ),
    _odinw("test"),
    _odinw("valid"),
    DataSource(
        name="RF100-VL",
        title="Roboflow 100-VL, test splits",
        licence="Apache 2.0, as its README says",
        address="https://universe.roboflow.com/rf100-vl (pip install rf100vl)",
        holds="a folder a subset with test/_annotations.coco.json and its images",
        read=_by("coco_sets", "find_rf100vl"),
        datasets=100,
    ),
    DataSource(
        name="GroundingME",
        title="GroundingME: hard expressions, and expressions of what is not there",
        licence="research only, under the terms of SA-1B and of HR-Bench",
        address="https://huggingface.co/datasets/lirang04/GroundingME",
        holds="data/test-*.parquet",
        read=_by("expression_sets", "find_groundingme"),
        counts=Counts(queries=1005),
    ),
    DataSource(
        name="RefCOCO-M",
        title="RefCOCO-M: RefCOCO val with new masks, without harmful expressions",
        licence="MIT, as its card says; photographs of COCO under Flickr's terms of use",
        address="https://huggingface.co/datasets/moondream/refcoco-m",
        holds="data/validation-*.parquet",
        read=_by("expression_sets", "find_refcoco_m"),
        counts=Counts(images=1190, boxes=2080, queries=5598),
    ),
    DataSource(
        name="ScreenSpot-Pro",
        title="ScreenSpot-Pro: where to click in professional software; ask for point",
        licence="MIT, as copies of its card say",
        address="https://huggingface.co/datasets/likaixin/ScreenSpot-Pro",
        holds="annotations/*.json and images/",
        read=_by("expression_sets", "find_screenspot_pro"),
        counts=Counts(queries=1581),
    ),
    DataSource(
        name="RefSpatial",
        title="RefSpatial-Bench: objects and free places by where they are; ask for point",
        licence="Apache 2.0, as its card says",
        address="https://huggingface.co/datasets/BAAI/RefSpatial-Bench",
        holds="Location, Placement and Unseen, each with question.json, image/ and mask/",
        read=_by("expression_sets", "find_refspatial"),
        parts={
            name: Counts(queries=count)
            for name, count in (("Location", 100), ("Placement", 100), ("Unseen", 77))
        },
        datasets=3,
    ),
)

SOURCES: PluginTable[DataSource] = PluginTable(
    Group.SOURCES,
    {row.name: row for row in (*_IMAGES, *_SETS)},
    DataSource,
    lambda row: None if row.read else "nothing reads it: give it a function `read`",
)
"""The table, by the name of the image folder or of the set."""


def published_sets() -> Mapping[str, DataSource]:
    """Return the published sets, plug-ins' too."""
    return {name: row for name, row in SOURCES.items() if row.read is not None}


def made_sources() -> Mapping[str, DataSource]:
    """Return the sources whose tables are made of the user's files."""
    return {name: row for name, row in SOURCES.items() if row.make is not None}


def source_for(dataset: Dataset) -> DataSource:
    """Return where the images of a dataset come from, or raise a ValueError."""
    if dataset.images not in SOURCES.builtin:
        near = nearest(dataset.images, SOURCES.builtin)
        why = f"nothing says where the images {dataset.images!r} come from{near}"
        raise ValueError(f"{dataset.name}: {why}")
    return SOURCES.builtin[dataset.images]
