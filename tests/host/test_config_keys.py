"""Keys of a ``--config`` file that VLMEvalKit would drop: all but the last of equal ones, and those
of a dataset that its class does not know; and checkpoints of which nothing says what they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from weight_headers import write_weights

from vlmeval_findit.benchmarks import benchmarks, parse

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]

TWICE = {
    "model": '{"model": {}, "data": {}, "model": {}}',
    "Mine": '{"model": {"Mine": {"class": "A"}, "Mine": {"class": "B"}}, "data": {}}',
    "space": '{"model": {"Mine": {"space": "unit", "space": "pixels"}}, "data": {}}',
    "FindIt_Demo_xyxy_json": '{"data": {"FindIt_Demo_xyxy_json": {}, "FindIt_Demo_xyxy_json": 1}}',
    "limit": '{"data": [{"limit": 1, "limit": 2}]}',
}


@pytest.mark.parametrize("key", TWICE)
@pytest.mark.parametrize("flags", [["--config", "c.json"], ["--verbose", "--config=c.json"]])
def test_a_key_that_stands_twice_is_refused(
    key: str, flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(TWICE[key])
    from vlmeval_findit.host import check_config

    with pytest.raises(ValueError, match=f"^c.json: duplicate key .{key}.: give each its own"):
        check_config(flags)


NAMES = [benchmark.variant_names()[0] for benchmark in benchmarks()]


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_key_of_our_dataset_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.host import check_config, dataset_keys

    monkeypatch.chdir(tmp_path)
    (benchmark,) = (each for each in benchmarks() if name in each.variant_names())
    entry = {"class": benchmark.host_class(parse(name)), "dataset": name}
    keys = dataset_keys()[entry["class"]]
    assert {"dataset", "space", "reads_like", "encoder", "skip_missing"} <= {*keys}
    for key in keys:
        Path("c.json").write_text(json.dumps({"data": {name: {**entry, key: 1}}}))
        check_config(["--config", "c.json"])
        mistyped = f"{key}{key[-1]}"
        Path("c.json").write_text(json.dumps({"data": {name: {**entry, mistyped: 1}}}))
        why = f"c.json: data.{name}: unknown key '{mistyped}': did you mean {key}?"
        with pytest.raises(ValueError, match=re.escape(why)):
            check_config(["--config", "c.json"])


@pytest.mark.parametrize(
    "text",
    [
        '{"data": {"A": {"class": "Theirs", "spacee": 1}, "B": {"class": [1]}, "C": 3}}',
        '{"model": {"A": {"x": 1}, "B": {"x": 1}}, "data": {"x": 1}}',
        "{",
        "[" * 99_999,
        "",
    ],
)
def test_other_files_are_left_to_vlmevalkit(text: str, tmp_path: Path) -> None:
    from vlmeval_findit.host import check_config

    config = tmp_path / "c.json"
    config.write_text(text)
    check_config(["--config", str(config)])
    check_config(["--config", str(tmp_path / "none.json")])
    check_config(["--data", "FindIt_Demo_xyxy_json"])


# --- a checkpoint, and nothing that says what it is -----------------------------------------------


def checkpoint(folder: Path, model_type: str | None, multiple: int = 32) -> str:
    folder.mkdir()
    config = {} if model_type is None else {"model_type": model_type}
    (folder / "config.json").write_text(json.dumps(config))
    sides = {"patch_size": multiple // 2, "merge_size": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(sides))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    write_weights(folder / "model.safetensors", "a")
    return str(folder)


def config_file(folder: Path, **entry: object) -> list[str]:
    path = folder / "c.json"
    path.write_text(json.dumps({"model": {"mine": {"class": "FindItLocalModel", **entry}}}))
    return ["--config", str(path)]


@pytest.mark.parametrize(
    ("model_type", "multiple", "row"),
    [("qwen3_vl", 32, "Qwen3-VL"), ("glm46v", 28, "GLM-4.6V"), ("qwen2_5_vl", 28, "Qwen2.5-VL")],
)
def test_the_files_of_a_checkpoint_say_what_it_is(
    model_type: str, multiple: int, row: str, tmp_path: Path
) -> None:
    from vlmeval.vlm import FindItLocalModel

    from vlmeval_findit.host import check_config

    folder = checkpoint(tmp_path / "tuned", model_type, multiple)
    check_config(config_file(tmp_path, model_path=folder))
    variant = parse("FindIt_Demo_xyxy_json")
    found = FindItLocalModel.describe(variant, model_path=folder)
    assert found.answering.row == row
    assert found == FindItLocalModel.describe(variant, row, folder)


@pytest.mark.parametrize(
    ("model_type", "choices"),
    [
        ("qwen3_5", "('like'): Qwen3.5-nothink or Qwen3.5"),
        (None, "does not say which model it is: name what it is ('like'): Qwen2.5-VL, Qwen3-VL, "),
        ("gone", "the folder does not exist"),
        ("nothing", "name a checkpoint ('model_path'), or what it is ('like'): Qwen2.5-VL, "),
    ],
)
def test_a_checkpoint_of_no_known_model_is_refused_by_entry(
    model_type: str | None, choices: str, tmp_path: Path
) -> None:
    from vlmeval.vlm import FindItLocalModel

    from vlmeval_findit.host import check_config

    entry = {"model_path": str(tmp_path / "tuned")}
    if model_type == "nothing":
        entry = {}
    elif model_type != "gone":
        checkpoint(tmp_path / "tuned", model_type)
    with pytest.raises(ValueError, match=re.escape(choices)) as refused:
        check_config(config_file(tmp_path, **entry))
    assert str(refused.value).startswith(f"{tmp_path / 'c.json'}: model.mine: ")
    with pytest.raises(ValueError, match=re.escape(choices)):
        FindItLocalModel(**entry)
