"""Which device, number type and attention a local model gets.

Choosing is a pure function of what the machine has, so that every choice can be tested anywhere.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is: number of CUDA devices, whether they compute bfloat16, and so on."""

    cuda_devices: int = 0
    cuda_bfloat16: bool = True
    mps: bool = False
    flash_attention: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """What was chosen.  ``spread``: the model's layers are spread over all CUDA devices."""

    device: str
    dtype: str
    attention: str
    spread: bool = False

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
) -> Placement:
    """The placement for a machine; what is given goes before what would be chosen.

    float32 on CPU, where it is the fastest and some processors die of bfloat16 products; bfloat16
    on GPUs (float16 on CUDA devices that are too old for it).  ``sdpa`` unless flash-attention is
    installed, which needs CUDA and a half-width type.
    """
    if device is None:
        device = "cuda" if machine.cuda_devices else "mps" if machine.mps else "cpu"
    kind = device.partition(":")[0]
    if dtype is None:
        half = "bfloat16" if machine.cuda_bfloat16 or kind != "cuda" else "float16"
        dtype = "float32" if kind == "cpu" else half
    if attention is None:
        flash = kind == "cuda" and machine.flash_attention and dtype != "float32"
        attention = "flash_attention_2" if flash else "sdpa"
    chosen = Placement(device, dtype, attention)
    return replace(chosen, spread=device == "cuda" and machine.cuda_devices > 1)


def first_try(placement: Placement) -> tuple[int, float]:
    """The batch to try first, in queries and in tokens: a GPU says when it is too large.

    Beyond eight a CPU gains nothing (prefill is bound by arithmetic from the first query on), and
    when its memory runs out the process may be killed without an error: so it has a bound.
    """
    return (8, 16_384) if placement.device == "cpu" else (32, math.inf)
