from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from vlmeval_findit.models.http.spending import Budget, SpendingError


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
