"""Score a dual encoder: ``python -m training.siglip.evaluate [NAME] --split test``.

Images and captions go through the code that loads any dual encoder. A pair is right if each caption
is at least as near to its image as to the other.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from training.pairs import CHANGES, ScenePair, scene_pair
from training.scenes import SPLITS
from training.siglip.model import both_right
from vlmeval_findit.models import NANO_SIGLIP, Padding, Towers, checkpoint_of
from vlmeval_findit.storage import png


@dataclass(frozen=True, slots=True)
class PairScores:
    """Which pairs (n,) were right."""

    attributes: tuple[str, ...]  # In which the scenes of each pair differ
    right: Any
    shuffled: Any  # With captions of other pairs, in any order: chance, 25 %
    unpadded: Any  # With captions as :attr:`Padding.UNPADDED` lays them out

    def percents(self) -> dict[str, float]:
        """Return the percent of right pairs overall and by attribute."""
        names = [name for name in ("all", *CHANGES) if self._selected(name).any()]
        return {name: self._percent(self.right, name) for name in names}

    def rows(self) -> list[dict[str, str]]:
        """Return the rows of a card's table."""
        return [
            {
                "differ in": name,
                "pairs": str(int(self._selected(name).sum())),
                "both captions right": f"{self._percent(self.right, name):.1f}",
                "captions shuffled": f"{self._percent(self.shuffled, name):.1f}",
                "captions not padded": f"{self._percent(self.unpadded, name):.1f}",
            }
            for name in (*CHANGES, "all")
        ]

    def _selected(self, name: str) -> Any:
        return np.array([name in (attribute, "all") for attribute in self.attributes])

    def _percent(self, right: Any, name: str) -> float:
        return float(100 * right[self._selected(name)].mean())


def evaluate(name: str, split: str, pairs: int) -> PairScores:
    """Score an encoder on the first pairs of a split."""
    towers = Towers(checkpoint_of(name))
    scene_pairs = [scene_pair(seed) for seed in SPLITS[split][:pairs]]
    with TemporaryDirectory() as folder:
        images = towers.images([*_image_files(scene_pairs, Path(folder))])
    captions: list[str] = []
    for pair in scene_pairs:
        captions += (pair.left_caption, pair.right_caption)
    texts = {padding: towers.texts(captions, padding) for padding in Padding}
    padded = texts[Padding.AS_TRAINED]
    order = np.random.RandomState(0).permutation(len(padded))
    return PairScores(
        tuple(pair.attribute for pair in scene_pairs),
        _right(images, padded),
        _right(images, padded[order]),
        _right(images, texts[Padding.UNPADDED]),
    )


def _image_files(pairs: Iterable[ScenePair], folder: Path) -> Iterable[Path]:
    for i, pair in enumerate(pairs):
        for name, scene in (("left", pair.left), ("right", pair.right)):
            path = folder / f"{i}-{name}.png"
            path.write_bytes(png(scene.pixels))
            yield path


def _right(images: Any, captions: Any) -> Any:
    return both_right(torch.from_numpy(images), torch.from_numpy(captions)).numpy()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line of scores for each attribute."""
    parser = argparse.ArgumentParser(prog="python -m training.siglip.evaluate")
    parser.add_argument("name", nargs="?", default=NANO_SIGLIP, help="a name, folder, identifier")
    parser.add_argument("--split", choices=tuple(SPLITS), default="test")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    for row in evaluate(options.name, options.split, options.pairs).rows():
        print(json.dumps(row))


if __name__ == "__main__":
    main()
