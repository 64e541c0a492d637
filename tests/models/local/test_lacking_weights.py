"""Checkpoints that lack weights are refused; logits that are not numbers are no reply."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_encoders  # noqa: E402
from lacking_weights import (  # noqa: E402
    Change,
    damaged,
    filled,
    in_shards,
    prefixed,
    renamed,
    with_more,
    without,
)
from safetensors.torch import load_file  # noqa: E402
from tiny_checkpoints import FAMILIES  # noqa: E402
from tiny_models import (  # noqa: E402
    VARIANT,
    checkpoint,
    messages_of_one_image,
    messages_of_several_images,
)

from vlmeval_findit.models import (  # noqa: E402  # noqa: E402  # noqa: E402
    MODELS,
    NANO,
    NANO_PX,
    EncoderError,
    LocalRunner,
    Padding,
    RunSettings,
    Towers,
    load_local,
)

pytestmark = [pytest.mark.host, pytest.mark.slow]

ROWS = [*FAMILIES, NANO, NANO_PX]


def load(row: str, folder: Path, **settings: object) -> LocalRunner:
    return load_local(str(folder), MODELS[row], RunSettings(max_new_tokens=4, **settings))


def one(tensors: dict[str, object]) -> dict[str, object]:
    """Leave out a tensor by chance."""
    dropped = random.Random(7).choice(sorted(tensors))
    return {name: value for name, value in tensors.items() if name != dropped}


def smaller(tensors: dict[str, object]) -> dict[str, object]:
    """Give a tensor by chance another shape."""
    changed = random.Random(8).choice(sorted(tensors))
    return {**tensors, changed: torch.zeros(3, 5)}


LACKING: dict[str, tuple[Change, str]] = {
    "a tensor": (one, "1 of its .* weights is missing"),
    "a shape": (smaller, "1 of its .* weights is of another shape"),
    "the vision": (without("vis"), "weights are missing"),
    "the language": (without("layers."), "weights are missing"),
    "module": (prefixed("module."), "model.module.save_pretrained"),
    "compiled": (prefixed("_orig_mod."), "model._orig_mod.save_pretrained"),
    "peft": (prefixed("base_model.model."), "merge_and_unload"),
    "actor": (prefixed("actor."), "its names begin with actor"),
    "LoRA": (renamed("q_proj.weight", "q_proj.base_layer.weight"), "not merged into its base"),
}


@pytest.mark.parametrize("row", ROWS)
def test_weights_that_are_not_there_are_refused_by_name(row: str, tmp_path: Path) -> None:
    whole = Path(checkpoint(row))
    for name, (change, why) in LACKING.items():
        folder = damaged(whole, tmp_path / name, change)
        with pytest.raises(ValueError, match=f"^{folder}: .*{why}"):
            load(row, folder)
    with pytest.raises(ValueError, match=r"index\.json lists 1 of 2 shards"):
        load(row, in_shards(whole, tmp_path / "half", listed=1))
    with pytest.raises(ValueError, match="1 of the 2 shards that it lists is missing"):
        load(row, in_shards(whole, tmp_path / "absent", written=1))


@pytest.mark.parametrize("row", ROWS)
def test_whole_checkpoints_load_without_a_word(
    row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Path(checkpoint(row))
    caplog.set_level(logging.WARNING)
    for folder in (whole, in_shards(whole, tmp_path / "shards")):
        (reply,) = load(row, folder).answer_batch(messages_of_one_image()[:1], VARIANT)
        assert reply.record.model["weights"] == "all there"
        assert not reply.record.call
    assert "FindIt" not in caplog.text
    folder = damaged(whole, tmp_path / "head", with_more(v_head__weight=torch.zeros(3)))
    (reply,) = load(row, folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    assert reply.record.model["weights"] == "all there; ignored: v_head.weight"
    assert "its model has no place for v_head.weight" in caplog.text


@pytest.mark.parametrize("row", ["Qwen3-VL", "GLM-4.6V"])
def test_a_head_that_is_tied_may_be_left_out(row: str, tmp_path: Path) -> None:
    folder = damaged(Path(checkpoint(row)), tmp_path / "tied", without("lm_head"))
    with pytest.raises(ValueError, match=r"1 of its .* \(lm_head.weight\).*tie_word_embeddings"):
        load(row, folder)
    config = json.loads((folder / "config.json").read_text())
    config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = True
    (folder / "config.json").write_text(json.dumps(config))
    (reply,) = load(row, folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    assert reply.record.model["weights"] == "all there"


def tie(folder: Path, of_text: bool | None) -> None:
    """Write into config.json that the head is tied; of the language model so, or nothing."""
    config = json.loads((folder / "config.json").read_text())
    config["tie_word_embeddings"] = True
    config["text_config"].pop("tie_word_embeddings", None)
    if of_text is not None:
        config["text_config"]["tie_word_embeddings"] = of_text
    (folder / "config.json").write_text(json.dumps(config))


def as_torchs(folder: Path) -> None:
    """Write the weights of a checkpoint as torch.save does."""
    single = folder / "model.safetensors"
    torch.save(load_file(single), folder / "pytorch_model.bin")
    single.unlink()


@pytest.mark.parametrize("row", ["Qwen3-VL", "GLM-4.6V", "Qwen2.5-VL"])
def test_a_tied_head_with_other_values_never_passes_in_silence(
    row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Path(checkpoint(row))
    why = 'lm_head.weight has other values than .*embed_tokens.weight, .*"tie_word_embeddings": f'
    for of_text in (True, None):
        for is_torchs in (False, True):
            folder = damaged(whole, tmp_path / f"{of_text}{is_torchs}", dict)
            tie(folder, of_text)
            if is_torchs:
                as_torchs(folder)
            with pytest.raises(ValueError, match=why):
                load(row, folder)
    caplog.set_level(logging.WARNING)
    folder = damaged(whole, tmp_path / "both", dict)
    tie(folder, of_text=False)  # Settings of some published models say both
    (reply,) = load(row, folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    (before,) = load(row, whole).answer_batch(messages_of_one_image()[:1], VARIANT)
    assert reply.record.model["weights"] == "all there; untied: lm_head.weight"
    assert "lm_head.weight, which its architecture ties to another weight" in caplog.text
    assert reply.text == before.text, "it is used as it is stored"


def test_a_tied_head_with_equal_values_is_superfluous(tmp_path: Path) -> None:
    def equal(tensors: dict[str, object]) -> dict[str, object]:
        (name,) = (name for name in tensors if name.endswith("embed_tokens.weight"))
        return {**tensors, "lm_head.weight": tensors[name]}

    folder = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / "equal", equal)
    tie(folder, of_text=True)
    (reply,) = load("Qwen3-VL", folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    assert reply.record.model["weights"] == "all there"


def test_a_config_of_another_size_is_refused(tmp_path: Path) -> None:
    def refused(why: str, change: Callable[[dict[str, dict[str, int]]], None]) -> None:
        folder = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / why[:9], dict)
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=why):
            load("Qwen3-VL", folder)

    refused("fit nowhere .* another model", lambda c: c["text_config"].update(num_hidden_layers=1))
    refused("are missing .* part", lambda c: c["text_config"].update(num_hidden_layers=3))
    refused("another shape .* size", lambda c: c["text_config"].update(intermediate_size=48))


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_numbers_are_a_failed_call(
    row: str, value: float, tmp_path: Path
) -> None:
    folder = damaged(Path(checkpoint(row)), tmp_path / "spoilt", filled("norm.weight", value))
    model = load(row, folder, dtype="float32")
    replies = [
        *model.answer_batch(messages_of_one_image(), VARIANT, logprobs=True),
        *model.answer_batch(messages_of_several_images(), VARIANT),
    ]
    for reply in replies:
        error = reply.record.call["error"]
        assert error.startswith("logits are not numbers: ")
        assert "of the checkpoint hold" in error
        assert "Run an earlier checkpoint" in error
        assert "server" not in error
        assert "--dtype" not in error, "the weights themselves are spoilt"
        assert not reply.record.finish_reason


@pytest.mark.parametrize(
    ("dtype", "advice"), [("float16", "try --dtype bfloat16 or float32"), ("bfloat16", None)]
)
def test_an_overflow_names_the_wider_types(dtype: str, advice: str | None, tmp_path: Path) -> None:
    whole = Path(checkpoint("Qwen3-VL"))
    folder = damaged(whole, tmp_path / "large", filled("language_model.norm.weight", 1e6))
    model = load("Qwen3-VL", folder, dtype=dtype)
    for reply in model.answer_batch(messages_of_one_image(), VARIANT):
        assert reply.record.call.get("error") == (advice and f"logits are not numbers: {advice}")


@pytest.mark.parametrize("row", ROWS)
def test_weights_of_zeros_never_pass_in_silence(
    row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Path(checkpoint(row))
    with pytest.raises(ValueError, match=r"zeros: every number in its [\d,]+ matrices is zero"):
        load(row, damaged(whole, tmp_path / "zeros", filled("", 0.0)))

    def zeros(tensors: dict[str, object]) -> dict[str, object]:
        heads = ("lm_head.weight", "embed_tokens.weight")
        return {n: v * 0 if n.endswith(heads) else v for n, v in tensors.items()}

    caplog.set_level(logging.WARNING)
    model = load(row, damaged(whole, tmp_path / "head", zeros), dtype="float32")
    assert "head: every number is zero in " in caplog.text
    (reply,) = model.answer_batch(messages_of_one_image()[:1], VARIANT)
    error = reply.record.call["error"]
    assert re.search(r"^logits are all equal: .* of the checkpoint (is|are) zero \(", error)
    assert not reply.record.finish_reason


def test_a_last_norm_of_zeros_is_a_failed_call(tmp_path: Path) -> None:
    norm = "language_model.norm.weight"
    folder = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / "norm", filled(norm, 0.0))
    for reply in load("Qwen3-VL", folder).answer_batch(messages_of_one_image(), VARIANT):
        assert "logits are all equal: 1 weight of the checkpoint is" in reply.record.call["error"]


def test_one_matrix_of_zeros_is_said_and_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = "layers.1.mlp.down_proj.weight"
    folder = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / "one", filled(part, 0.0))
    caplog.set_level(logging.WARNING)
    (reply,) = load("Qwen3-VL", folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    name = f"model.language_model.{part}"
    assert reply.record.model["weights"] == f"all there; zero: {name}"
    assert f"every number is zero in {name}" in caplog.text
    biases = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / "bias", filled(".bias", 0.0))
    (reply,) = load("Qwen3-VL", biases).answer_batch(messages_of_one_image()[:1], VARIANT)
    assert reply.record.model["weights"] == "all there"


@pytest.mark.parametrize("row", [NANO, "Qwen3-VL"])
def test_layer_norms_of_zeros_are_said_and_recorded(
    row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    norms = filled("visual.merger.norm.weight", 0.0)
    folder = damaged(Path(checkpoint(row)), tmp_path / "norms", norms)
    caplog.set_level(logging.WARNING)
    (reply,) = load(row, folder).answer_batch(messages_of_one_image()[:1], VARIANT)
    said = "all there; zero: model.visual.merger.norm.weight"
    assert reply.record.model["weights"] == said
    assert "every number is zero in model.visual.merger.norm.weight" in caplog.text


def test_a_row_that_fails_leaves_the_others_alone() -> None:
    from vlmeval_findit.models import Flaw, NumberCheck

    check = NumberCheck()
    inf, nan = float("inf"), float("nan")
    for rows in (
        [[1.0, -inf], [0.0, 1.0], [2.0, 0.0], [-inf, -inf], [0.0, 1.0]],
        [[0.0, 1.0], [nan, -inf], [0.0, inf], [0.0, 1.0], [0.5, 0.5]],
    ):
        scores = torch.tensor(rows)
        assert check(None, scores) is scores
    assert check.ended.tolist() == [False, True, True, False, True]
    none, nan_or_infinity, equal = None, Flaw.NOT_NUMBERS, Flaw.ALL_EQUAL
    assert [check.flaw(row, 1) for row in range(5)] == [none, none, none, nan_or_infinity, none]
    assert [check.flaw(row, 2) for row in range(5)] == [none, *[nan_or_infinity] * 3, equal]


# --- tokenizers -----------------------------------------------------------------------------------


def test_a_tokenizer_beyond_the_embeddings_is_refused_in_words(tmp_path: Path) -> None:
    folder = damaged(Path(checkpoint("Qwen3-VL")), tmp_path / "small", dict)
    config = json.loads((folder / "config.json").read_text())
    fewer = 40
    config["text_config"]["vocab_size"] = fewer

    def cut(tensors: dict[str, object]) -> dict[str, object]:
        tables = ("embed_tokens.weight", "lm_head.weight")
        return {n: v[:fewer] if n.endswith(tables) else v for n, v in tensors.items()}

    folder = damaged(folder, tmp_path / "cut", cut)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="embeddings of 40 tokens: the tokenizer is that of anoth"):
        load("Qwen3-VL", folder).answer_batch(messages_of_one_image(), VARIANT)


# --- dual encoders --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny_encoders.FAMILIES)
def test_dual_encoders_need_all_their_weights(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    whole = tiny_encoders.build(family, tmp_path / "whole")

    def open_it(folder: Path) -> Towers:
        return Towers(str(folder))

    open_it(whole).texts(["a circle"], Padding.AS_TRAINED)
    for name, change, why in (
        ("one", one, "1 of its .* weights is missing"),
        ("text", without("text_model"), "weights are missing"),
        ("shape", smaller, "another shape"),
        ("actor", prefixed("actor."), "its names begin with actor"),
    ):
        folder = damaged(whole, tmp_path / name, change)
        with pytest.raises(EncoderError, match=f"{folder}: .*{why}"):
            open_it(folder)
    with pytest.raises(ValueError, match="begin with module"):
        open_it(damaged(whole, tmp_path / "module", prefixed("module.")))
    spoilt = open_it(damaged(whole, tmp_path / "nan", filled("text_model", float("nan"))))
    with pytest.raises(EncoderError, match="vectors of its texts are not numbers"):
        spoilt.texts(["a circle"], Padding.AS_TRAINED)
