"""What the files of a checkpoint say of its architecture, read without torch or a network."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..core import TextError, object_or_empty, read_text
from .adapter import HUB_IDENTIFIER, adapter_of
from .checkpoint_settings import read_settings

_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True, slots=True)
class Architecture:
    """The architecture of a checkpoint."""

    source: str  # the file that says it
    model_type: str
    multiple: int | None = None  # the processor rounds sides to it, in pixels; None: not stated

    def __str__(self) -> str:
        return f"{self.source} says model_type {self.model_type!r}"


def architecture_of(checkpoint: str) -> Architecture | None:
    """Return what a checkpoint's ``config.json`` says; None if it is not here, or says nothing.

    Args:
        checkpoint: a folder, an adapter's folder (its base decides), or an identifier whose files
            are in the hub's cache.
    """
    adapter = adapter_of(checkpoint)
    folder = _folder(adapter.base if adapter is not None else checkpoint)
    if folder is None:
        return None
    config = _object(folder / "config.json")
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        return None
    processors = [folder]
    if adapter is not None:
        of_adapter = _folder(adapter.processor)
        if of_adapter is not None:
            processors.insert(0, of_adapter)
    multiple = next(filter(None, map(_multiple, processors)), None) or _product(
        object_or_empty(config.get("vision_config")), "patch_size", "spatial_merge_size"
    )
    return Architecture(str(folder / "config.json"), model_type, multiple)


def lacks_chat_template(checkpoint: str) -> bool:
    """Return whether a checkpoint that is here has no chat template, by which prompts are made."""
    folders = _folders(checkpoint)
    return bool(folders) and not any(map(_has_chat_template, folders))


def _has_chat_template(folder: Path) -> bool:
    files = (folder / "chat_template.jinja", folder / "chat_template.json")
    if any(path.is_file() for path in files) or any(folder.glob("additional_chat_templates/*")):
        return True
    configs = ("tokenizer_config.json", "processor_config.json")
    return any("chat_template" in _object(folder / name) for name in configs)


def _folder(checkpoint: str) -> Path | None:
    """Return the folder of a checkpoint, or of its newest snapshot in the hub's cache."""
    if not checkpoint:
        return None
    if Path(checkpoint).is_dir():
        return Path(checkpoint)
    if not HUB_IDENTIFIER.fullmatch(checkpoint):
        return None
    try:
        from huggingface_hub import constants
        from huggingface_hub.file_download import repo_folder_name
    except ImportError:
        return None
    cache = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=checkpoint, repo_type="model"))
    configs = sorted(cache.glob("snapshots/*/config.json"), key=lambda path: path.stat().st_mtime)
    return configs[-1].parent if configs else None


def _multiple(folder: Path) -> int | None:
    """Return to which multiple an image processor rounds sides: its patches, merged in blocks."""
    for name in _PROCESSORS:
        values = _object(folder / name)
        processor = object_or_empty(values.get("image_processor")) or values
        multiple = _product(processor, "patch_size", "merge_size")
        if multiple is not None:
            return multiple
    return None


def processor_areas(checkpoint: str) -> tuple[int | None, int | None]:
    """Return the least and the greatest area of an image, as a processor's files count it.

    None: they do not say it, or are not here.
    """
    for folder in _folders(checkpoint):
        for name in _PROCESSORS:
            values = _object(folder / name)
            processor = object_or_empty(values.get("image_processor")) or values
            size = object_or_empty(processor.get("size"))
            least = size.get("shortest_edge", processor.get("min_pixels"))
            greatest = size.get("longest_edge", processor.get("max_pixels"))
            areas = [area if type(area) is int else None for area in (least, greatest)]
            if areas != [None, None]:
                return areas[0], areas[1]
    return None, None


def chat_template_of(checkpoint: str) -> str | None:
    """Return a checkpoint's only chat template; None if it has several, or is not here."""
    for folder in _folders(checkpoint):
        file = folder / "chat_template.jinja"
        if any(folder.glob("additional_chat_templates/*")):
            return None
        if file.is_file():
            with suppress(OSError, TextError):
                return read_text(file)
        configs = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
        for name in configs:
            template = _object(folder / name).get("chat_template")
            if template is not None:
                return template if isinstance(template, str) else None
    return None


def _folders(checkpoint: str) -> list[Path]:
    """Return where a processor's files are: an adapter's come before its base's."""
    adapter = adapter_of(checkpoint)
    places = [checkpoint] if adapter is None else [adapter.processor, adapter.base]
    return [folder for folder in map(_folder, places) if folder is not None]


def _product(values: Mapping[str, Any], *names: str) -> int | None:
    patch, merge = (values.get(name) for name in names)
    return patch * merge if type(patch) is int and type(merge) is int else None


def _object(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):  # Its own fault is told elsewhere
        return read_settings(path)
    return {}


@cache
def loadable_types() -> frozenset[str]:
    """Return the ``model_type`` that transformers' AutoModelForImageTextToText loads.

    They are read from its source, since importing it imports torch; empty if it is not installed.
    """
    spec = importlib.util.find_spec("transformers")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        source = Path(place, "models", "auto", "modeling_auto.py")
        with suppress(OSError):
            text = source.read_text(encoding="utf-8")
            listed = re.search(rf"^{_MAPPING} = .*?^\)", text, re.DOTALL | re.MULTILINE)
            if listed:
                return frozenset(re.findall(r'\(\s*"([^"]+)",', listed[0]))
    return frozenset()


_MAPPING = "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES"
