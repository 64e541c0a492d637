"""Where data are published: base addresses, which a user can replace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

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


class SourceError(ValueError):
    """A source that is not configured as it should be; the message names file and key."""


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
