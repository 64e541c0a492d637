"""A script for :class:`chat_server.ChatServer` that knows the ground truth: every box, exactly.

An answer is found by the request's whole content, so that a run scores 100 only when texts, images,
their places and the coordinate space are right, and every answer comes back to its own row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from vlmeval_findit.benchmarks.findit import FindItQuery, LoadedFindIt, message
from vlmeval_findit.boxes import BoxToWrite, Space, reply_extent, write
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import chat_model, find_model
from vlmeval_findit.protocol import located
from vlmeval_findit.storage import image_folder


def perfect_answers(
    model: str, names: Iterable[str], provider: str | None = None
) -> dict[str, str]:
    """By :func:`content` of a request, the reply that names every box of its row."""
    row = find_model(model)
    assert row is not None
    chat, answers = chat_model(model, provider), {}
    for name in names:
        dataset = load_dataset(name)
        space = row.space(dataset.variant)
        folder = image_folder(dataset.variant.images).path
        for query in dataset.queries.values():
            reply = perfect_answer(dataset, query, space)
            parts = located(message(query, dataset.variant), folder)
            answers[content(chat.request(parts, dataset.variant).body)] = reply
    return answers


def perfect_answer(dataset: LoadedFindIt, query: FindItQuery, space: Space, digits: int = 3) -> str:
    """Return the reply that names every box of a row, in a space."""
    width, height, left, top = reply_extent(space, query.width, query.height)
    across = width / query.width
    down = height / query.height
    truth = query.truth
    labels = truth.labels or [""] * len(truth.boxes)
    scale, shift = (across, down) * 2, (left, top) * 2
    boxes = [
        BoxToWrite(tuple(n * s + o for n, s, o in zip(box, scale, shift, strict=True)), *rest)  # type: ignore[arg-type]
        for box, *rest in zip(truth.boxes, labels, truth.frames, strict=True)
    ]
    return write(boxes, dataset.variant.reply, digits=digits)


def content(body: Any) -> str:
    """Return what a request asks, as a key."""
    return json.dumps(body["messages"], sort_keys=True)
