"""A checkpoint's own files decide its row: before torch, VLMEvalKit or a network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from adapters import write_adapter, write_base
from few_fast import every_nth_fast
from weight_headers import write_weights

from vlmeval_findit.api import open_model
from vlmeval_findit.cli import main
from vlmeval_findit.engine import own_models
from vlmeval_findit.models import (
    ANY_CHECKPOINT,
    MODELS,
    SHIPPED,
    ModelEntry,
    ModelOptions,
    architecture_of,
    loadable_types,
    local_names,
    row_of_checkpoint,
    unknown_space,
)
from vlmeval_findit.sweeps import parse_sweep


def checkpoint(folder: Path, model_type: str, side: int | None = None, merge: int = 2) -> Path:
    """Write the files that say what a checkpoint is; ``side`` is of its processor's patches."""
    write_base(folder, model_type=model_type)
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    if side is not None:
        processor = {"image_processor": {"patch_size": side, "merge_size": merge}}
        (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder


TYPES: Mapping[tuple[str, int | None], list[str]] = {
    ("qwen2_5_vl", 14): ["Qwen2.5-VL"],
    ("qwen2_5_vl", None): ["Qwen2.5-VL"],
    ("qwen3_vl", 16): ["Qwen3-VL"],
    ("qwen3_vl", None): ["Qwen3-VL"],
    ("qwen3_vl_moe", 16): ["Qwen3-VL"],
    ("qwen3_vl", 12): ["FindIt-Nano", "FindIt-Nano-px"],
    ("qwen3_5", 16): ["Qwen3.5-nothink", "Qwen3.5"],
    ("qwen3_5_moe", None): ["Qwen3.5-nothink", "Qwen3.5"],
    ("internvl", None): ["InternVL3"],
    ("glm46v", 14): ["GLM-4.6V"],
    ("glm4v_moe", None): ["GLM-4.6V"],
    ("gemma4", None): ["Gemma 4"],
    ("idefics3", None): [],
    ("smolvlm", None): [],
    ("llava", None): [],
    ("qwen2_vl", 14): [],
    ("qwen2_5_vl", 16): [],
}
"""Rows by model_type and side of a patch."""


@pytest.mark.parametrize(("kind", "rows"), TYPES.items(), ids=str)
def test_its_config_decides(kind: tuple[str, int | None], rows: list[str], tmp_path: Path) -> None:
    folder = str(checkpoint(tmp_path / "ft", *kind))
    if len(rows) == 1:
        assert row_of_checkpoint("mine", folder).name == rows[0]
        assert ModelOptions().entry(f"mine={folder}").like == rows[0]
        sweep = parse_sweep(f"models: [{{name: mine, checkpoint: {folder}}}]\ndatasets: Pascal")
        assert sweep.models[0].like == rows[0]
        return
    with pytest.raises(ValueError, match=f"says model_type '{kind[0]}'") as refused:
        row_of_checkpoint("mine", folder)
    message = str(refused.value)
    wanted = [f"--like {name}" for name in rows] or ["--space SPACE"]
    assert all(word in message for word in wanted)
    assert "--like Qwen3-VL" not in message


def test_an_identifier_of_two_rows_is_refused_with_both() -> None:
    with pytest.raises(ValueError, match=r"it is Qwen3\.5-nothink or Qwen3\.5\. Type --like "):
        row_of_checkpoint("mine", "Qwen/Qwen3.5-9B")


def words(name: str) -> str:
    return f"'{name}'" if " " in name else name


@pytest.mark.parametrize(
    "like", every_nth_fast([name for name, row in MODELS.items() if row.local is not None], 3)
)
@pytest.mark.parametrize(("kind", "rows"), TYPES.items(), ids=str)
def test_a_like_that_contradicts_it_is_refused_with_both_values(
    like: str, kind: tuple[str, int | None], rows: list[str], tmp_path: Path
) -> None:
    folder = str(checkpoint(tmp_path / "ft", *kind))
    local = MODELS[like].local
    assert local is not None
    is_type = kind[0] in local.model_types
    multiple = None if kind[1] is None else 2 * kind[1]
    is_multiple = None in (multiple, local.multiple) or multiple == local.multiple
    for named in (("mine", like), (next(iter(local.checkpoints)), None)):
        if is_type and is_multiple:
            assert row_of_checkpoint(named[0], folder, named[1]).name == like
            continue
        with pytest.raises(ValueError, match=re.escape(f"={folder}: ")) as refused:
            row_of_checkpoint(named[0], folder, named[1])
        message = str(refused.value)
        if is_type:
            assert f"multiples of {multiple} pixels" in message
            assert f"multiples of {local.multiple}" in message
        else:
            assert f"'{kind[0]}'" in message
            assert all(each in message for each in local.model_types)
        assert all(f"--like {words(row)}" in message for row in rows)
        assert "--space SPACE" in message


def test_a_stated_space_wins_and_is_recorded(tmp_path: Path) -> None:
    qwen = str(checkpoint(tmp_path / "a", "qwen2_5_vl", 14))
    row = row_of_checkpoint("mine", qwen, "Qwen3-VL", space_stated=True)
    assert (row.name, row.schemes) == ("Qwen3-VL", MODELS["Qwen3-VL"].schemes)
    assert row.local == MODELS["Qwen2.5-VL"].local
    stranger = str(checkpoint(tmp_path / "b", "idefics3"))
    row = row_of_checkpoint("mine", stranger, "Qwen3-VL", space_stated=True)
    assert (row.name, row.local) == ("Qwen3-VL", ANY_CHECKPOINT.local)
    several = str(checkpoint(tmp_path / "c", "qwen3_5", 16))
    with pytest.raises(ValueError, match=r"--like Qwen3\.5-nothink or --like Qwen3\.5$"):
        row_of_checkpoint("mine", several, "Qwen3-VL", space_stated=True)


def test_any_transformers_checkpoint_runs_with_a_stated_space(
    tmp_path: Path,
) -> None:
    types = loadable_types()
    if not types:
        pytest.skip("needs transformers")
    assert {"idefics3", "llava", "paligemma", "blip-2", "qwen3_vl"} <= types
    folder = checkpoint(tmp_path / "a", "llava")
    assert row_of_checkpoint("mine", str(folder), space_stated=True) is ANY_CHECKPOINT
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="it has no chat template"):
        row_of_checkpoint("mine", str(folder), space_stated=True)
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    assert row_of_checkpoint("mine", str(folder), space_stated=True) is ANY_CHECKPOINT
    for other in ("internvl_chat", "llama", "clip"):
        with pytest.raises(ValueError, match=f"'{other}', which .* does not load"):
            row_of_checkpoint("mine", str(checkpoint(tmp_path / other, other)), space_stated=True)


