"""A folder of peft's is a checkpoint: its base, its row, its hash, its refusals; and real ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from adapters import train_adapter, write_adapter, write_base
from weight_headers import write_weights

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import Asking, deployment_of
from vlmeval_findit.models import (
    MODELS,
    NANO,
    SHIPPED,
    ModelEntry,
    ModelOptions,
    RunSettings,
    adapter_of,
    describe_local_run,
    known_revision,
    refuse_adapter,
    refuse_missing,
    refuse_without_peft,
    row_of_checkpoint,
)
from vlmeval_findit.models import adapter as adapters
from vlmeval_findit.serving import ServeOptions
from vlmeval_findit.sweeps import parse_sweep

VARIANT = parse("FindIt_Pascal_xyxy_json")
HUB = "Qwen/Qwen3-VL-2B-Instruct"


# --- its base -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "row"),
    [
        (HUB, "Qwen3-VL"),
        ("/models/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL"),
        ("google/gemma-4-E4B-it", "Gemma 4"),
        (SHIPPED[NANO], NANO),
    ],
)
def test_the_row_is_that_of_the_base(base: str, row: str, tmp_path: Path) -> None:
    if base.startswith("/models"):
        base = str(write_base(tmp_path / base[1:]))
    folder = str(write_adapter(tmp_path / "ft", base))
    assert row_of_checkpoint("my-ft", folder).name == row
    with pytest.raises(ValueError, match=r" is .*, not InternVL3|model_type"):
        row_of_checkpoint("my-ft", folder, "InternVL3")
    assert row_of_checkpoint("my-ft", folder, "InternVL3", space_stated=True).name == "InternVL3"
    assert ModelOptions().entry(f"my-ft={folder}").like == row
    sweep = parse_sweep(f"models: [{{name: my-ft, checkpoint: {folder}}}]\ndatasets: Pascal")
    assert sweep.models[0].like == row


def test_another_base_needs_like(tmp_path: Path) -> None:
    folder = str(write_adapter(tmp_path / "ft", write_base(tmp_path / "sft")))
    with pytest.raises(ValueError, match="it shares: --like NAME"):
        row_of_checkpoint("my-ft", folder)
    assert ModelOptions(like="Qwen3-VL").entry(f"my-ft={folder}").like == "Qwen3-VL"


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "values", "why"),
    [
        (None, {}, "adapter_config.json: no base_model_name_or_path"),
        ("/nowhere/qwen", {}, "base_model_name_or_path /nowhere/qwen: the folder does not exist"),
        (HUB, {"peft_type": "PROMPT_TUNING"}, "peft_type 'PROMPT_TUNING': FindIt runs adapters"),
        (HUB, {"peft_type": None}, "peft_type None"),
    ],
)
def test_settings_that_are_refused(
    base: str | None, values: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=why):
        refuse_missing(str(write_adapter(tmp_path / "ft", base, **values)))


def test_files_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write_base(tmp_path / "base")
    folder = write_adapter(tmp_path / "ft", base)
    refuse_missing(str(folder))
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"an adapter, and peft is not installed: .*\[local\]"):
        refuse_without_peft(str(folder))
    refuse_without_peft(str(base))

    def refused(why: str) -> None:
        with pytest.raises(ValueError, match=why):
            refuse_missing(str(folder))

    (folder / "adapter_model.safetensors").unlink()
    refused("no weights: neither adapter_model.safetensors nor")
    (base / "config.json").unlink()
    refused("base: no config.json in this folder")
    (folder / "adapter_config.json").write_text("[")
    refused("adapter_config.json: not the settings of an adapter")


# --- its identity ---------------------------------------------------------------------------------


def test_the_hash_covers_both(tmp_path: Path) -> None:
    base = write_base(tmp_path / "base")
    folder = write_adapter(tmp_path / "ft", base)
    first = known_revision(str(folder))
    assert known_revision(str(shutil.copytree(folder, tmp_path / "copy"))) == first
    (base / "model.safetensors").write_bytes(b"1")
    of_other_base = known_revision(str(folder))
    write_adapter(folder, base, "other.lora_A.weight")
    assert len({first, of_other_base, known_revision(str(folder))}) == 3


@pytest.mark.parametrize("merged", [None, True, False])
def test_the_identity_names_the_base(merged: bool | None, tmp_path: Path) -> None:
    pytest.importorskip("peft")

    def settings(base: Path | str) -> dict[str, Any]:
        folder = str(write_adapter(tmp_path / "ft", base, revision="0" * 40))
        how = RunSettings(merge_adapter=merged)
        described = describe_local_run(MODELS["Qwen3-VL"], folder, VARIANT, how).answering
        assert described.checkpoint == folder
        return dict(described.settings)

    of_hub = settings(HUB)
    base = write_base(tmp_path / "base")
    assert (of_hub["base"], of_hub["base_revision"]) == (HUB, "0" * 40)
    of_folder = settings(base)
    assert of_folder["base"] == known_revision(str(base)), "the same files under any path"
    assert "base_revision" not in of_folder
    assert of_hub["adapter_merged"] is of_folder["adapter_merged"] is (merged is not False)


ASKED_HERE: Mapping[str, Asking] = {
    "here": Asking(),
    "counted": Asking(asks=False),
    "on Ray": Asking(on_ray=True),
    "served": Asking(serving=ServeOptions("vllm"), asks=False),
}


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("how", ASKED_HERE)
@pytest.mark.parametrize("name", ["Qwen3-VL-8B", "base", HUB])
def test_nothing_but_an_adapter_is_merged(
    name: str, how: str, merged: bool, tmp_path: Path
) -> None:
    """A known model, a folder of a whole checkpoint, an identifier of the hub."""
    if name == "base":
        folder = write_base(tmp_path / "base", model_type="qwen3_vl")
        write_weights(folder / "model.safetensors", "model.norm.weight")
        name = str(folder)
    checkpoint = None if name == "Qwen3-VL-8B" else name
    who = "Qwen3-VL-8B" if checkpoint is None else "mine"
    like = None if checkpoint is None else "Qwen3-VL"
    entry = ModelEntry(who, {"merge_adapter": merged}, checkpoint=checkpoint, like=like)
    deployment = deployment_of(entry, ASKED_HERE[how])
    for look in (deployment.check, partial(deployment.describe, VARIANT)):
        with pytest.raises(ValueError, match=r"merge_adapter has no effect: \S+ is no adapter"):
            look()


# --- behind vLLM ----------------------------------------------------------------------------------


def vllm_flags(folder: Path) -> list[str]:
    adapter = adapter_of(str(folder))
    assert adapter is not None
    refuse_adapter(adapter)
    return adapter.vllm_flags("ft")


@pytest.mark.parametrize(("rank", "limit"), [(8, "8"), (24, "32")])
def test_the_rank_is_the_next_that_vllm_takes(rank: int, limit: str, tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "ft", HUB, r=rank)
    lora = ["--enable-lora", "--lora-modules", f"ft={folder}", "--max-lora-rank"]
    assert vllm_flags(folder) == [*lora, limit]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("peft_type", "LOHA"),
        ("use_dora", True),
        ("modules_to_save", ["lm_head"]),
        ("bias", "all"),
        ("r", 1024),
    ],
)
def test_what_vllm_does_not_take(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"vLLM does not load adapters with {name}"):
        vllm_flags(write_adapter(tmp_path / "ft", HUB, **{name: value}))


def test_an_adapter_of_the_vision_tower_says_so(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "ft", HUB, "base_model.model.model.visual.blocks.0.qkv.a")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    flags = vllm_flags(folder)
    assert flags[-1] == "--enable-tower-connector-lora"
    assert "--chat-template" not in flags, "in this process the base's is used too"
    for name in ("processor_config.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    assert vllm_flags(folder)[-3:-1] == ["--chat-template", f"{folder}/chat_template.jinja"]
    (folder / "adapter_model.safetensors").write_bytes(b"\xff" * 9)
    with pytest.raises(ValueError, match="tensors cannot be listed for vLLM"):
        vllm_flags(folder)


# --- real ones ------------------------------------------------------------------------------------


FOLDER = Path(mkdtemp(prefix="findit-adapters-"))


@cache
def base_and_adapter() -> tuple[Path, Path]:
    from tiny_checkpoints import build

    base = build("Qwen3-VL", FOLDER / "base")
    return base, train_adapter(base, FOLDER / "ft")


def answers(checkpoint: Path, **settings: Any) -> list[Any]:
    from tiny_models import messages_of_one_image, messages_of_several_images

    from vlmeval_findit.models import load_local

    how = RunSettings(max_new_tokens=12, **settings)
    runner = load_local(str(checkpoint), MODELS["Qwen3-VL"], how)
    batch = runner.answer_batch(messages_of_one_image(), VARIANT)
    return [*batch, *runner.answer_batch(messages_of_several_images(), VARIANT)]


def texts(checkpoint: Path, **settings: Any) -> list[str]:
    return [reply.text for reply in answers(checkpoint, **settings)]


@pytest.mark.slow
@pytest.mark.host
def test_a_real_adapter_changes_the_answers() -> None:
    pytest.importorskip("peft")
    base, folder = base_and_adapter()
    replies = answers(folder)
    merged = [reply.text for reply in replies]
    assert texts(folder, merge_adapter=False) == merged
    assert texts(base) != merged
    who = replies[0].record.model
    assert who["revision"] == known_revision(str(folder))
    assert (who["base"], who["base_revision"]) == (str(base), known_revision(str(base)))
    # As if its weights had been trained in full.
    import peft
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(base)
    whole = shutil.copytree(base, FOLDER / "whole")
    peft.PeftModel.from_pretrained(model, folder).merge_and_unload().save_pretrained(whole)
    assert texts(whole) == merged


@pytest.mark.slow
@pytest.mark.host
def test_weights_that_fit_nowhere_are_refused() -> None:
    pytest.importorskip("peft")
    base, folder = base_and_adapter()
    foreign = shutil.copytree(folder, FOLDER / "foreign")
    config = json.loads((foreign / "adapter_config.json").read_text())
    config["target_modules"] = r".*language_model.*k_proj"
    (foreign / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"foreign does not fit {base}: 4 of its 4 weights are mi"):
        answers(foreign)


@pytest.mark.slow
@pytest.mark.host
def test_weights_of_real_adapters_are_judged_by_their_cause(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    import torch
    from lacking_weights import prefixed, with_more, write_tensors
    from safetensors.torch import load_file

    _, folder = base_and_adapter()
    tensors = load_file(folder / adapters.WEIGHTS)
    last = max(tensors)
    without_last = {name: value for name, value in tensors.items() if name != last}
    for name, changed, said in (
        ("part", without_last, "1 of its 12 weights is missing .*: a part of the adapter was not"),
        ("empty", {}, "12 of its 12 weights are missing .*: nothing of the adapter was saved"),
        ("rank", {**tensors, last: tensors[last][:, :1]}, "1 of its 12 weights is of another sha"),
        ("zero3", dict.fromkeys(tensors, torch.zeros(0)), "zero_to_fp32.py"),
        ("ddp", prefixed("module.")(tensors), "model.module.save_pretrained"),
        ("compiled", prefixed("_orig_mod.")(tensors), "model._orig_mod.save_pretrained"),
    ):
        copy = Path(shutil.copytree(folder, tmp_path / name))
        write_tensors(copy / adapters.WEIGHTS, changed)
        with pytest.raises(ValueError, match=said):
            answers(copy)
    head = Path(shutil.copytree(folder, tmp_path / "head"))
    more = with_more(base_model__model__v_head__weight=torch.zeros(1, 4))
    write_tensors(head / adapters.WEIGHTS, more(tensors))
    assert texts(head) == texts(folder)


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("part", ["lm_head", "embed_tokens"])
def test_an_adapter_of_shared_weights_is_not_merged(part: str, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from lacking_weights import damaged, without

    whole, _ = base_and_adapter()
    base = damaged(Path(whole), tmp_path / "base", without("lm_head"))
    config = json.loads((base / "config.json").read_text())
    config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = True
    (base / "config.json").write_text(json.dumps(config))
    folder = train_adapter(
        base, tmp_path / "ft", target_modules=rf".*{part}|.*language_model.*q_proj"
    )
    with pytest.raises(
        ValueError, match=f"it changes .*{part}, which shares .*merge_adapter: false"
    ):
        answers(folder)
    assert texts(folder, merge_adapter=False) != texts(base)
    other = train_adapter(base, tmp_path / "other")
    assert texts(other) == texts(other, merge_adapter=False)
