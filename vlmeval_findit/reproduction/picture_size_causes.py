"""Causes in the sizes of pictures: shown smaller or larger, or in other tiles than published.

Models in this process record the sizes. Of a server the tokens of its prompts tell: a visual token
of Qwen's and GLM's models stands for a square of pixels, a tile of InternVL's is 256 tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit import FAMILY_PROMPTS, FindItQuery, ScoredReply, box_prompts
from ..boxes import Size, smart_resize
from ..data import told_values
from ..models import Grid, Tiles
from .cause_evidence import Evidence, capitalised
from .reproduction_records import Cause, CauseLook

Floats = NDArray[np.float64]

SIZES = "picture sizes"
FEWEST = 10  # Replies with sizes or tokens
FEWEST_TOKENS = 16  # Of a picture; some programs count those of words only


def check_picture_sizes(evidence: Evidence) -> CauseLook:
    """Look whether pictures were shown as large as published."""
    replies = [scored for scored in evidence.scored if not scored.reply.failed]
    recorded = [scored for scored in replies if _processed(scored) is not None]
    if len(recorded) >= FEWEST:
        return _check_recorded_sizes(evidence, recorded)
    counted = [scored for scored in replies if scored.reply.recorded.tokens.get("prompt")]
    if len(counted) < FEWEST:
        return CauseLook(SIZES, "neither sizes nor tokens of prompts are recorded")
    if np.median(counted_tokens(counted) - word_tokens(evidence, counted)) < FEWEST_TOKENS:
        return CauseLook(SIZES, "the server counts no tokens of pictures")
    local = evidence.row.local if evidence.row is not None else None
    if local is not None and issubclass(local.layout, Tiles):
        return _check_tiles(evidence, counted)
    if local is not None and issubclass(local.layout, Grid) and local.multiple:
        return _check_visual_tokens(evidence, counted, local.multiple)
    return CauseLook(SIZES, "how many tokens a picture has is not known of this model")


def _bounds_words(bounds: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in bounds.items())


def _advice(evidence: Evidence, otherwise: str) -> str:
    condition = evidence.condition("bounds")
    if condition is not None and condition.advice:
        return capitalised(condition.advice)
    if evidence.differs("bounds"):
        return "Type the same command without your bounds (--extra-body)"
    return otherwise


# --- sizes that were recorded ---------------------------------------------------------------------


def _processed(scored: ScoredReply) -> Size | None:
    images = scored.reply.recorded.images
    if not images or "processed" not in images[-1]:
        return None
    width, height = images[-1]["processed"]
    return width, height


def _sent(scored: ScoredReply) -> Size:
    """Return the size of a picture as it was sent, else of its file."""
    images = scored.reply.recorded.images
    width, height = scored.query.width, scored.query.height
    if images and "sent" in images[-1]:
        width, height = images[-1]["sent"]
    return width, height


def _check_recorded_sizes(evidence: Evidence, replies: Sequence[ScoredReply]) -> CauseLook:
    told = told_values(evidence.figure.conditions.bounds)
    in_force: Mapping[str, Any] = replies[0].reply.recorded.images[-1].get("bounds", {})
    here = _bounds_words(in_force) or "not recorded"
    if not told:
        return CauseLook(SIZES, f"bounds here: {here}; the figure's are not told")
    other = {name: in_force.get(name) for name in told if in_force.get(name) != told[name]}
    if not other:
        return CauseLook(SIZES, f"{here}, as published")
    cause = Cause(
        SIZES,
        f"Pictures are shown within {here}, published {_bounds_words(told)}",
        None,
        _advice(evidence, f"Ask with {_bounds_words(told)}"),
        sure=False,
    )
    return CauseLook(SIZES, "other bounds than published", cause)


# --- tokens of prompts ----------------------------------------------------------------------------

# A token has about so many characters; roles and marks of a chat have as many tokens.
_CHARACTERS = 4
_TOKENS_OF_CHAT = 20

# Areas shown, relative to those expected, that nothing but other bounds explains. The tokens of the
# words are a guess, so that both must be off: all visual tokens, and how they grow with the area.
_SMALLER, _LARGER = 0.75, 1.35
_LEAST_GROWTH, _MOST_GROWTH = 0.8, 1.25
_FEWEST_PAIRS = 30


@dataclass(frozen=True, slots=True)
class ShownTokens:
    """Visual tokens that a server counts, relative to those expected."""

    ratio: float  # Of all visual tokens; the median over replies
    growth: float | None  # By how many they grow for each that is expected; None: equal pictures

    @property
    def are_fewer(self) -> bool:
        return self.ratio < _SMALLER and not self._grow_as_expected

    @property
    def are_more(self) -> bool:
        return self.ratio > _LARGER and not self._grow_as_expected

    @property
    def _grow_as_expected(self) -> bool:
        return self.growth is not None and _LEAST_GROWTH <= self.growth <= _MOST_GROWTH


def shown_tokens(counted: Floats, words: Floats, expected: Floats) -> ShownTokens:
    """Compare the tokens of prompts with those that their pictures should have.

    Args:
        counted: (n,) tokens of whole prompts.
        words: (n,) tokens of their words, as they are guessed.
        expected: (n,) visual tokens of their pictures.

    >>> areas = np.tile([200.0, 300.0, 400.0], 20)
    >>> shown_tokens(0.5 * areas + 40, np.full(60, 40.0), areas)
    ShownTokens(ratio=0.5, growth=0.5)
    """
    ratio = float(np.median((counted - words) / expected))
    left, right = np.triu_indices(len(counted), 1)
    apart = expected[right] - expected[left]
    is_apart = np.abs(apart) >= 0.1 * np.median(expected)
    if is_apart.sum() < _FEWEST_PAIRS:
        return ShownTokens(ratio, None)
    # The words' lengths differ little and at random: the median of all slopes (Theil and Sen).
    more = (counted - words)[right] - (counted - words)[left]
    return ShownTokens(ratio, float(np.median(more[is_apart] / apart[is_apart])))


_MOST_REPLIES = 400  # Whose pairs are compared


def _check_visual_tokens(
    evidence: Evidence, replies: Sequence[ScoredReply], side: int
) -> CauseLook:
    told = told_values(evidence.figure.conditions.bounds)
    replies = replies[:_MOST_REPLIES]
    expected = _expected_tokens(told, replies, side)
    counted = counted_tokens(replies)
    words = word_tokens(evidence, replies)
    shown = shown_tokens(counted, words, expected)
    here = float(np.median(counted - words))
    usual = float(np.median(expected))
    whose = "within the published bounds" if told else "as they are sent"
    result = (
        f"about {here:.0f} visual tokens a picture, {usual:.0f} {whose} (one for {side} x {side} "
        "pixels)"
    )
    is_off = shown.are_fewer or (shown.are_more and bool(told))
    if not is_off:
        return CauseLook(SIZES, result)
    what = "smaller" if shown.are_fewer else "larger"
    cause = Cause(
        SIZES,
        f"The server shows pictures {what}: {result}",
        None,
        _advice(
            evidence,
            "Start the server without a bound on pixels (vllm: max_pixels in "
            "--mm-processor-kwargs), and ask it without a proxy that shrinks pictures",
        ),
        sure=False,
    )
    return CauseLook(SIZES, f"shown {what}", cause)


def _expected_tokens(told: Mapping[str, int], replies: Sequence[ScoredReply], side: int) -> Floats:
    """Return the visual tokens of pictures within published bounds, or as they are sent."""
    least = told.get("min_pixels", side**2)
    most = told.get("max_pixels", 10**9)
    sizes = [smart_resize(_sent(scored), least, most, side) for scored in replies]
    return np.array([width * height / side**2 for width, height in sizes])


def counted_tokens(replies: Sequence[ScoredReply]) -> Floats:
    """Return (n,) tokens of whole prompts, as a server counts them."""
    return np.array([scored.reply.recorded.tokens["prompt"] for scored in replies], float)


def word_tokens(evidence: Evidence, replies: Sequence[ScoredReply]) -> Floats:
    """Guess how many tokens of each prompt are words."""
    setup = evidence.attempt.setup
    variant = setup.variants[0]
    prompt = setup.entry.prompt
    around = float(_TOKENS_OF_CHAT)
    template = None
    if prompt is not None:
        around += len(prompt.system or "") / _CHARACTERS
        template = prompt.template
    characters = []
    for scored in replies:
        if template is not None:
            characters.append(len(template) + len(scored.query.label))
        else:
            characters.append(len(_request(setup.prompts, scored.query, variant)))
    return around + np.array(characters, float) / _CHARACTERS


def _request(prompts: str, query: FindItQuery, variant: Any) -> str:
    if prompts:
        return FAMILY_PROMPTS[prompts].words.replace("{}", query.label)
    return box_prompts.request(query, variant)


# --- tiles ----------------------------------------------------------------------------------------

_TILE_TOKENS = 256
_TILE = 448  # Pixels of its side
_TRIED = (1, 2, 4, 6, 8, 9, 12, 16, 18, 24, 32, 40)  # Most tiles


def tiles_of(size: Size, most: int) -> int:
    """Return how many tiles InternVL's processor makes of a picture, with its thumbnail.

    >>> [tiles_of((640, 480), most) for most in (1, 6, 12)]
    [1, 7, 13]
    """
    width, height = size
    grids = [
        (columns, rows) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)
    ]
    best = (1, 1)
    least = float("inf")
    for columns, rows in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        unlike = abs(width / height - columns / rows)
        # Of equal shapes a picture gets more tiles if it fills half of them.
        fills = width * height > 0.5 * _TILE**2 * columns * rows
        if unlike < least or (unlike == least and fills):
            best = (columns, rows)
            least = unlike
    tiles = best[0] * best[1]
    return tiles if tiles == 1 else tiles + 1


def _check_tiles(evidence: Evidence, replies: Sequence[ScoredReply]) -> CauseLook:
    tiles = (counted_tokens(replies) - word_tokens(evidence, replies)) / _TILE_TOKENS
    sizes = [_sent(scored) for scored in replies]

    def error(most: int) -> float:
        """Return by how many tiles prompts are off, were there so many at most."""
        expected = np.array([tiles_of(size, most) for size in sizes])
        return float(np.median(np.abs(tiles - expected)))

    published = told_values(evidence.figure.conditions.bounds).get("patches")
    here = min(_TRIED, key=error)
    result = f"about {np.median(tiles):.0f} tiles a picture, as with at most {here}"
    if published is None:
        return CauseLook(SIZES, f"{result}; the figure's are not told")
    if error(published) <= error(here) + 0.5:
        return CauseLook(SIZES, f"at most {published} tiles, as published")
    cause = Cause(
        SIZES,
        f"Pictures are cut into other tiles: {result}, published {published}",
        None,
        _advice(evidence, f"Start the server with at most {published} tiles"),
        sure=False,
    )
    return CauseLook(SIZES, "other tiles than published", cause)
