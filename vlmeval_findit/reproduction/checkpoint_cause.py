"""A cause in who answers: another checkpoint than the published one, a quantised one, or several.

Names tell it: of the checkpoint that a server says it serves, and of the models in the replies.
"""

from __future__ import annotations

import re
from itertools import chain

from ..models import may_be_same_model
from ..scoring import answered_note_of
from .cause_evidence import Evidence
from .reproduction_records import Attempt, Cause, CauseLook
from .stated_causes import loss_by_answerer

CHECKPOINT = "checkpoint"
_ASK_ONE = "Ask one model at one server: see which model a gateway falls back to"

# Fewer bits than 16, in the names of checkpoints and files
_QUANTISED = re.compile(
    r"(?<![a-z0-9])(?:awq|gptq|bnb|exl[23]|i?q\d(?:_\w+)?|(?:int|nf)\d+|(?:mx|nv)?fp[468]"
    r"|w\d+a\d+|\d+-?bits?)(?![a-z0-9])",
    re.IGNORECASE,
)


def check_checkpoint(evidence: Evidence) -> CauseLook:
    """Look whether the published model answers, and one deployment of it."""
    published = evidence.figure.model
    loaded = _loaded(evidence.attempt)
    finding = another_model(evidence.attempt)
    others = _others_that_answer(evidence.attempt)
    loss = loss_by_answerer(evidence)
    if loss is not None:
        words, value = loss
        finding = f"{finding}. {words}" if finding else words
        cause = evidence.cause(CHECKPOINT, finding, value, _ASK_ONE, of_rest=True)
        return CauseLook(CHECKPOINT, others or "several answer", cause)
    if others is not None:
        return _possible_cause(others, finding, _ASK_ONE)
    if finding:
        return _possible_cause(
            loaded, finding, f"Serve {published}, or compare with a figure of {loaded}"
        )
    if not loaded:
        return CauseLook(CHECKPOINT, "not told which checkpoint answers")
    quantised = _QUANTISED.search(loaded)
    if quantised is not None:
        finding = f"{loaded} answers, which is quantised ({quantised[0]})"
        return _possible_cause(loaded, finding, f"Serve {published} with 16 bits")
    return CauseLook(CHECKPOINT, f"{loaded}, as published")


def another_model(attempt: Attempt) -> str:
    """Say that another model answers than asked or published; "" where nothing says so."""
    others = _others_that_answer(attempt)
    if others is not None:
        return f"Replies are {others}"
    loaded = _loaded(attempt)
    published = attempt.setup.figure.model
    if loaded and not may_be_same_model(published, loaded):
        return f"{loaded} answers; the figure is of {published}"
    return ""


def _loaded(attempt: Attempt) -> str:
    """Return the checkpoint that a server says it serves, or that is loaded here; "": not told."""
    setup = attempt.setup
    if setup.program is not None:
        return setup.program.checkpoint
    return (setup.entry.checkpoint or "").rstrip("/").rpartition("/")[2]


def _others_that_answer(attempt: Attempt) -> str | None:
    """Return a note if replies name another model than was asked, or several; else None."""
    replies = chain.from_iterable(each.replies for each in attempt.predictions)
    return answered_note_of(replies, attempt.predictions[0].identity)


def _possible_cause(result: str, finding: str, advice: str) -> CauseLook:
    cause = Cause(CHECKPOINT, finding, None, advice, sure=False)
    return CauseLook(CHECKPOINT, result, cause)
