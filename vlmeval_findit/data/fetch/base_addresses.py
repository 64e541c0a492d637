"""Where images and annotations are fetched from, and what the configuration replaces."""

from __future__ import annotations

from collections.abc import Mapping

from ...core import split_address, suggestion
from ...storage import config_file, read_config

# The commit of the release's repository whose subsets are fetched
RELEASE_COMMIT = "4d99bfde3553886af36c4343a1bc45eea57e435e"

# Base addresses, each with a slash at its end; ``sources`` in configs/datasets.yaml replaces them.
#
# None: the owners ask for a form or publish no plain file, so no address is shipped. Once a user
# sets one (of a mirror that they may use), the dataset is fetched like the others.
BASE_ADDRESSES: Mapping[str, str | None] = {
    "findit": f"https://raw.githubusercontent.com/esh04/FindIt/{RELEASE_COMMIT}/subsets/",
    "voc2007": "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
    "coco_train2014": "http://images.cocodataset.org/train2014/",
    "refl4": "https://huggingface.co/datasets/JierunChen/Ref-L4/resolve/main/",
    "openimages": "https://open-images-dataset.s3.amazonaws.com/",
    "visual_genome": "https://cs.stanford.edu/people/rak248/",
    **dict.fromkeys(("flickr30k", "d3", "hrinsdet", "robotools")),
}


class SourceError(ValueError):
    """An address in the configuration that cannot be used; the message names file and key."""


def base_addresses() -> Mapping[str, str | None]:
    """Return the base addresses, with those that the configuration replaces.

    Raises:
        SourceError: the configuration names an unknown base, or an address that cannot exist.
        FolderError: the configuration cannot be read.
    """
    config = config_file()
    if config is None:
        return BASE_ADDRESSES
    replaced = {key: value for key, value in read_config(config).sources.items() if value}
    for key, value in replaced.items():
        if key not in BASE_ADDRESSES:
            why = f"unknown source{suggestion(key, BASE_ADDRESSES)}"
            raise SourceError(f"{config}, sources.{key}: {why}")
        try:
            split_address(value)
        except ValueError as error:
            raise SourceError(f"{config}, sources.{key}: {value!r} {error}") from None
    return {**BASE_ADDRESSES, **{key: f"{value.rstrip('/')}/" for key, value in replaced.items()}}
