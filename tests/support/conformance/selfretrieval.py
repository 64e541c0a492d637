"""Features and right captions, replies and their captions, caption files."""

from __future__ import annotations

from statistics import mean

import numpy as np

from vlmeval_findit.benchmarks.selfretrieval import (
    ImagePair,
    PairSide,
    ZeroLengthError,
    as_replies,
    is_right,
    missing_reason,
    read_captions,
    similarities,
)
from vlmeval_findit.core import suggestion
from vlmeval_findit.protocol import FAILED_ANSWER, Reply

from .cases import Case, reason_in_cases, unlike


def _features(case: Case) -> str | None:
    refused = isinstance(case.get("better"), str) and case["better"].startswith("refuse")
    try:
        right = {str(pair["uid"]): _right(pair) for pair in case["pairs"]}
    except ZeroLengthError as error:
        return None if refused else f"refused: {error}"
    if refused:
        return "scored, should be refused"
    both = [min(marks) for marks in right.values()]
    actual = {
        "right": right,
        "pair_share": {uid: mean(marks) for uid, marks in right.items()},
        "pair_both": {uid: int(min(marks)) for uid, marks in right.items()},
        "both_percent": round(100 * mean(both), 2),
        "captions_percent": round(100 * mean(mean(marks) for marks in right.values()), 2),
    }
    return unlike(actual, case["authors"])


def _right(pair: Case) -> list[float]:
    """Return 1.0 for a right caption, else 0.0: left, right."""
    texts, pictures = (np.asarray(pair[key], dtype=np.float32) for key in ("text", "image"))
    return [float(mark) for mark in is_right(similarities(texts, pictures, pictures[::-1]))]


def _reply(case: Case) -> str | None:
    reply = Reply(0, FAILED_ANSWER if case["reply"] is None else case["reply"])
    captions = read_captions(reply)
    actual = {
        "left": captions.left.caption,
        "right": captions.right.caption,
        "why": reason_in_cases(missing_reason(captions), reply, "no_json"),
    }
    return unlike(actual, case["sensible"])


def _file(case: Case) -> str | None:
    pairs = [ImagePair(at, uid, ("left", "right")) for at, uid in enumerate(case["uids"])]
    replies, unknown = as_replies(case["captions"], pairs)
    captions = [
        (pair.uid, read_captions(reply)) for pair, reply in zip(pairs, replies, strict=True)
    ]
    missing = [
        [uid, side.value]
        for uid, both in captions
        for side in PairSide
        if both.value(side).caption is None
    ]
    return unlike({"missing": missing, "unknown": list(unknown)}, case["better"])


KINDS = {"features": _features, "reply": _reply, "file": _file}


def difference(case: Case) -> str | None:
    """Return how our result differs from a case."""
    kind = str(case["kind"])
    if kind not in KINDS:
        raise ValueError(f"no kind of case {kind!r}{suggestion(kind, KINDS)}")
    return KINDS[kind](case)
