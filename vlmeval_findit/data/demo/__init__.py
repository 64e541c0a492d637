"""An offline demonstration of the benchmark over photographs that other packages ship.

``annotations.yaml`` holds the hand-made boxes, :mod:`.build` turns them into
image files and dataset rows in the column layout of the benchmark's release.
"""

from __future__ import annotations

from .build import build_demo

__all__ = ["build_demo"]
