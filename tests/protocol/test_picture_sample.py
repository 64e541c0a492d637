"""Samples of whole pictures: the same on every machine, and each part of a larger one."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.protocol import PictureSample, picture_places


@dataclass(frozen=True)
class Row:
    images: tuple[str, ...]


def queries(counts: list[int]) -> Any:
    """Return queries of pictures 0.jpg, 1.jpg …, so many of each, mixed."""
    names = [f"{at}.jpg" for at, count in enumerate(counts) for _ in range(count)]
    names.sort(key=lambda name: sha256(name.encode()).hexdigest())
    return {row: Row((name,)) for row, name in enumerate(names)}


def test_the_last_picture_is_whole() -> None:
    table: Any = {row: Row((name,)) for row, name in enumerate(["c", "b", "c", "b", "a"])}
    order = sorted("abc", key=lambda name: sha256(f"0\n{name}".encode()).hexdigest())
    assert order == ["a", "b", "c"]
    assert picture_places(table, table) == {("a",): 0, ("b",): 1, ("c",): 2}
    everything = tuple(table)
    assert PictureSample(1).draw(table, everything) == (4,)
    assert PictureSample(2).draw(table, everything) == (1, 3, 4)
    assert PictureSample(3).draw(table, everything) == (1, 3, 4)
    assert PictureSample(4).draw(table, everything) == everything
    assert PictureSample(9).draw(table, everything) == everything
    assert PictureSample(9, pictures=2).draw(table, everything) == (1, 3, 4)
    assert PictureSample(9).draw(table, (0, 4)) == (0, 4)
    assert PictureSample(9).draw(table, ()) == ()


counts = st.lists(st.integers(1, 4), min_size=1, max_size=12)


@given(counts, st.integers(1, 40), st.integers(1, 40), st.integers(0, 3))
def test_a_smaller_sample_is_part_of_a_larger_one(
    counts: list[int], one: int, other: int, seed: int
) -> None:
    table = queries(counts)
    small, large = (
        PictureSample(number, seed).draw(table, tuple(table)) for number in sorted((one, other))
    )
    assert {*small} <= {*large}
    assert len(small) >= min(one, other, len(table))
    assert list(small) == sorted(small)
    drawn = {table[row].images for row in small}
    assert all((table[row].images in drawn) == (row in small) for row in table)


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_draws_other_pictures(seed: int) -> None:
    table = queries([2] * 40)
    first = PictureSample(20).draw(table, tuple(table))
    assert first != PictureSample(20, seed).draw(table, tuple(table))
