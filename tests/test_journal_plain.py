"""The index of a journal's open lines: what a dictionary of tuples says, in a sixth of its room."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.engine.journal import plain as journal_plain
from vlmeval_findit.engine.journal.keys import Line, standing
from vlmeval_findit.engine.journal.lines import MAX_LINE
from vlmeval_findit.engine.journal.plain import PlainLines


def key(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


PLACES = st.tuples(
    st.integers(0, 30),  # of which call
    st.one_of(st.integers(0, 2**48 - 1), st.just(2**48 - 1)),
    st.one_of(st.integers(1, 1000), st.just(MAX_LINE)),
    st.booleans(),
    st.booleans(),
    st.integers(-3, 0),
)


@given(st.lists(PLACES, max_size=60), st.sampled_from([1, 2, 16]))
def test_an_index_says_what_a_dictionary_says(
    places: list[tuple[int, int, int, bool, bool, int]], least: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_plain, "_LEAST", least)
        index = PlainLines()
    plain: dict[str, list[Line]] = {}
    for number, *where in places:
        line = Line(*where)
        index.note(key(number), line)
        plain[key(number)] = standing([*plain.get(key(number), ()), line])
        assert [list(index.lines(key(one))) for one in range(31)] == [
            plain.get(key(one), []) for one in range(31)
        ]
    noted = [(number, Line(*where)) for number, *where in places]
    told = list(index.noted())
    assert len(told) == sum(map(len, plain.values()))
    assert {name: [line for of, line in told if of == name] for name in plain} == plain
    order = [(key(number), line) for number, line in noted]
    for one in told:
        del order[: order.index(one) + 1]  # fails where they are in another order


@pytest.mark.parametrize("name", ["", "a call", "0" * 63, "0" * 66, "g" * 64])
def test_what_is_no_key_is_not_known(name: str) -> None:
    index = PlainLines()
    index.note(name, Line(0, 10, False, False))
    assert not index.lines(name)
    assert not list(index.noted())


def test_a_call_takes_few_bytes() -> None:
    tracemalloc.start()
    try:
        index = PlainLines()
        for number in range(20_000):
            index.note(key(number), Line(number, 900, True, False))
            index.note(key(number), Line(number, 900, False, False))
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # The place of a failure that an answer took is not used again.
    assert size < 20_000 * 2 * 70
