"""What is recorded of a call, made alone or in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ...core.replies import Recorded
from ...core.work import Answer, Stop, refused_if_it_quotes
from .completion import CallError, Completion


class CallOutcome(NamedTuple):
    """What came of one call, after how many attempts, from which server, and what all cost.

    So much of the ``cost`` is ``guessed``: of attempts whose reply nobody saw, at their most.
    ``batch`` names the one that it was part of.
    """

    outcome: Completion | CallError
    attempts: int
    server: str
    cost: float | None
    guessed: float = 0.0
    batch: str = ""

    def as_record(self) -> dict[str, Any]:
        """What is recorded of it."""
        known: dict[str, Any]
        match self.outcome:
            case Completion() as answered:
                known = {
                    "id": answered.id or None,
                    "cost": self.cost,
                    "cost_guessed": self.guessed or None,
                    "cost_from": answered.cost_from or None,
                    "cache_discount": answered.cache_discount,
                    "status": 200,
                }
            case CallError() as failed:
                known = {
                    "cost": self.cost,
                    "cost_guessed": self.guessed or None,
                    "status": failed.status or None,
                }
        known |= {"attempts": self.attempts, "server": self.server or None}
        known |= {"batch": self.batch or None}
        return {name: value for name, value in known.items() if value is not None}


def answered(completion: Completion, recorded: Recorded) -> Answer:
    """The answer that a completion is: a failed one, where it quotes a key."""
    return refused_if_it_quotes(Answer(completion.text, recorded.as_json()))


def failed(
    error: str, recorded: Recorded, call: Mapping[str, Any], stop: Stop | None = None
) -> Answer:
    """The answer of a call that has none."""
    whole = replace(recorded, call={**call, "error": error})
    return Answer("", whole.as_json(), error, stop=stop)
