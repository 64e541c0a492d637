"""What calls cost: a limit in US dollars, and costs that are not stated."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from asking import QUESTION, QUICK, ask_call, call_of, service
from chat_server import NEVER, ChatServer, completion, in_turn

from vlmeval_findit.boxes import Space
from vlmeval_findit.cli import main, report_spending
from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    Budget,
    Charge,
    ChatRequest,
    Endpoint,
    Load,
    SentImage,
    SpendingError,
    TokenPrices,
    chat_model,
    image_tokens,
    load_of,
    prices_from,
    words_of,
)
from vlmeval_findit.protocol import image, text


def sent(width: int, height: int) -> SentImage:
    return SentImage((9, 9), (width, height), "image/png", b"")


@pytest.mark.parametrize(
    ("kind", "size", "tokens"),
    [
        ("pixels", (32, 32), 1),
        ("pixels", (33, 64), 4),
        ("grid1000", (320, 321), 110),
        ("openai_high", (320, 321), 110),
        ("openai_high", (4096, 3072), 57 * 43),  # 2,500 patches at most
        ("claude_standard", (28, 28), 1),
        ("claude_standard", (57, 28), 3),
        ("claude_standard", (4096, 3072), 46 * 34),  # 1,568 at most
        ("claude_highres", (56, 29), 4),
        ("claude_highres", (4096, 3072), 79 * 60),  # 4,784 at most
    ],
)
def test_tokens_of_images(kind: str, size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(sent(*size), Space(kind)) == tokens


def test_the_load_of_a_call() -> None:
    """A beginning ends with the last image."""
    message = (text("a" * 9), image("a.png"), text("'\"é\n" * 2), image("b.png"), text("z" * 6))
    assert words_of(message) == (9 + 8 + 6, 9 + 8)
    assert words_of((text("only"),)) == (4, 0)
    asked = ChatRequest({}, (sent(64, 32), sent(33, 64)))
    assert load_of(asked, message, Space("pixels"), 100) == Load(
        calls=1, images=2, tokens_in=5 + 6, tokens_out_at_most=100, tokens_beginning=4 + 6
    )


def test_loads_add_up_and_batches_pay_a_share() -> None:
    assert astuple(Load()) == (0,) * 8
    load = Load(1, 2, 3, 4, 5, 6, 0.5, 0.25)
    both = load + Load(10, 20, 30, 40, 50, 60, 8.0, 16.0)
    assert both == Load(11, 22, 33, 44, 55, 66, 8.5, 16.25)
    assert load.paid(0.5) == replace(load, usd_in=0.25, usd_out_at_most=0.125)


@pytest.mark.parametrize(
    ("tokens", "dollars"),
    [
        ({"prompt": 3000, "completion": 100}, 3000 * 4 + 100 * 20),
        ({"prompt": 3000, "cached": 2000, "completion": 0}, 1000 * 4 + 2000 * 0.5),
        ({"prompt": 3000, "cached": 1000, "cache_write": 1500, "completion": 0}, 2000 + 500 + 7500),
        ({"prompt": 10, "cached": 20, "completion": 0}, 20 * 0.5),
        ({"prompt": 10}, None),
    ],
)
def test_prices_of_tokens(tokens: dict[str, int], dollars: float | None) -> None:
    """US dollars times a million; a beginning is cached from ``least`` tokens on."""
    prices = TokenPrices(sent=4.0, answered=20.0, cached=0.5, written=5.0, least=1024)
    assert prices.cost_of(tokens) == (None if dollars is None else pytest.approx(dollars / 1e6))
    assert prices.first(3000, 1024) == pytest.approx((1024 * 5 + 1976 * 4) / 1e6)
    assert prices.another(3000, 1024) == pytest.approx((1024 * 0.5 + 1976 * 4) / 1e6)
    assert prices.first(3000, 1023) == prices.another(3000, 1023) == pytest.approx(0.012)


def spend(budget: Budget, cost: float | None) -> bool:
    """Return whether a call of this cost was made, with nothing else in flight."""
    try:
        assert budget.begin()
    except SpendingError:
        return False
    budget.end(cost)
    return True


def test_a_limit_holds_and_what_was_spent_is_known() -> None:
    budget = Budget(0.3)
    assert (budget.spent, budget.exhausted) == (0.0, False)
    assert [spend(budget, 0.1) for _ in range(5)] == [True, True, True, False, False]
    assert budget.spent == pytest.approx(0.3)
    assert budget.exhausted
    assert budget.refused == 2


@pytest.mark.parametrize(
    ("costs", "flying", "needed"),
    [
        ([0.25], 0, 0.5),
        ([0.25, 0.125], 0, 0.625),
        ([0.125, 0.25], 1, 0.875),
        ([0.25, 0.125, 0.125], 3, 1.5),
    ],
)
def test_spending_plus_calls_in_flight_stays_within_the_limit(
    costs: Sequence[float], flying: int, needed: float
) -> None:
    for limit, begins in ((needed, True), (needed - 1e-6, False)):
        budget = Budget(limit)
        assert all(spend(budget, cost) for cost in costs)
        assert all(budget.begin() for _ in range(flying))
        if begins or flying:
            assert budget.begin() == begins
        else:
            with pytest.raises(SpendingError, match=rf"limit of .*\(\${sum(costs):.4f} spent"):
                budget.begin()
        assert budget.exhausted == (not begins and not flying)


def test_an_ended_attempt_makes_room() -> None:
    budget = Budget(1.0)
    assert spend(budget, 0.25)
    assert [budget.begin() for _ in range(4)] == [True, True, True, False]
    budget.take_back()
    assert [budget.begin() for _ in range(2)] == [True, False]
    budget.end(0.0)
    assert [budget.begin() for _ in range(2)] == [True, False]
    assert budget.spent == 0.25


def test_nothing_is_spent_of_a_limit_of_nothing() -> None:
    assert not spend(Budget(0.0), 0.0)
    assert spend(Budget(1e-9), 0.0)
    free = Budget(0.0)
    free.commit(0.0)
    with pytest.raises(SpendingError):
        free.commit(1e-6)


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
    assert spend(budget, 0.5)
    assert told == [0.5], "not after it has stopped to wait"


def test_a_service_that_names_no_cost_cannot_be_limited() -> None:
    budget = Budget(1.0)
    assert spend(budget, None)
    with pytest.raises(SpendingError, match="does not say what calls cost"):
        budget.begin()
    budget = Budget(1.0)
    assert spend(budget, 0.1)
    assert [budget.begin(), budget.begin()] == [True, True]
    budget.end(None)
    assert not budget.begin(), "the other call may still cost something"
    budget.end(0.1)
    assert not spend(budget, 0.1), "a cost that was stated later does not make up for it"
    unlimited = Budget()
    assert all(spend(unlimited, None) for _ in range(3))


def test_batches_may_cost_the_limit_together_and_no_more() -> None:
    budget = Budget(1.0)
    for at_most in (0.3, 0.3, 0.3, 0.1):
        budget.commit(at_most)
    with pytest.raises(SpendingError, match=r"up to \$0\.0100 could pass the limit of \$1 "):
        budget.commit(0.01)
    assert (budget.committed, budget.refused) == (pytest.approx(1.0), 1)
    with pytest.raises(SpendingError, match="not known beforehand"):
        Budget(1.0).commit(None)
    Budget().commit(None)


def test_an_attempt_that_timed_out_is_paid_at_its_most(caplog: pytest.LogCaptureFixture) -> None:
    prices = TokenPrices(1.0, 1000.0, cached=1.0, written=1.0, least=0)
    model = replace(chat_model("Qwen3-VL"), prices=prices)
    budget = Budget(5.0)
    with ChatServer(in_turn(NEVER)) as server:
        twice = replace(QUICK, attempts=2)
        answer = ask_call(HttpService(model, [Endpoint(server.url)], 0.2, budget, twice))
    at_most = (1 * 1.0 + QUESTION.max_new_tokens * 1000.0) / 1e6  # of six characters, and a reply
    assert "no reply within" in (answer.error or "")
    assert budget.spent == pytest.approx(2 * at_most, rel=1e-12)
    assert call_of(answer)["cost_guessed"] == call_of(answer)["cost"] == budget.spent
    assert (budget.guessed, budget.guesses) == (budget.spent, 2)
    assert "each attempt is counted as it may be billed" in caplog.text


def test_without_prices_it_is_paid_like_the_dearest_call_before() -> None:
    budget, once = Budget(5.0), replace(QUICK, attempts=1)
    with ChatServer(in_turn(completion(), NEVER)) as server:
        first = ask_call(service(server.url, budget=budget))
        second = ask_call(service(server.url, timeout=0.2, budget=budget, policy=once))
    assert first.error is None
    assert "no reply within" in (second.error or "")
    assert budget.spent == pytest.approx(0.02), "the server said 0.01 of the first"


def test_a_refused_connection_costs_nothing() -> None:
    budget = Budget(5.0)
    budget.dearest = 0.5  # what a time-out would cost
    with ChatServer(in_turn(completion())) as server:
        asked = service(server.url, budget=budget, policy=replace(QUICK, attempts=1))
    assert "no reply" in (ask_call(asked).error or "")
    assert budget.spent == 0.0


def test_a_reply_without_a_cost_cannot_be_limited() -> None:
    budget = Budget(5.0)
    unstated = {"prompt_tokens": 900, "completion_tokens": 20}
    with ChatServer(in_turn(completion(), NEVER, completion(usage=unstated))) as server:
        asked = service(server.url, timeout=0.2, budget=budget)
        first, second = ask_call(asked), ask_call(asked)
    assert (first.error, second.error) == (None, None)
    assert call_of(first)["cost"] == 0.01
    assert "cost" not in call_of(second)
    with pytest.raises(SpendingError, match="does not say what calls cost"):
        budget.begin()


SEARCH = ["search", "--model", "Qwen3-VL", "--data", "Demo", "--limit", "1", "--api-nproc", "1"]


def searched(folder: Path, server: ChatServer, *flags: str) -> int:
    places = ["--work-dir", str(folder / "w"), "--journal", str(folder / "calls.jsonl")]
    where = ["--base-url", server.url, "--out", str(folder / "best.yaml")]
    return main([*SEARCH, *places, *where, *flags])


def test_a_limit_holds_by_what_a_server_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(in_turn(completion())) as server:
        assert searched(tmp_path, server, "--max-usd", "0.03") == 3
        assert len(server.asked) == 3, "it states 0.01 of each"
    assert "spent: $0.0300" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([(0.5, 0.0, 0)], ""),
        ([(0.5, 0.0, 0), (0.3, 0.25, 1)], ", $0.2500 of it counted at the most that a call can"),
        ([(0.5, 0.4, 2), (0.3, 0.3, 3)], ", $0.7000 of it counted at the most that 5 calls can"),
    ],
)
def test_a_guess_is_said_beside_the_sum(
    ends: list[tuple[float, float, int]], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget()
    for end in ends:
        budget.begin()
        budget.end(*end)
    report_spending(budget)
    said = capsys.readouterr().err
    assert f"spent: ${sum(end[0] for end in ends):.4f}{words}" in said
    assert ("whose replies were lost" in said) is bool(words)


@pytest.mark.parametrize("costs", [[], [0.5]])
def test_an_estimate_is_called_one_until_a_price_is_told(
    costs: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget()
    lost = budget.at_least_seen("M", Charge(0.25, is_guess=True, is_unseen=True))
    assert lost.cost is not None
    budget.count(lost.cost, lost.cost, 1)
    for cost in costs:
        budget.at_least_seen("M", Charge(cost))
        budget.count(cost)
    report_spending(budget)
    assert ("the service may bill more" in capsys.readouterr().err) is not bool(costs)


def test_a_limit_ends_at_a_server_that_states_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    with ChatServer(in_turn(completion(usage=usage))) as server:
        assert searched(tmp_path, server, "--max-usd", "1", "--api-nproc", "4") == 3
        assert len(server.asked) == 1
    assert "type --prices IN,OUT in US dollars a million tokens" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--provider", "openai"], ["--batch", "openai"]])
def test_a_limit_that_nothing_can_hold_is_refused(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenAI states no costs, and a batch states them only when it has cost them."""
    journal = tmp_path / "calls.jsonl"
    asked = ["--data", "Demo", "--limit", "1", "--max-usd", "1", "--key", "sk-1"]
    places = ["--work-dir", str(tmp_path / "w"), "--journal", str(journal)]
    with ChatServer(in_turn(completion())) as server:
        where = ["--model", "Qwen3-VL=mine", "--base-url", server.url]
        assert main(["search", *asked, *places, *where, *flags]) == 2
        assert not server.asked
    assert "Type --prices IN,OUT in US dollars a million tokens" in capsys.readouterr().err
    assert not journal.exists()


def test_a_limit_holds_by_given_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    with ChatServer(in_turn(completion(usage=usage))) as server:
        limit = ["--max-usd", "0.03", "--prices", "0,500"]
        assert searched(tmp_path, server, *limit) == 3
        assert len(server.asked) == 3, "20 tokens at 500 dollars a million: 0.01 each"
    assert "spent: $0.0300" in capsys.readouterr().err


@pytest.mark.parametrize("prices", ["1", "a,b", "-1,2"])
def test_prices_that_are_none_are_refused(prices: str) -> None:
    with pytest.raises(ValueError, match="IN,OUT in US dollars per million tokens"):
        prices_from(prices)


def test_calls_in_flight_do_not_pass_the_limit_together() -> None:
    budget = Budget(1.0)
    assert flown(budget, [0.1] * 64, 16) == 10
    assert budget.spent == pytest.approx(1.0)


def flown(budget: Budget, costs: list[float], at_once: int) -> int:
    """Return how many calls the budget allows, ``at_once`` in flight."""
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
