"""Which words small models know, by their own tokenizers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from vlmeval_findit.data import COLOURS, HALF_SIZES, SHAPES, TEXTURES
from vlmeval_findit.models import ENCODERS, NANO, NANO_PX, NANO_SIGLIP, SHIPPED, known_words
from vlmeval_findit.models import words_of_model as words_of

CHECKPOINTS = {**SHIPPED, NANO_SIGLIP: ENCODERS[NANO_SIGLIP]}


@pytest.mark.parametrize("name", sorted(CHECKPOINTS))
def test_every_small_model_knows_the_words_of_scenes(name: str) -> None:
    known = known_words(CHECKPOINTS[name])
    assert known is not None
    named = {*SHAPES, *COLOURS, *TEXTURES, *HALF_SIZES}
    assert named <= set(known.words)
    assert known.unknown(["zebra", "dogs", "", "a red zebra", *named, "zebra"]) == [
        "zebra",
        "dogs",
    ]


@pytest.mark.parametrize("name", [NANO, NANO_PX])
def test_a_name_and_a_folder_say_the_same(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "mine"
    shutil.copytree(SHIPPED[name], copy)
    by_name = words_of(name, None)
    by_folder = words_of("mine", str(copy))
    assert by_name is not None
    assert by_folder is not None
    assert by_name.words == by_folder.words
    assert len(by_name.words) == 20


def test_a_checkpoint_of_its_own_words_knows_those(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["find the zebra", "find the lion"] * 50, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    settings = {"text_config": {"vocab_size": tokenizer.get_vocab_size()}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    known = known_words(str(tmp_path))
    assert known is not None
    assert known.words == ("find", "lion", "the", "zebra")
    assert known.unknown(["a zebra", "circle"]) == ["circle"]


def test_nothing_is_claimed_of_large_vocabularies(tmp_path: Path) -> None:
    copy = tmp_path / "large"
    shutil.copytree(SHIPPED[NANO], copy)
    file = copy / "config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings["text_config"]["vocab_size"] = 151_936
    file.write_text(json.dumps(settings), encoding="utf-8")
    assert known_words(str(copy)) is None
    assert known_words("Qwen/Qwen3-VL-8B-Instruct") is None
    assert words_of("GPT-5.4", None) is None
