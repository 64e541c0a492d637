"""How long calls took, on their way from the journal into a run's costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from asking import KEY, ask_call, service
from chat_server import Answer, ChatServer, completion, error, in_turn
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go, records

from vlmeval_findit.engine import HttpService, encode_record
from vlmeval_findit.models import Endpoint, SharedTime, Stopwatch, TimedClient, chat_model
from vlmeval_findit.protocol import Batch, CallResult, CallTime, RunCosts
from vlmeval_findit.scoring import Run, load_runs, score_file, write_score
from vlmeval_findit.storage import PredictionError, parse_call_time, read_predictions

FOUR_CALLS = """
models: FullImage
datasets: Demo
representations: xyxy
outputs: json
limit: 4
"""

SOURCE = "prices of November 2026"

# What a made-up journal has of four calls; each is a record's keys, and the reply's record
MADE_UP: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = (
    (
        {"seconds": 1.0, "time": {"seconds": 1.0, "at_once": 2.0}},
        {"tokens": {"prompt": 1000, "completion": 50}, "call": {"cost": 0.002, "attempts": 1}},
    ),
    (  # Asked twice: its journal has eleven seconds, the attempt that was answered took three
        {"seconds": 11.0, "time": {"seconds": 3.0, "at_once": 7.0}},
        {
            "tokens": {"prompt": 1200, "cached": 1000, "completion": 70},
            "call": {"cost": 0.004, "attempts": 2, "cost_from": SOURCE},
            "images": [{"original": [64, 48], "sent": [32, 24]}],
        },
    ),
    (  # By a batch service: without a time
        {"seconds": 0.0, "time": {}},
        {
            "tokens": {"prompt": 1400, "completion": 60},
            "call": {"cost": 0.003, "cost_from": SOURCE, "batch": "batch_0"},
        },
    ),
    (  # An equal call of another dataset; what it cost is not known
        {
            "seconds": 2.0,
            "time": {"seconds": 2.0, "at_once": 1.0, "cpu_seconds": 3.5},
            "dataset": "FindIt_Other",
        },
        {},
    ),
)

BY_HAND = RunCosts(
    queries=4,
    seconds_known=3,
    seconds_median=2.0,
    seconds_p95=pytest.approx(2.9),  # of 1, 2 and 3
    calls_at_once=pytest.approx(10 / 3),
    tokens_in_known=3,
    tokens_in=1200.0,
    tokens_out_known=3,
    tokens_out=60.0,
    usd_known=3,
    usd_per_1000=pytest.approx(3.0),
    usd_source=f"stated by the service, {SOURCE}, half of {SOURCE}",
    cpu_seconds_known=1,
    cpu_seconds=3.5,
    pixels_known=1,
    pixels=32.0 * 24,
    image_size="32 x 24",
    cached=1,
    retried=1,
    batched=1,
    shared=1,
)


def made_up_run(folder: Path, **others: Any) -> Run:
    """Return the run of a made-up journal; ``others`` are keys of each of its records."""
    sweep = demo_sweep(folder, FOUR_CALLS)
    go(sweep, FakeDeployment(FakeModel()))
    in_order = sorted(records(sweep.journal), key=lambda record: record["row"])
    lines = []
    for record, (keys, reply) in zip(in_order, MADE_UP, strict=True):
        changed = {**record, **keys, "extra_records": json.dumps({"findit": reply}), **others}
        lines.append(
            encode_record({key: each for key, each in changed.items() if each is not None})
        )
    sweep.journal.write_bytes(b"".join(lines))
    for path in sweep.work_dir.rglob("*Demo*"):
        path.unlink()
    model = FakeModel()
    go(sweep, FakeDeployment(model))
    assert not model.calls
    (run,) = load_runs([sweep.work_dir])
    return run


def test_costs_of_a_made_up_journal_by_hand(tmp_path: Path) -> None:
    run = made_up_run(tmp_path)
    assert run.provenance.costs == BY_HAND
    costs = [row.details.get("cost") for row in run.rows]
    assert costs[1] == {
        "seconds": 3.0,
        "at_once": 7.0,
        "usd": 0.004,
        "usd_source": SOURCE,
        "attempts": 2,
    }
    assert costs[2] == {"usd": 0.003, "usd_source": f"half of {SOURCE}", "batched": True}
    assert costs[3] == {"seconds": 2.0, "at_once": 1.0, "cpu_seconds": 3.5, "shared": True}


def test_scoring_predictions_again_keeps_their_costs(tmp_path: Path) -> None:
    run = made_up_run(tmp_path)
    write_score(score_file(run.path), run.path)
    assert load_runs([run.path])[0].provenance.costs == BY_HAND


def test_journals_without_times_leave_seconds_empty(tmp_path: Path) -> None:
    run = made_up_run(tmp_path, time=None)
    costs = run.provenance.costs
    assert (costs.seconds_known, costs.seconds_median, costs.tokens_in) == (0, None, 1200.0)
    assert "call_time" not in run.path.read_text()


def test_merged_predictions_keep_their_times(tmp_path: Path) -> None:
    run = made_up_run(tmp_path)
    sweep = demo_sweep(tmp_path, FOUR_CALLS)
    sweep.journal.unlink()
    go(sweep, FakeDeployment(FakeModel()))
    assert load_runs([run.path])[0].provenance.costs == BY_HAND


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ('{"seconds": "long"}', "seconds: 'long' should be a finite number"),
        ('{"seconds"', "is not JSON"),
    ],
)
def test_damaged_times_are_refused_with_their_place(column: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([{"index": 0, "prediction": "[]", "call_time": column}]))
    with pytest.raises(PredictionError, match=r"p\.json, row 1, column call_time: ") as refused:
        read_predictions(path)
    assert why in str(refused.value)


# --- what is measured -----------------------------------------------------------------------------


def test_only_the_answered_attempt_of_a_call_is_timed() -> None:
    late = error(503, "not now")
    slow = Answer(late.body, late.status, late.headers, delay=0.3)
    with ChatServer(in_turn(slow, completion("[5]"))) as server:
        answer = ask_call(service(server.url))
    assert answer.error is None
    assert answer.time.seconds is not None
    assert 0 < answer.time.seconds <= answer.seconds - 0.3


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_lone_call_has_all_gpus_of_its_server(gpus: int) -> None:
    with ChatServer(in_turn(completion("[5]"))) as server:
        model = chat_model("Qwen3-VL")
        answer = ask_call(HttpService(model, [Endpoint(server.url, KEY, gpus=gpus)]))
    seconds = answer.time.seconds
    assert seconds is not None
    if gpus:
        assert answer.time.gpu_seconds == pytest.approx(gpus * seconds, abs=1e-5)
    else:
        assert answer.time == CallTime(seconds, at_once=1.0)


def test_calls_in_flight_share_a_server() -> None:
    """From 0 to 7 s and from 2 to 6 s: together 7 s. The failed call counts, and then nothing."""
    clock = iter([0.0, 2.0, 6.0, 7.0, 50.0, 51.0])
    shared = SharedTime(lambda: next(clock))
    with shared.call() as first, suppress(OSError), shared.call() as second:
        raise OSError
    with shared.call() as third:
        pass
    taken = [each.call_time(1) for each in (first, second, third)]
    assert [each.seconds for each in taken] == [7.0, 4.0, 1.0]
    assert [each.gpu_seconds for each in taken] == [5.0, 2.0, 1.0]
    assert [each.at_once for each in taken] == [1.4, 2.0, 1.0]


def test_failed_calls_have_no_time() -> None:
    with ChatServer(in_turn(error(400, "no"))) as server:
        assert ask_call(service(server.url)).time == CallTime()


def torch_with(
    allocated: Sequence[int], *, initialized: bool = True, mps: int | None = None
) -> Mock:
    """Return a torch that holds so many bytes on each GPU, and on Apple's if there is one."""
    torch = Mock()
    torch.cuda.is_available.return_value = bool(allocated)
    torch.cuda.is_initialized.return_value = initialized
    torch.cuda.device_count.return_value = len(allocated)
    torch.cuda.memory_allocated.side_effect = list(allocated)
    torch.backends.mps.is_available.return_value = mps is not None
    torch.mps.current_allocated_memory.return_value = mps
    return torch


