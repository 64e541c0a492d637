"""Labels and expressions that FindIt-Nano does not know: everyday and invented words.

No word of the photographs' questions is here: they are held out (tests/training/test_negatives.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from training.questions import RELATIONS
from vlmeval_findit.data import COLOURS, TEXTURES, Rng

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

# Between two things of an expression
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

_MOST_WORDS = 12

_CONSONANTS = "bcdfghjklmnpqrstvwxyz"
_VOWELS = "aeiou"


def invented_word(rng: Rng) -> str:
    """Return a word of two to four syllables that is in hardly any dictionary."""
    word = ""
    for _ in range(2 + rng.randint(3)):
        word += _any(rng, _CONSONANTS) + _any(rng, _VOWELS)
        if rng.randint(3) == 0:
            word += _any(rng, _CONSONANTS)
    return word


def noun(rng: Rng) -> str:
    """Return a noun, mostly a real word, sometimes in the plural."""
    word = invented_word(rng) if rng.randint(4) == 0 else _any(rng, NOUNS)
    plural = "es" if word.endswith(("s", "x", "sh", "ch")) else "s"
    return word + plural if rng.randint(6) == 0 else word


def label(rng: Rng) -> str:
    """Return a label of a detection: ``bus``, ``garden-gate``, ``wooden Chair``; without commas."""
    words = noun(rng)
    if rng.randint(4) == 0:
        first = _any(rng, NOUNS)
        words = first + _any(rng, "- ") + words
    if rng.randint(6) == 0:
        words = f"{_any(rng, ADJECTIVES)} {words}"
    return _in_random_case(rng, words)


def labels(rng: Rng, count: int) -> list[str]:
    """Return ``count`` different labels."""
    unique: dict[str, None] = {}
    while len(unique) < count:
        unique[label(rng)] = None
    return list(unique)


def expression(rng: Rng) -> str:
    """Return two to twelve words that mean an unknown thing.

    ``the man wearing the blue shirt left of the car``.
    """
    words = f"the {_with_adjectives(rng)}" if rng.randint(5) else f"{_with_adjectives(rng)} there"
    for _ in range(rng.randint(3)):
        more = f"{words} {_any(rng, RELATED_BY)} the {_with_adjectives(rng)}"
        if len(more.split()) <= _MOST_WORDS:
            words = more
    return _in_random_case(rng, words)


def of_a_shape(rng: Rng, shape: str) -> str:
    """Return an expression of words that the model knows: ``the striped green ring``."""
    looks = [_any(rng, tuple(table)) for table in (TEXTURES, COLOURS) if rng.randint(2)]
    return " ".join(["the", *looks, shape])


def _with_adjectives(rng: Rng) -> str:
    count = (0, 0, 1, 1, 1, 2)[rng.randint(6)]
    return " ".join([*(_any(rng, ADJECTIVES) for _ in range(count)), noun(rng)])


def _in_random_case(rng: Rng, words: str) -> str:
    """Change the case of some words; most stay as they are."""
    kind = rng.randint(16)
    if kind == 0:
        return words.upper()
    if kind == 1:
        return words.title()
    return words[0].upper() + words[1:] if kind in (2, 3) else words


def _any(rng: Rng, names: Sequence[str]) -> str:
    return names[rng.randint(len(names))]
