"""The registry of image folders: licence, origin, and addresses that a user can replace.

Datasets that share a folder (the six RefCOCO splits, say) share its row.  A row says what the
images are licensed under, how large the download is, and how a file name maps to a source: a file
of its own, a member of an archive, a frame of a video, or steps that a person must take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...benchmarks.findit.datasets import Dataset
from ...core.places import config_file, read_config
from ...core.spelling import nearest

RELEASE_COMMIT = "4d99bfde3553886af36c4343a1bc45eea57e435e"
"""The commit of the release's repository whose subsets are fetched."""

BASES: Mapping[str, str | None] = MappingProxyType(
    {
        "findit": f"https://raw.githubusercontent.com/esh04/FindIt/{RELEASE_COMMIT}/subsets/",
        "voc2007": "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
        "coco_train2014": "http://images.cocodataset.org/train2014/",
        "refl4": "https://huggingface.co/datasets/JierunChen/Ref-L4/resolve/main/",
        "openimages": "https://open-images-dataset.s3.amazonaws.com/",
        "visual_genome": "https://cs.stanford.edu/people/rak248/",
        "flickr30k": None,
        "d3": None,
        "hrinsdet": None,
        "robotools": None,
    }
)
"""Base addresses, each with a slash at its end; ``sources`` in configs/datasets.yaml replaces them.

None: the owners ask for a form or publish no plain file, so there is no address to ship.  Once a
user sets one (of a mirror that they may use), the dataset is fetched like the others.
"""


OURS = "this package's"


class SourceError(ValueError):
    """A source that is not configured as it should be; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Files:
    """Every image is a file of its own: ``paths`` below the base, {} its name, tried in order."""

    base: str
    paths: tuple[str, ...] = ("{}",)


@dataclass(frozen=True, slots=True)
class Archives:
    """Images are members of archives, which are read in order until all are found.

    ``member`` is the end of a member's name, {} the image's: archives differ in the folders above.
    """

    base: str
    files: tuple[str, ...]
    member: str = "{}"


Origin = Files | Archives


@dataclass(frozen=True, slots=True)
class FrameName:
    """A frame of a video: the video's name without suffix, and the frame, counted from 0."""

    video: str
    frame: int


@dataclass(frozen=True, slots=True)
class Source:
    """One row of the table."""

    images: str  # key of the image folder
    licence: str
    download: str = ""  # how much comes over the network, in words
    typical: int = 0  # usual bytes of an image, for the time left before sizes are known
    origins: tuple[tuple[str, Origin], ...] = ()  # by the first pattern that a name begins with
    steps: str = ""  # what a person does where no origin has an address
    frames: str = ""  # pattern of a frame's name: the video, the number
    files: str = ""  # what the user brings (data get NAME --from PATH), where nothing is fetched

    def frame(self, name: str) -> FrameName | None:
        """Read a name as a frame of a video."""
        found = re.fullmatch(self.frames, name) if self.frames else None
        return FrameName(found[1], int(found[2])) if found else None

    def over_plain_http(
        self, names: Iterable[str], bases: Mapping[str, str | None]
    ) -> Sequence[str]:
        """The addresses for which nothing proves that an image is its owner's: of none do we have a
        checksum.
        """
        used = {origin.base for origin in map(self.origin, names) if origin is not None}
        return sorted(base for base in map(bases.get, used) if base and base.startswith("http:"))

    def origin(self, name: str) -> Origin | None:
        """Where an image comes from."""
        return next((origin for begin, origin in self.origins if re.match(begin, name)), None)


_COCO = Files("coco_train2014")