@pytest.mark.parametrize("config", ["[]", "{", "1", ""])
def test_a_config_that_is_no_object_is_refused(config: str, tmp_path: Path) -> None:
    folder = write_base(tmp_path / "ft")
    (folder / "config.json").write_text(config)
    assert architecture_of(str(folder)) is None
    with pytest.raises(ValueError, match=r"config\.json: .* Copy the file that was saved with"):
        row_of_checkpoint("mine", str(folder), "InternVL3")


@pytest.mark.parametrize("config", ["{}", '{"model_type": 5}', '{"model_type": ""}'])
def test_a_config_that_says_nothing_decides_and_contradicts_nothing(
    config: str, tmp_path: Path
) -> None:
    folder = write_base(tmp_path / "ft")
    (folder / "config.json").write_text(config)
    assert architecture_of(str(folder)) is None
    assert row_of_checkpoint("mine", str(folder), "InternVL3").name == "InternVL3"
    with pytest.raises(ValueError, match=r"does not say which model it is.*--like NAME"):
        row_of_checkpoint("mine", str(folder))


def test_the_processor_goes_before_the_vision_config(tmp_path: Path) -> None:
    vision = {"patch_size": 14, "spatial_merge_size": 2}
    folder = write_base(tmp_path / "ft", model_type="qwen3_vl", vision_config=vision)
    found = architecture_of(str(folder))
    assert found is not None
    assert (found.multiple, found.source) == (28, str(folder / "config.json"))
    (folder / "preprocessor_config.json").write_text('{"patch_size": 16, "merge_size": 2}')
    found = architecture_of(str(folder))
    assert found is not None
    assert found.multiple == 32


def test_an_adapter_is_of_its_base_wherever_that_lies(tmp_path: Path) -> None:
    base = checkpoint(tmp_path / "sft", "qwen2_5_vl", 14)
    folder = str(write_adapter(tmp_path / "lora", base))
    assert row_of_checkpoint("mine", folder).name == "Qwen2.5-VL"
    with pytest.raises(ValueError, match="'qwen2_5_vl', and Qwen3-VL is qwen3_vl"):
        row_of_checkpoint("mine", folder, "Qwen3-VL")


def test_the_cache_of_the_hub_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"not on this machine: hf download me/ft config\.json"):
        row_of_checkpoint("mine", "me/ft")
    checkpoint(tmp_path / "models--me--ft" / "snapshots" / ("1" * 40), "internvl")
    assert row_of_checkpoint("mine", "me/ft").name == "InternVL3"
    with pytest.raises(ValueError, match="'internvl', and Qwen3-VL is"):
        row_of_checkpoint("mine", "me/ft", "Qwen3-VL")


