"""Muon for the matrices, AdamW for the rest.

torch has a Muon too, but it orthogonalises in bfloat16, which some processors cannot multiply;
this implementation orthogonalises in any type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

_A, _B, _C = 3.4445, -4.775, 2.0315
"""The quintic of Newton and Schulz as Muon's authors tuned it (Jordan et al. 2024)."""


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """Orthogonalise the updates of momentum: every direction of a matrix learns as fast.

    Args:
        params: matrices (more dimensions are flattened into the second).
        lr: the root mean square of an update's entries is about 0.2 of it, as AdamW's is.
        momentum: Nesterov's.
        weight_decay: decoupled.
        precision: in which updates are orthogonalised.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self._precision = precision
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                average = state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(average, group["momentum"]).flatten(1)
                update = orthogonal(ahead, self._precision).view_as(weight)
                size = 0.2 * max(ahead.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * size)


def orthogonal(matrix: Any, precision: torch.dtype = torch.float32, steps: int = 5) -> Any:
    """Approximate the nearest matrix whose singular values are all 1."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = (wide / (wide.norm() + 1e-7)).to(precision)
    for _ in range(steps):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    x = x.to(matrix.dtype)
    return x if matrix.shape[0] <= matrix.shape[1] else x.T


def rate_at(step: int, steps: int, rate: float, warmup: int) -> float:
    """Return a step's learning rate: up to ``rate`` over ``warmup`` steps, down half a cosine.

    >>> rate_at(0, 100, 1.0, 10), rate_at(50, 100, 1.0, 10)
    (0.1, 0.5)
    """
    return rate * min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / steps))


def step_all(optimizers: Sequence[tuple[Any, float]], rate: float) -> None:
    """Step every optimizer at its multiple of the learning rate, and clear the gradients."""
    for optimizer, factor in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
