"""Adapters: a folder that ``peft`` wrote is a checkpoint over the base that its settings name.

Everything here is read from files, without torch or peft.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core import install_command, no_effect, parse_json, read_text
from .safetensors_header import read_header

CONFIG = "adapter_config.json"
BASE = "base_model_name_or_path"
WEIGHTS = "adapter_model.safetensors"
OF_ADAPTER = (WEIGHTS, "adapter_model.bin")  # The first that is there is loaded

# Values of ``peft_type`` that change weights, so that they can be merged into them.
KINDS = ("LORA", "ADALORA", "LOHA", "LOKR", "IA3", "OFT")

# Values that vLLM takes for ``--max-lora-rank``.
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)

HUB_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")  # OWNER/NAME of the Hugging Face hub


@dataclass(frozen=True, slots=True)
class Adapter:
    """A folder with an adapter; it may still be refused (:func:`refuse_adapter`)."""

    folder: Path
    values: Mapping[str, Any] = field(repr=False)  # of adapter_config.json

    @property
    def base(self) -> str:
        """Folder or hub identifier of the base model; empty if the settings name none."""
        base = self.values.get(BASE)
        return base if isinstance(base, str) else ""

    @property
    def base_folder(self) -> Path | None:
        """The base model's folder; None for a model of the hub."""
        return Path(self.base) if self.base and Path(self.base).is_dir() else None

    @property
    def processor(self) -> str:
        """Where the processor is loaded from: the adapter's folder, if all of it is there."""
        saved = {path.name for path in self.folder.iterdir()}
        is_whole = saved & {"processor_config.json", "preprocessor_config.json"}
        return str(self.folder) if is_whole and "tokenizer_config.json" in saved else self.base

    def base_revision(self, asked: str | None) -> str | None:
        """Return the hub revision of the base: what the user asked for, else the settings'."""
        revision = asked or self.values.get("revision")
        return revision if isinstance(revision, str) else None

    def vllm_flags(self, name: str) -> list[str]:
        """Return flags by which ``vllm serve`` of the base has it under a name, or ValueError."""
        config = self.folder / CONFIG
        values = self.values
        rank = max([values.get("r") or 0, *(values.get("rank_pattern") or {}).values()])
        unsupported = {
            "peft_type": values.get("peft_type") != "LORA",
            "use_dora": values.get("use_dora"),
            "modules_to_save": values.get("modules_to_save"),
            "bias": values.get("bias", "none") != "none",
            "r": rank > VLLM_RANKS[-1],
        }
        for key in filter(unsupported.get, unsupported):
            raise ValueError(
                f"{config}: vLLM does not load adapters with {key} {values.get(key)!r}: leave "
                "--serve out, or serve a merged checkpoint"
            )
        modules = f"{name}={self.folder.resolve()}"
        limit = next(most for most in VLLM_RANKS if most >= rank)
        flags = ["--enable-lora", "--lora-modules", modules, "--max-lora-rank", str(limit)]
        template = Path(self.processor, "chat_template.jinja")
        if self.processor != self.base and template.is_file():
            flags += ["--chat-template", str(template.resolve())]
        # The names of its tensors tell whether it changes more than the language model.
        path = self.folder / WEIGHTS
        try:
            names = read_header(path).values
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: its tensors cannot be listed for vLLM: {error}") from None
        if any(re.search("vis(ion|ual)|merger|projector|connector", name) for name in names):
            flags.append("--enable-tower-connector-lora")
        return flags


def adapter_of(checkpoint: str, merges: bool | None = None) -> Adapter | None:
    """Return the adapter in a folder, or None; ValueError if its settings cannot be read.

    ``merges``: whether it is merged into its base, as a user states it; a ValueError, too, if it is
    stated of a checkpoint that is no adapter.
    """
    path = Path(checkpoint, CONFIG)
    if not path.is_file():
        if merges is not None:
            why = f"{checkpoint} is no adapter (no {path})"
            raise ValueError(
                no_effect("merge_adapter", why, "Leave it out, or name the folder of an adapter")
            )
        return None
    try:
        values = parse_json(read_text(path), only_numbers=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not the settings of an adapter: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: not the settings of an adapter: it should be a JSON object")
    return Adapter(path.parent, values)


def refuse_adapter(adapter: Adapter) -> None:
    """Raise ValueError for an adapter without a base or weights, or of a kind that has none."""
    config = adapter.folder / CONFIG
    base = adapter.base
    kind = adapter.values.get("peft_type")
    if kind not in KINDS:
        raise ValueError(
            f"{config}: peft_type {kind!r}: FindIt runs adapters that change weights "
            f"({', '.join(KINDS)}), not prompt tuning"
        )
    if not base:
        raise ValueError(
            f"{config}: no {BASE}: write the folder or the hub name of the base model there"
        )
    where = f"{config}: {BASE} {base}"
    if adapter.base_folder is None:
        if not HUB_IDENTIFIER.fullmatch(base):
            raise ValueError(
                f"{where}: the folder does not exist. Write there where the base model is on this "
                "machine"
            )
    elif not (adapter.base_folder / "config.json").is_file():
        raise ValueError(f"{where}: no config.json in this folder, so it is not a checkpoint")
    if not any((adapter.folder / name).is_file() for name in OF_ADAPTER):
        raise ValueError(f"{adapter.folder}: no weights: neither {' nor '.join(OF_ADAPTER)}")


def refuse_without_peft(checkpoint: str) -> None:
    """Raise ValueError for an adapter that this process cannot load."""
    if adapter_of(checkpoint) is not None and find_spec("peft") is None:
        raise ValueError(
            f"{checkpoint} is an adapter, and peft is not installed: {install_command('local')}"
        )