_ROWS = (
    Source(
        images="Pascal",
        licence="photographs from Flickr, under Flickr's terms of use; research use (VOC 2007)",
        download="up to 0.9 GB are read (two archives), 0.2 GB kept",
        typical=90_000,
        origins=(
            (
                "",
                Archives(
                    "voc2007",
                    ("VOCtest_06-Nov-2007.tar", "VOCtrainval_06-Nov-2007.tar"),
                    "VOCdevkit/VOC2007/JPEGImages/{}",
                ),
            ),
        ),
    ),
    Source(
        images="COCO_train2014",
        licence="COCO: annotations CC BY 4.0, photographs under Flickr's terms of use",
        download="555 to 920 images a split, 3,012 for all six, about 0.5 GB",
        typical=160_000,
        origins=(("", _COCO),),
    ),
    Source(
        images="RefL4",
        licence="Ref-L4 CC BY-NC 4.0; COCO under Flickr's terms, Objects365 CC BY 4.0",
        download="602 COCO images singly, about 100 MB; 359 from an archive of several GB, which "
        "is read to its end",
        typical=160_000,
        origins=(
            ("COCO_train2014_", _COCO),
            ("", Archives("refl4", ("images.tar.gz",))),
        ),
    ),
    Source(
        images="OpenImages",
        licence="photographs CC BY 2.0 as listed by their authors, annotations CC BY 4.0",
        download="about 2,000 images, 0.6 GB",
        typical=300_000,
        origins=(("", Files("openimages", ("test/{}",))),),
    ),
    Source(
        images="VisualGenome",
        licence="Visual Genome CC BY 4.0, photographs under Flickr's terms of use",
        download="about 1,800 images, 150 MB",
        typical=85_000,
        origins=(("", Files("visual_genome", ("VG_100K/{}", "VG_100K_2/{}"))),),
    ),
    Source(
        images="Flickr30k",
        licence="photographs under Flickr's terms of use; non-commercial research and education",
        download="986 images, 130 MB",
        typical=135_000,
        origins=(("", Archives("flickr30k", ("flickr30k-images.zip",))),),
        steps="Fill in the form at https://shannon.cs.illinois.edu/DenotationGraph/ and unpack the "
        "photographs (<id>.jpg) into {folder}. Where you may use a mirror, such as one of the "
        "Hugging Face hub, set sources.flickr30k to the folder that holds its "
        "flickr30k-images.zip: then only the named members are read from it.",
    ),
    Source(
        images="D3",
        licence="D3 CC BY-NC 4.0, photographs under Flickr's terms; non-commercial research",
        download="969 images, 0.3 GB",
        typical=300_000,
        origins=(("", Archives("d3", ("d3_images.zip",))),),
        steps="Follow the links to the images in the README of https://github.com/shikras/d-cube "
        "and unpack them so that {folder}/<group>/<file>.jpg exist. Or put d3_images.zip onto a "
        "web server and set sources.d3 to its folder.",
    ),
    Source(
        images="HRInsDet",
        licence="as stated by its authors (insdet/instance-detection); research use",
        download="160 scenes of 8192x6144 and 100 object shots, 1 to 2 GB",
        typical=8_000_000,
        origins=(("", Files("hrinsdet")),),
        steps="Follow the links in the README of https://github.com/insdet/instance-detection and "
        "unpack so that {folder}/Scenes/<easy|hard>/<scene>/rgb_NNN.jpg and "
        "{folder}/Objects/<object>/images/NNN.jpg exist.",
    ),
    Source(
        images="RoboTools",
        licence="as stated by its authors (Jaraxxus-Me/VoxDet); research use",
        download="1,330 frames of 1920x1080, about 3 GB",
        typical=2_000_000,
        origins=(("", Files("robotools")),),
        steps="Follow the links in the README of https://github.com/Jaraxxus-Me/VoxDet and unpack "
        "so that {folder}/test/<scene>/rgb/NNNNN.png and "
        "{folder}/test_video/<object>/rgb/NNNNNN.png exist. From videos named <scene>.mp4 and "
        "<object>.mp4 the named frames are cut: data get RoboTools --videos DIR.",
        frames=r"test(?:_video)?/([^/]+)/rgb/(\d+)\.png",
    ),
    Source(
        images="iGround",
        licence="frames of HowTo100M videos, under YouTube's terms; research use",
        download="nothing; 8,000 frames are cut from the videos that you bring",
        typical=30_000,
        steps="Get the videos that https://github.com/EvanKazakos/iground names (from HowTo100M, "
        "<video>.mp4) into one folder; then the named frames are cut: "
        "data get iGround --videos DIR. "
        "Or put the frames themselves into {folder} as <video>_f<number>.jpg, the number counted "
        "from 0 in six digits.",
        frames=r"(.+)_f(\d+)\.jpg",
    ),
    Source(
        images="VPBench",
        licence="terms of jinpeng0528/VP-Bench",
        files="jinpeng0528/VP-Bench of Hugging Face: a TSV or Parquet files, of both stages",
    ),
    Source(
        images="SelfRetrieval",
        licence="its authors' terms; COCO 2014: photographs under Flickr's terms",
        files="the dataset.json of D3 self-retrieval",
    ),
    Source(images="Demo", licence=OURS, files="nothing: the demonstration's tables"),
    *(
        Source(images=name, licence=OURS)
        for name in (
            *("Scenes", "Scenes_mini", "VPBench_Demo", "VPBench_Scenes", "VPBench_Scenes_mini"),
            *("SelfRetrieval_Scenes", "SelfRetrieval_Scenes_mini"),
        )
    ),
)

WHOLE_REF_L4 = Source(
    images="RefL4",
    licence="Ref-L4 CC BY-NC 4.0; COCO under Flickr's terms, Objects365 CC BY 4.0",
    download="the authors' archive of 3.5 GB is read; 9,735 images for all",
    typical=360_000,
    origins=(("", Archives("refl4", ("images.tar.gz",))),),
)
"""The images of all of Ref-L4, in the folder of FindIt's subset of it: what is there already is not
fetched again.
"""

SOURCES: Mapping[str, Source] = MappingProxyType({row.images: row for row in _ROWS})
"""The table, by the key of the image folder."""


def source_for(dataset: Dataset) -> Source:
    """Return where the images of a dataset come from, or raise a SourceError."""
    source = SOURCES.get(dataset.images)
    if source is None:
        raise SourceError(
            f"{dataset.name}: nothing says where the images {dataset.images!r} come from"
            f"{nearest(dataset.images, SOURCES)}"
        )
    return source


def bases() -> Mapping[str, str | None]:
    """The base addresses in force: those above, where ``sources`` in the configuration is silent.

    Raises:
        SourceError: the configuration names a base that there is not, or no http(s) address.
        ImageError: the configuration cannot be read.
    """
    config = config_file()
    if config is None:
        return BASES
    given = {key: value for key, value in read_config(config).sources.items() if value}
    for key, value in given.items():
        if key not in BASES:
            raise SourceError(f"{config}, sources.{key}: no such source{nearest(str(key), BASES)}")
        if not re.match(r"https?://[^/]", str(value)):
            raise SourceError(f"{config}, sources.{key}: {value!r} is not an http(s) address")
    return {**BASES, **{key: f"{str(value).rstrip('/')}/" for key, value in given.items()}}
