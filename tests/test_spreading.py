"""Which replica is asked what: of actors that answer, die and come back, without Ray."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vlmeval_findit.core.work import Answer, Kept
from vlmeval_findit.engine.calls import Call, Keyed
from vlmeval_findit.engine.cancel import CancelToken
from vlmeval_findit.engine.cluster.replica import Came
from vlmeval_findit.engine.cluster.spreading import Spreading, Ways
from vlmeval_findit.engine.plan import WorkItem


class FakeRay:
    """Answers when it is looked at; ``dies`` are the numbers of bundles that come to nothing.

    ``sent`` are the actor, the pieces and the retries of each.
    """

    def __init__(self, dies: set[int]) -> None:
        self.sent: list[tuple[str, int, int]] = []
        self._dies = dies

    def actor(self, name: str) -> Any:
        def options(max_task_retries: int) -> Any:
            def remote(sheet: Any, pieces: Any) -> tuple[int, int]:
                self.sent.append((name, len(pieces), max_task_retries))
                return len(self.sent) - 1, len(pieces)

            return SimpleNamespace(remote=remote)

        return SimpleNamespace(ask_of=SimpleNamespace(options=options))

    def wait(self, running: list[Any], num_returns: int, timeout: float) -> Any:
        return running[:num_returns], running[num_returns:]

    def get(self, reference: tuple[int, int]) -> list[Came]:
        number, pieces = reference
        if number in self._dies:
            raise RuntimeError("the actor died")
        return [Came(at, 0, Kept("")) for at in range(pieces)]


def work_items(count: int) -> list[WorkItem]:
    """As many calls, each about a picture of its own."""
    cell: Any = None
    asked = (Keyed(str(at), (Path(f"{at}.png"),), "", (str(at),)) for at in range(count))
    return [WorkItem((Call(one, cell, at, (0,)),), False) for at, one in enumerate(asked)]


def spread(ray: FakeRay, names: str, count: int) -> dict[str, Answer]:
    ways = Ways(ray, {name: ray.actor(name) for name in names}, [])
    came = Spreading(ways, iter(work_items(count)), CancelToken()).answers()
    both = [pair for unit, answers in came for pair in zip(unit.calls, answers, strict=True)]
    assert len({call.key for call, _ in both}) == len(both), "each once"
    return {call.key: answer for call, answer in both}


def test_more_is_sent_at_a_time_and_everything_once() -> None:
    ray = FakeRay(set())
    assert len(spread(ray, "ab", 100)) == 100
    sizes = [pieces for name, pieces, _ in ray.sent if name == "a"]
    assert sizes[:4] == [1, 2, 4, 8]


@pytest.mark.parametrize("first", [0, 1])
def test_what_was_sent_to_an_actor_that_died_is_asked_again_one_by_one(first: int) -> None:
    """The first bundle is a single call, as all are of a slow model; the second is of two."""
    ray = FakeRay({first})
    answers = spread(ray, "a", 7)
    assert not any(answer.error for answer in answers.values())
    assert len(answers) == 7
    alone = [pieces for _, pieces, retries in ray.sent if retries]
    assert alone == [1] * (first + 1)


def test_what_kills_its_actor_again_and_again_has_failed() -> None:
    ray = FakeRay({0, 1})
    answers = spread(ray, "a", 3)
    assert [key for key, answer in answers.items() if answer.error] == ["0"]
    assert [retries for _, _, retries in ray.sent[:2]] == [0, 3]
