"""All that is asked about a picture goes to one server, one call first: on servers that count."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from caching_server import IMAGE_TOKENS, CachingServer, beginning
from chat_server import Answer, Asked, ChatServer, completion, error
from engine_fakes import FakeHost, FakeModel, Message, Silent, answered_keys, demo_sweep, files, go
from hypothesis import given
from hypothesis import strategies as st
from test_pool import NAMES, Clock

from vlmeval_findit.core.routing import Place, home, ranked, spill
from vlmeval_findit.engine.backend import image_name
from vlmeval_findit.engine.config import Inference
from vlmeval_findit.engine.executors import ThreadsExecutor
from vlmeval_findit.engine.line import Line, Siblings, Taken
from vlmeval_findit.engine.model_asker import ModelAsker
from vlmeval_findit.engine.plan import WorkItem
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.http.asker import ChatAsker, Terms
from vlmeval_findit.models.http.chat import openrouter_model, server_model
from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.pool import Pool

# --- the rule -------------------------------------------------------------------------------------

names = st.lists(st.text("abc:/.", min_size=1), min_size=1, max_size=5, unique=True)


@given(st.text(min_size=1), names, st.randoms(use_true_random=False))
def test_runners_agree_whatever_order_they_list_servers_in(
    picture: str, listed: list[str], chance: Any
) -> None:
    other = list(listed)
    chance.shuffle(other)
    assert ranked(picture, tuple(listed)) == ranked(picture, tuple(other))
    first, *rest = ranked(picture, tuple(listed))
    if rest:
        gone = rest[-1]
        left = tuple(name for name in listed if name != gone)
        assert ranked(picture, left)[0] == first, "a server that goes takes only its own along"


def test_pictures_are_shared_out_evenly() -> None:
    firsts = Counter(ranked(str(number), NAMES)[0] for number in range(3000))
    assert all(900 < firsts[name] < 1100 for name in NAMES)


def test_who_helps_out() -> None:
    places = [Place("a", 8), Place("b", 8)]
    first, second = ranked("p", ("a", "b"))
    assert home("p", places, {first: 7, second: 0}) == Place(first, 8)
    assert home("p", places, {first: 8}) is None
    assert spill("p", places, {first: 8, second: 5}) is None, "half as full and one: wait"
    assert spill("p", places, {first: 8, second: 4}) == Place(second, 8)
    down = [Place(first, 8, up=False), Place(second, 8)]
    assert home("p", down, {}) == Place(second, 8)
    assert home("p", [replace_up(place) for place in places], {}) == Place(first, 8, False)
    assert home("", places, {"a": 3, "b": 2}) == Place("b", 8), "without a picture the freer one"


def replace_up(place: Place) -> Place:
    return place._replace(up=False)


# --- a pool of servers ----------------------------------------------------------------------------


def held(pool: Pool, picture: str, bad: str = "", status: int = 503) -> str:
    name = ""
    try:
        with pool.server((), picture) as server:
            name = server.name
            if name == bad:
                raise CallError("no", status)
    except CallError:
        pass
    return name


def test_a_picture_stays_with_its_server_until_that_rests() -> None:
    clock = Clock()
    pool = Pool([Endpoint(name) for name in NAMES], clock)
    first, second, _ = ranked("p", NAMES)
    assert {held(pool, "p") for _ in range(10)} == {first}
    assert [held(pool, "p", bad=first) for _ in range(3)] == [first] * 3
    assert {held(pool, "p") for _ in range(10)} == {second}, "it rests"
    clock.now += 15.0
    assert {held(pool, "p") for _ in range(10)} == {first}, "and is back"


def test_a_call_waits_for_room_or_helps_an_idle_server_or_ends_with_the_run() -> None:
    stopping = threading.Event()
    pool = Pool([Endpoint(name) for name in NAMES[:2]], stopping=stopping.is_set)
    pool.expect(4)
    first, second = ranked("p", NAMES[:2])
    with ExitStack() as stack:
        took = [stack.enter_context(pool.server((), "p")).name for _ in range(4)]
        assert took == [first, first, second, second], "two at a time to each"
        threading.Timer(0.05, stopping.set).start()
        with pytest.raises(CallError, match="the run is to stop"), pool.server((), "p"):
            pass
    with pool.server((), "p", second) as server:
        assert server.name == second, "who orders calls knows better"
    assert pool.took == {first: 2, second: 2}


def test_too_much_at_once_is_no_failure_and_alone_it_is_one() -> None:
    clock = Clock()
    pool = Pool([Endpoint(name) for name in NAMES[:2]], clock)
    pool.expect(16)
    first = ranked("p", NAMES[:2])[0]
    begun = [pool.server((), "p") for _ in range(8)]
    assert {one.__enter__().name for one in begun} == {first}
    clock.now += 1.0
    busy = CallError("slow down", 429)
    for one in begun[:5]:
        with suppress(CallError):
            one.__exit__(type(busy), busy, None)
    (place,) = (place for place in pool.places() if place.name == first)
    assert (place.limit, place.up) == (4, True)
    for one in begun[5:]:
        one.__exit__(None, None, None)
    for _ in range(3):
        assert held(pool, "p", bad=first, status=429) == first
        clock.now += 1.0
    (place,) = (place for place in pool.places() if place.name == first)
    assert not place.up


# --- the order of calls ---------------------------------------------------------------------------


class Named:
    """As much of a call as a line looks at."""

    def __init__(self, picture: str, number: int) -> None:
        self.asked = self
        self.image_sha256 = (picture,) if picture else ()
        self.number = number


def work_items(pictures: Sequence[str], formats: int) -> Iterator[WorkItem]:
    return (
        WorkItem((Named(picture, number),), True)  # type: ignore[arg-type]
        for picture in pictures
        for number in range(formats)
    )


def line_of(
    places: Sequence[Place],
    pictures: int = 40,
    formats: int = 19,
    siblings: Siblings = Siblings.AFTER_THE_FIRST,
) -> Line:
    made = Line(work_items([f"p{n}" for n in range(pictures)], formats), lambda: places, siblings)
    made.fill(32)
    return made


def test_the_first_of_a_picture_is_asked_alone_and_others_are_not_held_up() -> None:
    line = line_of([Place("a", 8)])
    begun = [line.take(), line.take(), line.take()]
    assert [one and image_name(one.unit) for one in begun] == ["p0", "p1", None]
    first, second, _ = begun
    assert first is not None
    assert second is not None
    line.done(second)  # whatever came of it: a failure, too
    after = [line.take() for _ in range(8)]
    assert [one and image_name(one.unit) for one in after] == ["p1"] * 7 + [None]
    line.done(first)
    again = line.take()
    assert again is not None
    assert image_name(again.unit) == "p0"


def test_beside_each_other_where_nobody_keeps_anything() -> None:
    line = line_of([Place("0", 8)], siblings=Siblings.AT_ONCE)
    took = [line.take() for _ in range(9)]
    assert [one and image_name(one.unit) for one in took] == ["p0"] * 8 + [None]


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.integers(0, 12),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_every_call_is_asked_once_within_the_limits(
    limits: list[int], pictures: int, formats: int, chance: Any
) -> None:
    places = [Place(f"s{number}", limit) for number, limit in enumerate(limits)]
    line = line_of(places, pictures, formats)
    running: list[Taken] = []
    seen: Counter[tuple[str, int]] = Counter()
    while True:
        line.fill(4)
        while (taken := line.take()) is not None:
            running.append(taken)
            (call,) = taken.unit.calls
            seen[image_name(taken.unit), call.number] += 1  # type: ignore[attr-defined]
            busy = Counter(one.place for one in running)
            assert all(busy[place.name] <= place.limit for place in places)
        if not running:
            break
        line.done(running.pop(chance.randrange(len(running))))
    assert line.is_empty
    assert len(seen) == pictures * formats
    assert set(seen.values()) <= {1}


def test_without_pictures_calls_go_wherever_there_is_room() -> None:
    line = Line(work_items([""] * 20, 1), lambda: [Place("a", 2), Place("b", 2)])
    line.fill(8)
    took = [line.take() for _ in range(5)]
    assert Counter(one and one.place for one in took) == {"a": 2, "b": 2, None: 1}


# --- searches over servers ------------------------------------------------------------------------

GRID = "models: Qwen3-VL\ndatasets: Demo\nrepresentations: all\noutputs: json\nlimit: 12"


def run(folder: Path, servers: Sequence[CachingServer], threads: int = 4) -> Silent:
    watcher = Silent()
    host = ServersHost([server.url for server in servers], Inference(threads=threads))
    go(demo_sweep(folder, GRID), host, watcher=watcher)
    assert not any(answer.error for answer in watcher.answers)
    return watcher


def pictures_at(server: CachingServer) -> set[str]:
    return {start for start, _ in server.answered}


def test_each_picture_is_read_once(tmp_path: Path) -> None:
    with CachingServer() as a, CachingServer() as b:
        watcher = run(tmp_path, (a, b))
        pictures = pictures_at(a) | pictures_at(b)
        assert len(pictures) <= a.read + b.read <= len(pictures) + 2, "two at the end at most"
        tokens: Counter[str] = Counter()
        for answer in watcher.answers:
            tokens.update(answer.record["tokens"])
    assert tokens["cached"] == IMAGE_TOKENS * (a.cached + b.cached)
    assert tokens["cached"] > 0.8 * tokens["prompt"] * 0.8
    assert set(watcher.at_once) == {a.url, b.url}
    assert max(watcher.at_once.values()) <= 4


def test_a_server_dies_in_the_middle(tmp_path: Path) -> None:
    with CachingServer() as alone:
        run(tmp_path / "alone", (alone,))
    with CachingServer(dies_at=20) as dying, CachingServer() as other:
        run(tmp_path, (dying, other))
        assert len(dying.answered) <= 20
        assert len(other.answered) > len(dying.answered)
        once = len(pictures_at(dying) | pictures_at(other))
        assert dying.read + other.read <= 2 * once, "what the dead one had is read once more"
    mine, theirs = files(tmp_path / "out"), files(tmp_path / "alone" / "out")
    assert set(mine) == set(theirs)


def test_a_server_that_takes_three_at_a_time_is_asked_so(tmp_path: Path) -> None:
    with CachingServer(takes=3, writes=0.05) as small, CachingServer(writes=0.05) as large:
        watcher = run(tmp_path, (small, large), threads=8)
        assert small.most == 3
        assert watcher.at_once[small.url] < 8 <= watcher.at_once[large.url] + 1
        assert small.refused < 0.2 * len(watcher.answers)
        assert len(small.answered) > 10, "and is not left out for it"


def test_two_sweeps_at_once_agree_without_a_word(tmp_path: Path) -> None:
    with CachingServer(keeps=16) as a, CachingServer(keeps=16) as b:
        folders = [tmp_path / "one", tmp_path / "two"]
        threads = [
            threading.Thread(target=run, args=(folder, servers))
            for folder, servers in zip(folders, ((a, b), (b, a)), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((folder / "calls.jsonl").is_file() for folder in folders)
        pictures = pictures_at(a) | pictures_at(b)
        # Both may be the first to show a picture, and a call that waits too long goes elsewhere;
        # without a rule that both keep, it would be four times.
        assert a.read + b.read <= 3 * len(pictures)
        assert len(a.answered) + len(b.answered) == 2 * len(
            answered_keys(folders[0] / "calls.jsonl")
        )


# --- replicas alike -------------------------------------------------------------------------------


class Noting(FakeModel):
    """Writes down which pictures it was asked about, one file a replica."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._seen: list[str] = []
        self._path = folder / str(id(self))

    def generate(self, message: Message, dataset: str) -> Any:
        self._seen.append(message[0]["value"])
        self._path.write_text("\n".join(self._seen))
        time.sleep(0.03)  # the second replica may take longer to start
        return super().generate(message, dataset)


