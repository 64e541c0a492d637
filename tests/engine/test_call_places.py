"""A journal finds its calls, however many there are, and whoever asks meanwhile."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.engine import Journal
from vlmeval_findit.engine.journal import call_places

PLACES = st.builds(
    call_places.CallPlace,
    start=st.integers(0, 2**60),
    length=st.integers(1, 2**32 - 1),
    state=st.integers(0, 2),
)


def key(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


@given(
    added=st.lists(st.tuples(st.integers(0, 9), PLACES)),
    most=st.integers(0, 5),
)
def test_the_last_place_of_each_call_is_found(
    added: list[tuple[int, call_places.CallPlace]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_places, "MOST_IN_DICT", most)
        places = call_places.CallPlaces()
        expected: dict[int, call_places.CallPlace] = {}
        for number, place in added:
            places.set(key(number), place)
            expected[number] = place
            for asked in range(10):
                assert places.get(key(asked)) == expected.get(asked)
        places.close()


def test_calls_are_found_while_others_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_places, "MOST_IN_DICT", 7)
    places = call_places.CallPlaces()
    place = call_places.CallPlace(1, 2, 1)
    places.set(key(0), place)
    ended = threading.Event()
    missed: list[int] = []

    def ask() -> None:
        while not ended.is_set():
            if places.get(key(0)) != place:
                missed.append(0)

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(1, 500):
        places.set(key(number), place)
    ended.set()
    asking.join()
    assert missed == []


def test_a_journal_of_more_calls_than_its_dict_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_places, "MOST_IN_DICT", 10)
    path = tmp_path / "calls.jsonl"
    failed = {key(number): "refused" for number in range(0, 45, 3)}
    for turn in range(2):  # written, then read
        with Journal(path) as journal:
            for number in range(45):
                if turn == 0:
                    journal.append([{"key": key(number), "error": failed.get(key(number))}])
                found = journal.get(key(number))
                assert found is not None
                assert found["error"] == failed.get(key(number))
            # What failed is answered later.
            for name in failed:
                if turn == 1:
                    journal.append([{"key": name, "error": None, "answer": "[]"}])
                assert (name in journal) == (turn == 1)
            assert journal.get(key(45)) is None
