"""Invented stage 1 files of VP-Bench, in the layout and the types of the authors'."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image


def picture(number: int, format: str = "JPEG") -> bytes:
    """Return a different picture for every number."""
    pixels = np.random.default_rng(number).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format)
    return out.getvalue()


def row(index: int, **changed: Any) -> dict[str, Any]:
    """Return a question: which of four, two of three times with B as its answer."""
    return {
        "index": index,
        "context": "The mark is a red box.",
        "question": "What is inside the red box?",
        "A": "a cat",
        "B": "a dog",
        "C": "a horse",
        "D": "a cow",
        "answer": "ABB"[index % 3],
        "image": base64.b64encode(picture(index // 2)).decode(),
        "vp_amount": "1",
        "vp_shape": "['box']",
        "vp_properties": "['red']",
        **changed,
    }


ROWS = (
    row(1),
    row(2, vp_shape="['mask']"),
    row(3, question="How many ovals are there?", A="1", B="2", C="3", D="4", vp_amount="2.0"),
    row(4, question="Where is the blue arrow?", C="", D=float("nan"), vp_shape="['circle', 'box']"),
    row(5, question="Is there a green tag?", A="Yes", B="No", C="", D="", vp_shape="number_label"),
    row(6, answer="D", D="There is no red box.", vp_properties=""),
    row(7, question="Which is it?", vp_amount=float("nan"), vp_shape="", context=""),
    row(8, image=""),
    row(9, image=base64.b64encode(picture(9, "PNG")).decode()),
)
"""Nine rows, one without a picture; 2 and 3 have the same picture, 4 and 5, and 6 and 7."""


def write_tsv(path: Path, rows: Iterable[Mapping[str, Any]] = ROWS) -> Path:
    """As data frames write it: a NaN is an empty cell."""
    pd.DataFrame(list(rows)).to_csv(path, sep="\t", index=False)
    return path


def write_parquet(path: Path, rows: Iterable[Mapping[str, Any]] = ROWS) -> Path:
    """As data sets are published: texts with holes in them."""
    pd.DataFrame(list(rows)).to_parquet(path)
    return path
