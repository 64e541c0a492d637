from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from asking import QUESTION, Sleeps, asker, call_of, one
from chat_server import NEVER, ChatServer, completion, in_turn

from vlmeval_findit.cli import main
from vlmeval_findit.models.http.asker import ChatAsker, Terms
from vlmeval_findit.models.http.chat import server_model
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.spending import Budget, SpendingError
from vlmeval_findit.models.prices import Prices, prices_from


def spend(budget: Budget, cost: float | None, seconds: float = 0.0) -> bool:
    """Whether a call of this cost was made."""
    try:
        with budget.call() as charge:
            time.sleep(seconds)
            charge.cost = cost
    except SpendingError:
        return False
    return True


def test_a_limit_is_kept_and_what_was_spent_is_known() -> None:
    budget = Budget(0.3)
    assert [spend(budget, 0.1) for _ in range(5)] == [True, True, True, False, False]
    assert budget.spent == pytest.approx(0.3)
    assert budget.exhausted
    assert budget.refused == 2


def test_threads_do_not_pass_the_limit_together() -> None:
    budget = Budget(1.0)
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: spend(budget, 0.1, 0.01), range(64)))
    assert sum(made) == 10
    assert budget.spent == pytest.approx(1.0)


def test_only_a_call_dearer_than_all_before_passes_the_limit() -> None:
    rng = random.Random(0)
    for _ in range(20):
        costs = [rng.uniform(0.01, 0.1) for _ in range(60)]
        budget = Budget(1.0)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda cost, b=budget: spend(b, cost, 0.0005), costs))
        assert budget.spent <= 1.0 + 8 * 0.09
        assert budget.exhausted


def test_without_a_known_cost_one_call_runs_alone() -> None:
    budget = Budget(10.0)
    running, most = [0], [0]
    lock = threading.Lock()

    def call(_: int) -> None:
        with budget.call() as charge:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.01)
            with lock:
                running[0] -= 1
            charge.cost = 0.0

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert most == [1]


def test_a_service_that_names_no_cost_cannot_be_limited() -> None:
    budget = Budget(1.0)
    assert spend(budget, None)
    with pytest.raises(SpendingError, match="does not say what calls cost"), budget.call():
        pass
    unlimited = Budget()
    assert all(spend(unlimited, None) for _ in range(3))


def test_a_failed_call_is_charged_what_it_cost() -> None:
    budget = Budget(1.0)

    def fail() -> None:
        with budget.call() as charge:
            charge.cost = 0.25
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert budget.spent == 0.25
    assert not budget.exhausted


def test_the_message_says_limit_and_spent() -> None:
    budget = Budget(0.5)
    spend(budget, 0.4)
    with pytest.raises(SpendingError, match=r"\$0\.5 \(\$0\.4000 spent\)"), budget.call():
        pass


def test_an_attempt_that_timed_out_is_paid_at_its_most() -> None:
    prices = Prices(1.0, 1000.0, cached=1.0, written=1.0, least=0)
    model = replace(server_model("Qwen3-VL"), prices=prices)
    budget = Budget(5.0)
    with ChatServer(in_turn(NEVER)) as server:
        terms = Terms(attempts=2, timeout=0.2)
        asking = ChatAsker(model, [Endpoint(server.url)], terms, budget, Sleeps())
        answer = one(asking)
    least = QUESTION.max_new_tokens * 1000.0 / 1e6  # of each attempt
    assert "no reply within" in (answer.error or "")
    assert budget.spent == pytest.approx(2 * least, rel=0.01)
    assert call_of(answer)["cost_guessed"] == call_of(answer)["cost"] == budget.spent


def test_without_prices_it_is_paid_like_the_dearest_call_before() -> None:
    budget = Budget(5.0)
    with ChatServer(in_turn(completion(), NEVER)) as server:
        asking = asker(server.url, Terms(attempts=1, timeout=0.5), budget=budget)
        assert one(asking).error is None
        assert "no reply within" in (one(asking).error or "")
    assert budget.spent == pytest.approx(0.02), "the server said 0.01 of the first"


def test_a_refused_connection_costs_nothing() -> None:
    budget = Budget(5.0)
    with ChatServer(in_turn(completion())) as server:
        asking = asker(server.url, Terms(attempts=1), budget=budget)
    assert "no reply" in (one(asking).error or "")
    assert budget.spent == 0.0


SEARCH = ["search", "--model", "Qwen3-VL", "--dataset", "Demo", "--limit", "1", "--threads", "1"]


def searched(folder: Path, server: ChatServer, *flags: str) -> int:
    places = ["--work-dir", str(folder / "w"), "--journal", str(folder / "calls.jsonl")]
    where = ["--endpoints", server.url, "--out", str(folder / "best.yaml")]
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