@pytest.mark.parametrize(
    ("torch", "runs_here", "expected"),
    [
        (None, True, 0),
        (None, False, None),
        (torch_with([]), True, 0),
        (torch_with([5, 0, 7]), True, 2),
        (torch_with([5]), False, None),
        (torch_with([0, 0]), True, None),
        (torch_with([5], initialized=False), True, None),
        (torch_with([], mps=5), True, 1),
        (torch_with([], mps=0), True, None),
    ],
    ids=[
        "no torch",
        "a service",
        "no GPU",
        "two of three GPUs",
        "a service, with a GPU here",
        "idle GPUs",
        "not begun",
        "Apple's GPU",
        "Apple's, idle",
    ],
)
def test_where_a_model_runs_says_what_is_measured(
    torch: Mock | None, runs_here: bool, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``expected``: GPUs at work; 0: the processor; None: neither is known."""
    clock = Mock()
    clock.perf_counter.side_effect = [10.0, 13.0]
    clock.process_time.side_effect = [1.0, 7.0]
    monkeypatch.setattr("vlmeval_findit.models.model_client.time", clock)
    monkeypatch.setitem(sys.modules, "torch", torch)
    taken = Stopwatch(runs_here=runs_here).call_time(2)
    assert taken.seconds == 1.5
    assert taken.gpu_seconds == (1.5 * expected if expected else None)
    assert taken.cpu_seconds == (3.0 if expected == 0 else None)


def test_no_time_at_all_is_known() -> None:
    time = CallTime(seconds=0.0, cpu_seconds=0.0)
    assert parse_call_time(json.dumps(time.as_values())) == time


def test_messages_answered_together_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Together(TimedClient):
        def answers_together(self) -> bool:
            return True

        def replies(self, batch: Batch) -> list[CallResult]:
            return [CallResult("[1]")] * len(batch.messages)

    clock = Mock()
    clock.perf_counter.side_effect = [10.0, 14.0]
    clock.process_time.side_effect = [1.0, 7.0]
    monkeypatch.setattr("vlmeval_findit.models.model_client.time", clock)
    monkeypatch.setitem(sys.modules, "torch", None)
    batch = Batch(((), ()), (Mock(), Mock()))
    answers = Together().ask(batch)
    assert [answer.time.seconds for answer in answers] == [2.0, 2.0]
    assert [answer.time.cpu_seconds for answer in answers] == [3.0, 3.0]
    assert [answer.seconds for answer in answers] == [2.0, 2.0]
