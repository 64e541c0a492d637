"""Cases: replies with options, and the letters that the authors and a reader take from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.conformance import Agreement, Protocols, tried
from ...core.replies import NOTHING_RECORDED, call_failed
from . import PROTOCOL, RENDER_PROTOCOL, render_cases
from .choice import Choice, Reason
from .extraction import published_letter
from .reading import read


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file; they need nothing beside it.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    return tried(path, difference)


PROTOCOLS: Protocols = {PROTOCOL: agreement, RENDER_PROTOCOL: render_cases.agreement}


def difference(case: Mapping[str, Any]) -> str | None:
    """How what we take from a reply differs from what a case says; None where nothing does."""
    reply, answer = case["reply"], case["answer"]
    published = published_letter(reply)
    failed = reply is None or call_failed(reply, NOTHING_RECORDED)
    choice = Choice(reason=Reason.FAILED) if failed else read(reply, case["options"])
    ours = {
        "authors": {"letter": published, "correct": published == answer},
        "sensible": {
            "letter": choice.letter,
            "correct": choice.letter == answer,
            "why": None if choice.reason is None else choice.reason.value,
        },
    }
    for reader, said in ours.items():
        for key, value in case[reader].items():
            if said.get(key) != value:
                return f"{reader}: {key} is {said.get(key)!r}, should be {value!r}"
    return None