ELSEWHERE = sorted(name for name, (row, _) in local_names().items() if row.name not in SHIPPED)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_identifiers_of_the_table_are_known_without_their_files(name: str) -> None:
    row, identifier = local_names()[name]
    assert row_of_checkpoint("mine", identifier, row.name) == row
    rivals = {each.name for each, known in local_names().values() if known == identifier}
    if len(rivals) == 1:
        assert row_of_checkpoint("mine", identifier) == row
    other = "InternVL3" if row.name != "InternVL3" else "Qwen3-VL"
    with pytest.raises(ValueError, match=f" is .*{re.escape(row.name)}.*, not {other}"):
        row_of_checkpoint("mine", identifier, other)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("Qwen2.5-VL-72B-Instruct", "Qwen2.5-VL-72B"),
        ("Qwen3-VL-8B-Instruct", "Qwen3-VL-8B"),
        ("Qwen3-VL-30B-A3B-Instruct", "Qwen3-VL-30B-A3B"),
        ("InternVL3-8B", "InternVL3-8B-hf"),
        ("gemma-4-E4B-it", "Gemma4-E4B"),
        ("GLM-4.6V", "GLM-4.6V-nothink"),
    ],
)
def test_names_of_the_hub_and_of_vlmevalkit_lead_to_ours(name: str, ours: str) -> None:
    says = f"{ours} is the same checkpoint, asked as the protocol says"
    message = str(unknown_space(name))
    assert says in message
    assert "--space SPACE" in message
    assert "grid1000`" not in message
    assert "--space grid1000" not in message
    owner = local_names()[ours][1].partition("/")[0]
    for named in (f"{owner}/{name}", f"someone/{name}"):
        with pytest.raises(ValueError, match=re.escape(f"--model {ours}, which is the same")):
            ModelOptions().entry(named)
        with pytest.raises(ValueError, match=re.escape(f"NAME={named}")):
            parse_sweep(f"models: [{named}]\ndatasets: Pascal")


def test_other_names_have_no_such_hint() -> None:
    assert "is the same checkpoint" not in str(unknown_space("LLaVA-OneVision-7B"))
    with pytest.raises(ValueError, match=r"Type --model NAME=me/mine$"):
        ModelOptions().entry("me/mine")


def test_python_decides_as_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(own_models, "load_local_client", lambda **given: opened.append(given))
    folder = str(checkpoint(tmp_path / "ft", "qwen2_5_vl", 14))
    write_weights(tmp_path / "ft/model.safetensors", "model.norm.weight")
    for name in (folder, f"mine={folder}"):
        open_model(name)
        assert opened.pop()["like"] == "Qwen2.5-VL"
        with pytest.raises(ValueError, match="says model_type 'qwen2_5_vl', and Qwen3-VL is"):
            open_model(name, like="Qwen3-VL")
        open_model(name, like="Qwen3-VL", space="pixels")
        assert opened.pop()["like"] == "Qwen3-VL"
    stranger = str(checkpoint(tmp_path / "other", "llava"))
    write_weights(tmp_path / "other/model.safetensors", "model.norm.weight")
    with pytest.raises(ValueError, match="--space SPACE"):
        open_model(stranger)
    open_model(stranger, space="unit")
    assert opened.pop()["like"] == ANY_CHECKPOINT.name


@pytest.mark.parametrize(
    "words",
    [
        "run --data FindIt_Demo_xyxy_json --model mine=FT --like Qwen3-VL --limit 1",
        "run --data FindIt_Demo_xyxy_json --model mine=FT --like Qwen3-VL --serve vllm",
        "run --data FindIt_Demo_xyxy_json --model mine=FT --like Qwen3-VL --dry-run",
        "search --data Demo --model mine=FT --like Qwen3-VL",
        "sweep FILE",
        "probe --model mine=FT --like Qwen3-VL",
        "check Qwen3-VL=FT --data FindIt_Demo_xyxy_json",
        "data show FindIt_Demo_xyxy_json --model Qwen3-VL=FT",
    ],
)
def test_every_command_refuses_the_contradiction(
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = checkpoint(tmp_path / "ft", "qwen2_5_vl", 14)
    file = tmp_path / "sweep.yaml"
    entry = {"name": "mine", "checkpoint": str(folder), "like": "Qwen3-VL"}
    file.write_text(json.dumps({"models": [entry], "datasets": ["FindIt_Demo_xyxy_json"]}))
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    line = [word.replace("FT", str(folder)).replace("FILE", str(file)) for word in words.split()]
    assert main(line) == 2
    error = capsys.readouterr().err
    assert "'qwen2_5_vl', and Qwen3-VL is qwen3_vl or qwen3_vl_moe" in " ".join(error.split())


def test_models_lists_all_that_have_a_part_of_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "qwen"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "Qwen2.5-VL",
        "Qwen3-VL",
        "Qwen3.5-nothink",
        "Qwen3.5",
    ]
    assert main(["models", "OpenGVLab"]) == 0
    assert capsys.readouterr().out.startswith("InternVL3\n")
    assert main(["models", "Qwen3-VL"]) == 0
    assert capsys.readouterr().out.startswith("Qwen3-VL\n")


def test_an_entry_without_a_checkpoint_stays_as_it_is() -> None:
    assert ModelOptions().entry("Qwen3-VL") == ModelEntry("Qwen3-VL")
