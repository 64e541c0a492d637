"""Deployments that the probe is tried on: they answer about its scenes in a known convention."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from functools import cache

import numpy as np
from chat_server import Answer, Asked, Script, completion
from PIL import Image
from simulated_deployments import Fault

from vlmeval_findit.boxes import Corners
from vlmeval_findit.coords import AnsweredQuery, Convention, to_numbers
from vlmeval_findit.data import PROBE_SCENE_COUNT, probe_scene

Rng = np.random.Generator


@cache
def truths() -> list[tuple[tuple[int, int], Corners]]:
    """Return the size of each scene, (width, height), and its object's corners, in pixels."""
    return [(scene.size, scene.box) for scene in map(probe_scene, range(PROBE_SCENE_COUNT))]


def answers(
    rng: Rng,
    actual: Convention,
    noise: float,
    fault: Fault | None = None,
    size: float = 1.0,
    wrong: float = 0.0,
    coarse: float = 0.0,
) -> list[AnsweredQuery]:
    """Return the answers of a deployment about the scenes.

    Args:
        rng: draws errors.
        actual: the convention.
        noise: standard deviation of edges in shares of the object's side.
        fault: what is added to it.
        size: boxes are so many times too large.
        wrong: the share of boxes that are somewhere else.
        coarse: the step of the numbers.
    """
    queries = []
    for index, (picture, box) in enumerate(truths()):
        middle = (np.array(box[:2]) + box[2:]) / 2
        half = (np.array(box[2:]) - box[:2]) / 2 * size
        if rng.random() < wrong:
            middle = half + rng.random(2) * (np.array(picture) - 2 * half)
        meant = np.concatenate([middle - half, middle + half])
        answer = numbers(meant.tolist(), picture, actual, rng, noise, fault)
        if coarse:
            answer = [round(value / coarse) * coarse for value in answer]
        queries.append(AnsweredQuery(*picture, f"{index}.png", [box], [answer]))
    return queries


def numbers(
    box: Sequence[float],
    size: tuple[int, int],
    actual: Convention,
    rng: Rng,
    noise: float = 0.0,
    fault: Fault | None = None,
) -> list[float]:
    """Return the numbers of a box (x1, y1, x2, y2) in pixels of a picture (width, height)."""
    corners = np.array(box, float)
    side = np.tile(corners[2:] - corners[:2], 2)
    shares = (corners + rng.normal(0, noise, 4) * side) / np.tile(size, 2)
    if fault is not None:
        shares = shares * np.tile(fault.scale, 2) + np.tile(fault.offset, 2)
    frame = actual.space.map_of(np.array([size], float).T)
    exact = to_numbers(shares[:, None], frame, actual.order.numbers)[:, 0]
    # As models do: whole numbers, and three digits of fractions.
    unit = float(np.abs(frame.scale).min())
    return [round(float(n), 3 if unit <= 2 else 1 if unit <= 100 else 0) for n in exact]


# --- over HTTP ------------------------------------------------------------------------------------


def sent(asked: Asked) -> str:
    """Return the picture in a request, as a data URL."""
    parts = asked.body["messages"][0]["content"]
    (url,) = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    return str(url)


@cache
def seen(url: str) -> tuple[tuple[int, int], tuple[float, ...]]:
    """Return the size of a picture and the box of what is not background, in its pixels."""
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(np.int16)
    mask = (np.abs(pixels - pixels[0, 0]) > 60).any(-1)
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    return (pixels.shape[1], pixels.shape[0]), tuple(map(float, box))


def answering(actual: Convention, noise: float = 0.03, fault: Fault | None = None) -> Script:
    """Answer every request with the box of its shape, in a convention."""

    def script(asked: Asked, number: int) -> Answer:
        size, box = seen(sent(asked))
        # The same answer to the same picture, in whatever order calls come.
        rng = np.random.default_rng([int(value) for value in (*size, *box)])
        answer = numbers(box, size, actual, rng, noise, fault)
        return completion(json.dumps([{"bbox": answer}]))

    return script
