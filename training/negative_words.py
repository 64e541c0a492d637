"""Labels and expressions that FindIt-Nano does not know: everyday words, and words that are none.

No word of the photographs' questions is here: they are held out (tests/training/test_negatives.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from training.questions import RELATIONS
from vlmeval_findit.data.rendered.drawing import COLOURS, TEXTURES, Rng

NOUNS = tuple(Path(__file__).with_name("negative_nouns.txt").read_text().split())

_ADJECTIVES = """
wooden metal plastic golden silver brown black white grey pink dark bright old young broken
empty full open closed dirty clean furry leather woollen folded parked sleeping running sitting
standing smiling barefoot tiny huge tallest shortest nearest farthest middle front blurry wet
shiny electric striped dotted red green blue purple orange small large
"""
ADJECTIVES = tuple(_ADJECTIVES.split())

_GERUNDS = """
wearing holding carrying riding pushing pulling eating watching touching facing chasing feeding
cleaning crossing climbing
"""
GERUNDS = tuple(_GERUNDS.split())

RELATED_BY = (
    *RELATIONS,
    *GERUNDS,
    "behind",
    "under",
    "near",
    "beside",
    "against",
    "inside",
    "with",
    "without",
    "far from",
    "in front of",
)
"""What may stand between two things of an expression."""

_MOST_WORDS = 12

_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


def made_up(rng: Rng) -> str:
    """A word of two to four syllables that stands in no dictionary, or hardly ever."""
    said = ""
    for _ in range(2 + rng.randint(3)):
        said += _any(rng, _CONSONANTS) + _any(rng, _VOWELS)
        said += _any(rng, _CONSONANTS) if rng.randint(3) == 0 else ""
    return said


def noun(rng: Rng) -> str:
    """A noun, most often a real one, sometimes of several things."""
    said = made_up(rng) if rng.randint(4) == 0 else _any(rng, NOUNS)
    several = "es" if said.endswith(("s", "x", "sh", "ch")) else "s"
    return said + several if rng.randint(6) == 0 else said


def label(rng: Rng) -> str:
    """What a detection asks for: ``bus``, ``garden-gate``, ``wooden Chair``; without commas."""
    said = noun(rng)
    if rng.randint(4) == 0:
        said = f"{_any(rng, NOUNS)}{'- '[rng.randint(2)]}{said}"
    if rng.randint(6) == 0:
        said = f"{_any(rng, ADJECTIVES)} {said}"
    return _in_case(rng, said)


def labels(rng: Rng, count: int) -> list[str]:
    """So many labels, each once."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[label(rng)] = None
    return list(found)


def expression(rng: Rng) -> str:
    """Two to twelve words that mean something of an unknown kind.

    ``the man wearing the blue shirt left of the car``.
    """
    said = f"the {_with_adjectives(rng)}" if rng.randint(5) else f"{_with_adjectives(rng)} there"
    for _ in range(rng.randint(3)):
        more = f"{said} {_any(rng, RELATED_BY)} the {_with_adjectives(rng)}"
        if len(more.split()) <= _MOST_WORDS:
            said = more
    return _in_case(rng, said)


def of_a_shape(rng: Rng, shape: str) -> str:
    """An expression of words that the model knows: ``the striped green ring``."""
    looks = [_any(rng, tuple(table)) for table in (TEXTURES, COLOURS) if rng.randint(2)]
    return " ".join(["the", *looks, shape])


def _with_adjectives(rng: Rng) -> str:
    count = (0, 0, 1, 1, 1, 2)[rng.randint(6)]
    return " ".join([*(_any(rng, ADJECTIVES) for _ in range(count)), noun(rng)])


def _in_case(rng: Rng, said: str) -> str:
    """Most often as it is."""
    kind = rng.randint(16)
    if kind == 0:
        return said.upper()
    if kind == 1:
        return said.title()
    return said[0].upper() + said[1:] if kind in (2, 3) else said


def _any(rng: Rng, names: Sequence[str]) -> str:
    return names[rng.randint(len(names))]
