"""Scoring of captions against the images of their pairs by a table's dual encoder.

Every caption is embedded twice: padded as the encoder was trained, which decides, and without
padding, as for the published metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import missing_extra, suggestion
from ...models import ENCODERS, DualEncoder, EncoderError, Padding
from ...protocol import ENCODER_VARIABLE, Scorer, Settings, SettingsError, say_once
from .caption_reading import Caption, Captions
from .image_pairs import PAIR_SETS, ImagePair, PairSide, PerSide

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]


class ZeroLengthError(ValueError):
    """A feature of length zero; ``row`` is its index, ``what`` is what it belongs to."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"the embedding of {what} has length zero: it has no direction")
        self.row = row
        self.what = what


def similarities(captions: ArrayLike, images: ArrayLike, others: ArrayLike) -> Floats:
    """Compute cosines, n x 2, of captions with their image and the other image (features n x d).

    Non-finite features give NaN; a feature of length zero raises ZeroLengthError.

    >>> similarities([[0, 2]], [[0, 1]], [[3, 0]])
    array([[1., 0.]], dtype=float32)
    """
    texts = _directions(captions, "a caption")
    cosines = [
        np.einsum("nd,nd->n", texts, _directions(images, "its image")),
        np.einsum("nd,nd->n", texts, _directions(others, "the other image")),
    ]
    result: Floats = np.stack(cosines, axis=-1)
    return result


def _directions(values: ArrayLike, what: str) -> Floats:
    vectors: NDArray[Any] = np.asarray(values, dtype=np.float32)
    # In 64 bits, so that a very short feature does not have length zero.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    for row in np.flatnonzero(lengths == 0):
        raise ZeroLengthError(int(row), what)
    with np.errstate(invalid="ignore"):
        result: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return result


def is_right(cosines: Floats) -> Marks:
    """Tell which captions are right, of cosines n x 2 (with their image, with the other).

    A tie is right.  NaN counts as the largest number, so NaN for the caption's image is right too.

    >>> is_right(np.float32([[0.3, 0.3], [np.nan, 1], [1, np.nan]]))
    array([ True,  True, False])
    """
    image, other = cosines.T
    result: Marks = np.isnan(image) | (image >= other)
    return result


class ImageSimilarity(NamedTuple):
    """A caption's similarity to its image and to the other."""

    image: float
    other: float
    right: bool
    tie: bool


@dataclass(frozen=True, slots=True)
class ScoredCaption:
    """A caption and its similarities, both None if the caption is missing."""

    parsed: Caption
    default: ImageSimilarity | None = None
    published: ImageSimilarity | None = None
    tokens: int = 0  # of the caption
    cut: bool = False  # the encoder takes fewer tokens

    @property
    def right(self) -> bool:
        return self.default is not None and self.default.right

    @property
    def right_as_published(self) -> bool:
        return self.published is not None and self.published.right


ScoredCaptions = PerSide[ScoredCaption]  # a pair


def judge(
    pairs: Sequence[ImagePair], captions: Sequence[Captions], folder: Path, encoder: DualEncoder
) -> list[ScoredCaptions]:
    """Judge for each pair, in order, whether each caption is nearer to its image.

    Images are relative to ``folder``.  Without a caption the encoder is not called.  A feature of
    length zero raises a ZeroLengthError with uid and side.
    """
    scored = [PerSide(ScoredCaption(both.left), ScoredCaption(both.right)) for both in captions]
    places: list[tuple[int, PairSide]] = []  # of the captions that are there
    texts: list[str] = []
    for at, both in enumerate(captions):
        for side in PairSide:
            caption = both.value(side).caption
            if caption is not None:
                places.append((at, side))
                texts.append(caption)
    if not places:
        return scored
    names = list(dict.fromkeys(chain.from_iterable(pairs[at].images for at, _ in places)))
    features = dict(zip(names, encoder.images([folder / name for name in names]), strict=True))
    shown = [(PerSide(*pairs[at].images), side) for at, side in places]
    images = np.array([features[pair.value(side)] for pair, side in shown])
    others = np.array([features[pair.value(side.other)] for pair, side in shown])
    trained = encoder.texts(texts, Padding.AS_TRAINED)
    unpadded = encoder.texts(texts, Padding.UNPADDED)
    try:
        default = _nearness(similarities(trained.vectors, images, others))
        published = _nearness(similarities(unpadded.vectors, images, others))
    except ZeroLengthError as error:
        at, side = places[error.row]
        what = f"{error.what} (uid {pairs[at].uid}, {side.value})"
        raise ZeroLengthError(error.row, what) from None
    results = zip(default, published, trained.tokens, trained.cut, strict=True)
    for (at, side), result in zip(places, results, strict=True):
        item = ScoredCaption(captions[at].value(side), *result)
        scored[at] = scored[at]._replace(**{side.value: item})
    return scored


def _nearness(cosines: Floats) -> list[ImageSimilarity]:
    rows = zip(cosines.tolist(), is_right(cosines).tolist(), strict=True)
    return [ImageSimilarity(image, other, right, image == other) for (image, other), right in rows]


# Facts that decide scores: device and package versions change last digits at most.
_DECIDING = ("architecture", "revision", "dtype", "image_processor")


def encoder_name(table: str, settings: Settings) -> tuple[str, str]:
    """Name a table's encoder and who chose it (the user, else the table), or raise SettingsError.

    >>> encoder_name("SelfRetrieval_Scenes_mini", Settings())
    ('FindIt-Nano-SigLIP', 'default of SelfRetrieval_Scenes_mini')
    """
    if settings.encoder is None:
        return PAIR_SETS[table], f"default of {table}"
    name, source = settings.encoder
    if name not in ENCODERS and "/" not in name and not Path(name).is_dir():
        raise SettingsError(
            f"encoder {name!r} ({source}): neither a folder nor an OWNER/NAME of Hugging Face"
            f"{suggestion(name, ENCODERS)}"
        )
    if source == ENCODER_VARIABLE and name != PAIR_SETS[table]:
        say_once(
            f"{table}: captions are scored by {name} ({source}), in place of {PAIR_SETS[table]}"
        )
    return name, source


@lru_cache(maxsize=1)
def load_encoder(name: str) -> DualEncoder:
    """Load an encoder by name, or raise EncoderError; the last encoder is cached."""
    try:
        # Imported here because it needs torch.
        from ...models import named_encoder

        return named_encoder(name)
    except ImportError as error:
        raise EncoderError(f"encoder {name}: {missing_extra(error) or error}") from error
    except (ValueError, OSError) as error:
        raise EncoderError(f"encoder {name}: {error}") from error


def scorer_of(encoder: DualEncoder, source: str) -> Scorer:
    """Describe an encoder that ``source`` chose."""
    facts = dict(encoder.facts)
    trained = Padding.AS_TRAINED.value
    name = facts.pop("identifier")
    padding = facts.pop(trained, trained)
    settings = {fact: facts.pop(fact) for fact in _DECIDING if fact in facts}
    return Scorer(name, {**settings, "padding": padding}, source, dict(sorted(facts.items())))
