"""What a user may say about a run of a model on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a user may say about a run; None leaves it to the row, the checkpoint or the machine.

    ``min_pixels``, ``max_pixels`` and ``patches`` are image bounds (:class:`..families.Bounds`),
    ``template`` switches of the chat template, ``batch_size`` the most queries at once.
    ``tensor_parallel_size`` and ``vllm`` (further arguments of its engine) are vLLM's.  ``space``
    is the coordinate space of a checkpoint that was trained to answer in another than its row's.
    """

    revision: str | None = None
    space: str | Mapping[str, Any] | None = None
    device: str | None = None
    dtype: str | None = None
    attention: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    patches: int | None = None
    max_new_tokens: int | None = None
    batch_size: int | None = None
    template: dict[str, Any] = field(default_factory=dict)
    tensor_parallel_size: int | None = None
    vllm: dict[str, Any] = field(default_factory=dict)