@pytest.mark.parametrize("kind", ["threads", "ray"])
def test_replicas_have_their_own_pictures(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "noted"
    noted.mkdir()
    if kind == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")
        from vlmeval_findit.engine.ray_backend import RayBackend

        here = Path(__file__).parent
        monkeypatch.setenv("PYTHONPATH", f"{here.parent}:{here}")
        how = Inference(replicas=2, cpus=0.5)
        executor: Any = RayBackend(lambda: ModelAsker(Noting(noted)), how)
    else:
        executor = ThreadsExecutor(lambda: [ModelAsker(Noting(noted)) for _ in range(2)], threads=1)
    go(demo_sweep(tmp_path, GRID), FakeHost(None, lambda _: executor))
    seen = [path.read_text().splitlines() for path in noted.iterdir()]
    assert len(seen) == 2
    shared = set(seen[0]) & set(seen[1])
    assert len(shared) <= 2, "help at the end"
    for one in seen:
        changes = sum(before != after for before, after in pairwise(one))
        assert changes <= 2 * len(set(one)), "variants of a picture follow each other"


# --- providers ------------------------------------------------------------------------------------


def test_what_a_provider_should_keep_is_marked_at_the_last_picture(tmp_path: Path) -> None:
    """Where others are asked about it too; OpenAI and Google find it out themselves."""
    asked: list[Asked] = []

    def script(one: Asked, number: int) -> Answer:
        asked.append(one)
        usage = {
            "prompt_tokens": 3000,
            "completion_tokens": 9,
            "cost": 0.01,
            "prompt_tokens_details": {"cached_tokens": 2000 * (number > 0)},
            "cache_creation_input_tokens": 2000 * (number == 0),
        }
        return completion("[]", usage=usage, cache_discount=-0.0015 if number == 0 else 0.0054)

    def sweep(name: str, rows: int, outputs: str) -> list[Any]:
        asked.clear()
        text = f"models: {name}\ndatasets: Demo_insdet\nrepresentations: xyxy\noutputs: {outputs}"
        asker = ChatAsker(openrouter_model(name), [Endpoint(server.url)], Terms())
        host = FakeHost(None, lambda _: ThreadsExecutor(lambda: [asker], threads=4))
        folder = tmp_path / f"{name}-{rows}-{outputs}"
        go(demo_sweep(folder, text, limit=rows), host)
        lines = (folder / "calls.jsonl").read_text().splitlines()
        return [json.loads(json.loads(line)["extra_records"])["findit"] for line in lines]

    def marks() -> list[list[bool]]:
        contents = [one.body["messages"][0]["content"] for one in asked]
        return [["cache_control" in part for part in content] for content in contents]

    with ChatServer(script) as server:
        first, second = sweep("Claude-Opus-5.5", 1, "[text, json]")
        for one, content in zip(marks(), asked, strict=True):
            _, pictures, _ = beginning(content.body)
            assert pictures > 1, "support shots and a scene"
            assert one.index(True) == len(one) - 2, "the last picture, before the words"
            assert sum(one) == 1
        assert first["tokens"] == {
            "prompt": 3000, "cached": 0, "cache_write": 2000, "completion": 9
        }  # fmt: skip
        assert second["tokens"]["cached"] == 2000
        assert (first["call"]["cache_discount"], second["call"]["cache_discount"]) == (
            -0.0015,
            0.0054,
        )
        sweep("Claude-Opus-5.5", 1, "json")
        assert not any(map(any, marks())), "to write what nobody reads costs more"
        sweep("GPT-5.4", 1, "[text, json]")
        assert not any(map(any, marks()))


def test_a_first_call_that_fails_does_not_hold_up_its_siblings(tmp_path: Path) -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(400, "no") if number == 0 else completion("[]")

    with ChatServer(script) as server:
        asker = ChatAsker(server_model("Qwen3-VL"), [Endpoint(server.url)], Terms())
        host = FakeHost(None, lambda _: ThreadsExecutor(lambda: [asker], threads=4))
        watcher = Silent()
        go(demo_sweep(tmp_path, GRID, limit=1), host, watcher=watcher)
        assert [bool(answer.error) for answer in watcher.answers].count(True) == 1
        assert len(server.asked) == len(watcher.answers) > 5


def test_everybody_waits_as_long_as_the_only_server_asks(tmp_path: Path) -> None:
    """Calls that begin meanwhile do not ask once more."""
    slept: list[float] = []
    with ChatServer(
        lambda asked, number: error(429, "slow", Retry_After="30") if not number else completion()
    ) as server:
        asker = ChatAsker(
            server_model("Qwen3-VL"), [Endpoint(server.url)], Terms(attempts=1), sleep=slept.append
        )
        host = FakeHost(None, lambda _: ThreadsExecutor(lambda: [asker], threads=1))
        sweep = replace(demo_sweep(tmp_path, GRID), limit=1)
        go(sweep, host)
        assert slept
        assert all(25.0 < seconds <= 30.5 for seconds in slept)
