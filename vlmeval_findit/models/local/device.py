"""Choose the device, dtype and attention of a local model."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine has."""

    cuda_devices: int = 0
    cuda_bfloat16: bool = True
    mps: bool = False
    flash_attention: bool = False


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """What was chosen."""

    device: str
    dtype: str
    attention: str
    spread: bool = False  # layers over all CUDA devices

    def __str__(self) -> str:
        where = f"{self.device} (layers over all devices)" if self.spread else self.device
        return f"{where}, {self.dtype}, {self.attention} attention"


def this_machine() -> Machine:
    """Ask torch."""
    import torch

    cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Machine(
        cuda_devices=cuda,
        cuda_bfloat16=bool(cuda and torch.cuda.is_bf16_supported()),
        mps=torch.backends.mps.is_available(),
        flash_attention=importlib.util.find_spec("flash_attn") is not None,
    )


def choose(
    machine: Machine,
    device: str | None = None,
    dtype: str | None = None,
    attention: str | None = None,
) -> DeviceChoice:
    """Return the placement for a machine; given values override.

    float32 on CPU, where it is fastest and some processors crash on bfloat16 products; bfloat16 on
    GPUs (float16 on old CUDA devices). ``sdpa``, unless flash-attention is installed, which needs
    CUDA and a half-width type.

    Raises:
        ValueError: the machine has no such device.
    """
    if device is None:
        device = "cuda" if machine.cuda_devices else "mps" if machine.mps else "cpu"
    kind, _, number = device.partition(":")
    count = {"cuda": machine.cuda_devices, "mps": int(machine.mps)}.get(kind, math.inf)
    if count <= int(number or 0):
        raise ValueError(f"device {device}: this machine has {count} of {kind}; cpu always works")
    if dtype is None:
        half = "bfloat16" if machine.cuda_bfloat16 or kind != "cuda" else "float16"
        dtype = "float32" if kind == "cpu" else half
    if attention is None:
        flash = kind == "cuda" and machine.flash_attention and dtype != "float32"
        attention = "flash_attention_2" if flash else "sdpa"
    chosen = DeviceChoice(device, dtype, attention)
    return replace(chosen, spread=device == "cuda" and machine.cuda_devices > 1)


def first_try(placement: DeviceChoice) -> tuple[int, float]:
    """Return the first batch's limits in queries and tokens; a GPU reports if it is too large.

    On a CPU more than eight gain nothing (prefill is bound by arithmetic), and running out of
    memory may kill the process without an error.
    """
    return (8, 16_384) if placement.device == "cpu" else (32, math.inf)
