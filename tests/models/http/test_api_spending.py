"""What calls cost: a limit in US dollars, and what nobody said."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from asking import QUESTION, QUICK, call_of, one, service
from chat_server import NEVER, ChatServer, completion, in_turn

from vlmeval_findit.cli import main
from vlmeval_findit.engine.http_backend import HttpService
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.spending import Budget, SpendingError
from vlmeval_findit.models.prices import TokenPrices, prices_from


def spend(budget: Budget, cost: float | None) -> bool:
    """Return whether a call of this cost was made, with nothing in flight beside it."""
    try:
        assert budget.begin()
    except SpendingError:
        return False
    budget.end(cost)
    return True


def test_a_limit_is_kept_and_what_was_spent_is_known() -> None:
    budget = Budget(0.3)
    assert [spend(budget, 0.1) for _ in range(5)] == [True, True, True, False, False]
    assert budget.spent == pytest.approx(0.3)
    assert budget.exhausted
    assert budget.refused == 2


def flown(budget: Budget, costs: list[float], at_once: int) -> int:
    """Return how many calls were made, so many at a time, as far as the budget lets them."""
    left, flying, built = deque(costs), deque[float](), 0
    while True:
        try:
            while left and len(flying) < at_once and budget.begin():
                flying.append(left.popleft())
                built += 1
        except SpendingError:
            return built
        if not flying:
            return built
        budget.end(flying.popleft())


def test_calls_in_flight_do_not_pass_the_limit_together() -> None:
    budget = Budget(1.0)
    assert flown(budget, [0.1] * 64, 16) == 10
    assert budget.spent == pytest.approx(1.0)


def test_only_a_call_dearer_than_all_before_passes_the_limit() -> None:
    rng = random.Random(0)
    for _ in range(20):
        budget = Budget(1.0)
        flown(budget, [rng.uniform(0.01, 0.1) for _ in range(60)], 8)
        assert budget.spent <= 1.0 + 8 * 0.09
        assert budget.exhausted


def test_without_a_known_cost_one_call_runs_alone() -> None:
    budget = Budget(10.0)
    for _ in range(8):
        assert budget.begin()
        assert not budget.begin()
        budget.end(0.0)


def test_who_waits_is_told_when_a_call_has_ended() -> None:
    budget, told = Budget(10.0), []
    assert budget.begin()
    with budget.watched_by(lambda: told.append(budget.spent)):
        budget.end(0.5)
    assert told == [0.5]


def test_a_service_that_names_no_cost_cannot_be_limited() -> None:
    budget = Budget(1.0)
    assert spend(budget, None)
    with pytest.raises(SpendingError, match="does not say what calls cost"):
        budget.begin()
    unlimited = Budget()
    assert all(spend(unlimited, None) for _ in range(3))


def test_batches_may_cost_the_limit_together_and_no_more() -> None:
    budget = Budget(1.0)
    for at_most in (0.3, 0.3, 0.3, 0.1):
        budget.commit(at_most)
    with pytest.raises(SpendingError, match=r"up to \$0\.0100 could pass the limit of \$1 "):
        budget.commit(0.01)
    with pytest.raises(SpendingError, match="not known beforehand"):
        Budget(1.0).commit(None)
    Budget().commit(None)


def test_an_attempt_that_timed_out_is_paid_at_its_most() -> None:
    prices = TokenPrices(1.0, 1000.0, cached=1.0, written=1.0, least=0)
    model = replace(chat_model("Qwen3-VL"), prices=prices)
    budget = Budget(5.0)
    with ChatServer(in_turn(NEVER)) as server:
        twice = replace(QUICK, attempts=2)
        answer = one(HttpService(model, [Endpoint(server.url)], 0.2, budget, twice))
    least = QUESTION.max_new_tokens * 1000.0 / 1e6  # of each attempt
    assert "no reply within" in (answer.error or "")
    assert budget.spent == pytest.approx(2 * least, rel=0.01)
    assert call_of(answer)["cost_guessed"] == call_of(answer)["cost"] == budget.spent


def test_without_prices_it_is_paid_like_the_dearest_call_before() -> None:
    budget, once = Budget(5.0), replace(QUICK, attempts=1)
    with ChatServer(in_turn(completion(), NEVER)) as server:
        first = one(service(server.url, budget=budget))
        second = one(service(server.url, timeout=0.2, budget=budget, policy=once))
    assert first.error is None
    assert "no reply within" in (second.error or "")
    assert budget.spent == pytest.approx(0.02), "the server said 0.01 of the first"


def test_a_refused_connection_costs_nothing() -> None:
    budget = Budget(5.0)
    with ChatServer(in_turn(completion())) as server:
        asked = service(server.url, budget=budget, policy=replace(QUICK, attempts=1))
    assert "no reply" in (one(asked).error or "")
    assert budget.spent == 0.0


SEARCH = ["search", "--model", "Qwen3-VL", "--data", "Demo", "--limit", "1", "--api-nproc", "1"]


def searched(folder: Path, server: ChatServer, *flags: str) -> int:
    places = ["--work-dir", str(folder / "w"), "--journal", str(folder / "calls.jsonl")]
    where = ["--base-url", server.url, "--out", str(folder / "best.yaml")]
    return main([*SEARCH, *places, *where, *flags])


def test_a_limit_without_prices_is_refused_before_any_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(in_turn(completion())) as server:
        assert searched(tmp_path, server, "--max-usd", "1") == 2
        assert not server.asked
    assert "Say it: --prices IN,OUT in US dollars a million tokens" in capsys.readouterr().err
    assert not (tmp_path / "calls.jsonl").exists()


def test_a_limit_holds_by_given_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    with ChatServer(in_turn(completion(usage=usage))) as server:
        limit = ["--max-usd", "0.03", "--prices", "0,500"]
        assert searched(tmp_path, server, *limit) == 3
        assert len(server.asked) == 3, "20 tokens at 500 dollars a million: 0.01 each"
    assert "spent: $0.0300" in capsys.readouterr().err


@pytest.mark.parametrize("said", ["1", "1,2,3", "a,b", "-1,2", "nan,1", ""])
def test_prices_that_are_none_are_refused(said: str) -> None:
    with pytest.raises(ValueError, match="IN,OUT in US dollars a million tokens"):
        prices_from(said)
