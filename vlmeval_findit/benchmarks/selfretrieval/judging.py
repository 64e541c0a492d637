"""Captions and pictures of pairs through the encoder: what is near to what, read both ways.

Every caption is embedded twice: padded as the encoder was trained, which decides, and without
padding, as the figures were published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...models.dual_encoder.encoder import Encoder, Padding
from .captions import Captions, Said
from .pairs import Both, Pair, Side
from .retrieval import Floats, ZeroLengthError, is_right, is_tie, similarities


class Nearness(NamedTuple):
    """How near a caption is to its own and to the other picture, and what follows from it."""

    own: float
    other: float
    right: bool
    tie: bool


@dataclass(frozen=True, slots=True)
class JudgedCaption:
    """What was said of a picture, and how near it is; both None exactly where there is no caption.

    ``tokens`` are those of the caption, ``cut`` says that they were more than the encoder takes.
    """

    said: Said
    default: Nearness | None = None
    published: Nearness | None = None
    tokens: int = 0
    cut: bool = False

    @property
    def right(self) -> bool:
        return self.default is not None and self.default.right

    @property
    def right_as_published(self) -> bool:
        return self.published is not None and self.published.right


Judged = Both[JudgedCaption]
"""A pair."""


class _Place(NamedTuple):
    """A caption that there is: of which pair and picture."""

    pair: int
    side: Side


def judge(
    pairs: Sequence[Pair], captions: Sequence[Captions], folder: Path, encoder: Encoder
) -> list[Judged]:
    """Whether every caption of pairs is nearer its own picture.

    Args:
        pairs: the pictures, relative to ``folder``.
        captions: of each pair, in their order.
        folder: where the pictures lie.
        encoder: what embeds both; it is not asked where there is no caption.

    Raises:
        ZeroLengthError: a feature has no direction; the message names uid and picture.
    """
    places = [
        _Place(at, side)
        for at, both in enumerate(captions)
        for side in Side
        if both.of(side).caption is not None
    ]
    judged = [Both(JudgedCaption(both.left), JudgedCaption(both.right)) for both in captions]
    if not places:
        return judged
    texts = [captions[place.pair].of(place.side).caption or "" for place in places]
    own, other = _pictures(pairs, places, folder, encoder)
    features = {how: encoder.texts(texts, how) for how in Padding}
    found = {
        how: _nearness(_named(pairs, places, one.vectors, own, other))
        for how, one in features.items()
    }
    default, published = found[Padding.AS_TRAINED], found[Padding.UNPADDED]
    trained = features[Padding.AS_TRAINED]
    for at, (pair, side) in enumerate(places):
        said = captions[pair].of(side)
        one = JudgedCaption(said, default[at], published[at], trained.tokens[at], trained.cut[at])
        judged[pair] = judged[pair]._replace(**{side.value: one})
    return judged


def _pictures(
    pairs: Sequence[Pair], places: Sequence[_Place], folder: Path, encoder: Encoder
) -> tuple[Floats, Floats]:
    """The features of own and other pictures of captions, every picture embedded once."""
    names = list(dict.fromkeys(name for place in places for name in pairs[place.pair].images))
    vectors = encoder.images([folder / name for name in names])
    row = {name: at for at, name in enumerate(names)}
    own, other = [], []
    for pair, side in places:
        images = Both(*pairs[pair].images)
        own.append(row[images.of(side)])
        other.append(row[images.of(side.other)])
    return vectors[own], vectors[other]


def _named(
    pairs: Sequence[Pair], places: Sequence[_Place], texts: Floats, own: Floats, other: Floats
) -> Floats:
    try:
        return similarities(texts, own, other)
    except ZeroLengthError as error:
        place = places[error.row]
        what = f"{error.what} (uid {pairs[place.pair].uid}, {place.side.value})"
        raise ZeroLengthError(error.row, what) from None


def _nearness(cosines: Floats) -> list[Nearness]:
    columns = (*cosines.T, is_right(cosines), is_tie(cosines))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Nearness(*row) for row in rows]
