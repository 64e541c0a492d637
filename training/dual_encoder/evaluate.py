"""Figures of a dual encoder: ``python -m training.dual_encoder.evaluate [NAME] --split test``.

Pictures and captions go through the code that loads any dual encoder.  A pair is right where each
caption is at least as near to its own picture as to the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from training.card import table
from training.dual_encoder.losses import both_right
from training.pairs import CHANGES, ScenePair, scene_pair
from vlmeval_findit.core.stored_png import png
from vlmeval_findit.data.rendered.scene import SPLITS
from vlmeval_findit.models.dual_encoder.encoder import NANO_SIGLIP, Padding, checkpoint_of
from vlmeval_findit.models.dual_encoder.towers import Towers


@dataclass(frozen=True, slots=True)
class Figures:
    """Which pairs were right, by what they were asked with; ``attributes`` says what differs.

    ``shuffled`` has captions of any pictures of the set in any order, so it is chance, 25 %.
    ``unpadded`` has captions laid out as :attr:`Padding.UNPADDED` says.
    """

    attributes: tuple[str, ...]
    right: Any
    shuffled: Any
    unpadded: Any

    def rows(self) -> list[dict[str, str]]:
        """Percent by attribute and of all."""
        return [self._row(name) for name in (*CHANGES, "all")]

    def percent(self, name: str) -> float:
        """Percent of the pairs that differ in an attribute, or of all, that are right."""
        return float(100 * self.right[self._asked(name)].mean())

    def _asked(self, name: str) -> Any:
        return np.array([name in (attribute, "all") for attribute in self.attributes])

    def _row(self, name: str) -> dict[str, str]:
        asked = self._asked(name)
        ways: Mapping[str, Any] = {
            "both captions right": self.right,
            "captions shuffled": self.shuffled,
            "captions not padded": self.unpadded,
        }
        shares = {way: f"{100 * right[asked].mean():.1f}" for way, right in ways.items()}
        return {"differ in": name, "pairs": str(int(asked.sum())), **shares}


def evaluate(name: str, split: str, pairs: int) -> Figures:
    """Ask an encoder of the first pairs of a split, with their own captions."""
    towers = Towers(checkpoint_of(name))
    asked = [scene_pair(seed) for seed in SPLITS[split][:pairs]]
    with TemporaryDirectory() as folder:
        pictures = towers.images([*_written(asked, Path(folder))])
    captions = [caption for pair in asked for caption in (pair.left_caption, pair.right_caption)]
    texts = {padding: towers.texts(captions, padding) for padding in Padding}
    said = texts[Padding.AS_TRAINED]
    anyhow = np.random.RandomState(0).permutation(len(said))
    return Figures(
        tuple(pair.attribute for pair in asked),
        _right(pictures, said),
        _right(pictures, said[anyhow]),
        _right(pictures, texts[Padding.UNPADDED]),
    )


def _written(pairs: Iterable[ScenePair], folder: Path) -> Iterable[Path]:
    for i, pair in enumerate(pairs):
        for name, scene in (("left", pair.left), ("right", pair.right)):
            path = folder / f"{i}-{name}.png"
            path.write_bytes(png(scene.pixels))
            yield path


def _right(pictures: Any, captions: Any) -> Any:
    return both_right(torch.from_numpy(pictures), torch.from_numpy(captions)).numpy()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m training.dual_encoder.evaluate")
    parser.add_argument("name", nargs="?", default=NANO_SIGLIP, help="a name, folder, identifier")
    parser.add_argument("--split", choices=tuple(SPLITS), default="test")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    print(table(evaluate(chosen.name, chosen.split, chosen.pairs).rows()))


if __name__ == "__main__":
    main()
