"""Custom models: stored, known to every command, refused if invalid."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_server import ChatServer, completion
from host_runs import metric_values
from perfect_answers import content, perfect_answers

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.boxes.spaces import Space
from vlmeval_findit.cli import main
from vlmeval_findit.core import plugin_rows
from vlmeval_findit.core.config import ConfigError
from vlmeval_findit.core.identity import read_identity
from vlmeval_findit.models.http.chat import server_name
from vlmeval_findit.models.local.layout import Grid
from vlmeval_findit.models.model_store import add
from vlmeval_findit.models.model_table import MODELS, find_model, local_names
from vlmeval_findit.sweeps.sweep_file import parse_sweep

QUESTION = parse("FindIt_Demo_xyxy_json")
SAVED = """\
# Named by run_findit.py probe: fractions of width and height.
models:
- name: plates
  served: acme/Plates-7B
  like: Qwen3-VL
  space: unit
datasets:
- FindIt_Pascal_xyxy_json
"""
"""As ``probe --save`` writes it."""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of custom models in an LMUData of this test."""
    root = tmp_path / "lmu"
    root.mkdir()
    monkeypatch.setenv("LMUData", str(root))
    monkeypatch.chdir(tmp_path)
    plugin_rows.forget()
    return root / "findit_models.yaml"


def file_of(text: str, name: str = "models.yaml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_what_a_probe_saved_is_known_everywhere(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find_model("plates") is None
    assert main(["models", "--add", file_of(SAVED)]) == 0
    assert str(kept) in capsys.readouterr().out
    row = find_model("plates")
    assert row is not None
    assert row.space(QUESTION) == Space("unit")
    assert row.schemes == MODELS["Qwen3-VL"].schemes
    assert server_name("plates") == ("plates", "acme/Plates-7B")
    assert server_name("plates=other") == ("plates", "other")
    assert "plates" not in local_names()  # it has no checkpoint
    sweep = parse_sweep("models: [plates, {name: b, like: plates}]\ndatasets: [Demo]")
    assert [item.name for item in sweep.models] == ["plates", "b"]
    assert main(["models"]) == 0
    assert "plates [findit_models.yaml:plates sha256:" in capsys.readouterr().out
    assert main(["plugins"]) == 0
    assert str(kept) in capsys.readouterr().out
    assert main(["models", "--remove", "plates"]) == 0
    assert find_model("plates") is None
    assert not kept.exists()


def test_a_checkpoint_runs_like_another_model(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    rows = [
        {"name": "ft", "like": "Qwen3-VL-2B", "checkpoint": "weights", "names": "ft(-v\\d)?"},
        {"name": "hub", "like": "Gemma4-E4B", "checkpoint": "me/tuned", "space": "pixels",
         "settings": {"max_new_tokens": 99}},
        {"name": "newer", "like": "GPT-5.4", "served": "openai/gpt-5.9"},
    ]  # fmt: skip
    add(Path(file_of(yaml.safe_dump(rows))), replaces=False)
    assert local_names()["ft"][1] == str(folder)  # from wherever a command is typed
    row = find_model("FT-v2")
    assert row is not None
    assert row.local is not None
    assert row.local.layout is Grid
    assert row.space(QUESTION) == MODELS["Qwen3-VL"].space(QUESTION)
    assert MODELS["hub"].settings == {"max_new_tokens": 99, "space": "pixels"}
    api = MODELS["newer"].api
    assert api is not None
    assert (api.identifier, api.prices, api.image_detail) == ("openai/gpt-5.9", None, "high")


@pytest.mark.host
def test_vlmevalkit_knows_one_that_has_a_checkpoint() -> None:
    pytest.importorskip("vlmeval")
    rows = "- {name: hub, like: Qwen3-VL, checkpoint: me/it, settings: {max_new_tokens: 9}}\n"
    add(Path(file_of(rows + "- {name: far, space: unit}")), replaces=False)
    from vlmeval_findit.host.local import local_models
    from vlmeval_findit.host.registration import register_models
    from vlmeval_findit.host.vlmevalkit_entries import described, entry_of, key_settings

    built = local_models()["hub"]
    assert built.keywords == {"model_path": "me/it", "like": "hub", "max_new_tokens": 9}  # type: ignore[attr-defined]
    assert "far" not in local_models()
    import vlmeval.config

    before = dict(vlmeval.config.supported_VLM)
    try:
        register_models(vlmeval.config)
        entry = entry_of("hub")
        actual = described("hub", entry, QUESTION)
        assert (actual.answering.row, actual.answering.checkpoint) == ("hub", "me/it")
        assert actual.answering.settings["max_new_tokens"] == 9
        # Its settings are in the keys of its calls: described anew, it is asked again.
        assert key_settings(entry, actual.answering)["max_new_tokens"] == 9
    finally:
        vlmeval.config.supported_VLM.clear()
        vlmeval.config.supported_VLM.update(before)


# fmt: off
UGLY = {
    "- {name: [": "models.yaml, line 1: not YAML",
    "": "line 1: the file is empty",
    "models: 3": "should be a list of models",
    "[]": "should be a list of models",
    "datasets: [Demo]": "no key 'models'",
    "- plates": "line 1: should be a mapping with the keys name, ",
    "- {name: a, spaces: unit}": "line 1: no key 'spaces': did you mean space?",
    "- {name: a, space: unit, provider: openai}": "type --provider openai with the command",
    "- {name: a, space: unit}\n- {name: 3}": "line 2: name: 3 should be a name",
    "- {space: unit}": "line 1: name is missing",
    "- {name: a/b, space: unit}": "no slash in it",
    "- {name: a, like: Qwen3VL}": "like: no model 'Qwen3VL' in the model table: did",
    "- {name: a}": "line 1, a: neither like nor space",
    "- {name: a, space: grid100}": "'grid100': did you mean grid1000?",
    "- {name: a, space: smart_resize}": "min_pixels",
    "- {name: a, space: unit, checkpoint: a/b}": "no local model None",
    "- {name: a, like: GPT-5.4, checkpoint: a/b}": "no local model 'GPT-5.4'",
    "- {name: a, like: Qwen3-VL, checkpoint: ./b}": "./b: no such folder",
    "- {name: a, like: Qwen3-VL, checkpoint: a/b, settings: {dtyp: x}}":
        "no setting 'dtyp': did you mean dtype?",
    "- {name: a, like: Qwen3-VL, settings: {dtype: x}}": "settings need a checkpoint",
    "- {name: a, space: unit, names: '('}": "unterminated subpattern",
    "- {name: Qwen3-VL, space: unit}": "Qwen3-VL is a name of Qwen3-VL, a row of vlmeval_findit",
    "- {name: qwen3-vl-8b, space: unit}": "qwen3-vl-8b is a name of Qwen3-VL",
    "- {name: a, space: unit, names: 'a|Qwen.*'}": "its names a|Qwen.* have Qwen2.5-VL",
    "- {name: a, space: unit}\n- {name: a, space: pixels}": "a stands twice",
    "- {name: old, space: unit}": "old exists already; replace it with --replace",
}
# fmt: on


@pytest.mark.parametrize(("text", "why"), UGLY.items())
def test_a_file_is_refused_whole(
    text: str, why: str, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(Path(file_of("- {name: old, space: pixels}")), replaces=False)
    before = kept.read_bytes()
    assert main(["models", "--add", file_of(text)]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith("error: models.yaml")
    assert why in reported
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--remove", "platos"], "no custom model 'platos': did you mean plates?"),
        (["--replace"], "--replace needs --add"),
        (["--add", "models.yaml", "--remove", "plates"], "one at a time"),
        (["--add", "nothing.yaml"], "nothing.yaml"),
        (["--add", "models.yaml"], "plates exists already; replace it with --replace"),
    ],
)
def test_commands_that_contradict_are_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--add", file_of(SAVED)]) == 0
    assert main(["models", *words]) == 2
    assert why in capsys.readouterr().err
    assert find_model("plates") is not None


def test_what_somebody_wrote_into_the_file_is_said_and_left_out(
    kept: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.write_text("- {name: a, space: unit}\n- {name: b}\n- 7\n- {name: Qwen3-VL, space: unit}\n")
    assert find_model("a") is not None
    assert find_model("b") is None
    reasons = [record.getMessage() for record in caplog.records]
    assert len(reasons) == 3
    assert "neither like nor space" in reasons[0]
    assert "should be a mapping" in reasons[1]
    assert "Qwen3-VL is a row of vlmeval_findit" in reasons[2]
    assert main(["plugins"]) == 1
    kept.write_text("{")
    assert find_model("a") is None
    assert find_model("Qwen3-VL") is MODELS.builtin["Qwen3-VL"]
    assert main(["plugins"]) == 1
    assert "not YAML" in capsys.readouterr().out


def test_several_may_add_at_once(tmp_path: Path) -> None:
    files = [file_of(f"- {{name: m{n}, space: unit}}", f"{n}.yaml") for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: add(tmp_path / name, replaces=False), files))
    assert {f"m{n}" for n in range(12)} <= set(MODELS)


def test_a_run_says_which_row_it_used_and_wants_it_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is asked by its served name, in its space; changed, or gone, the run is refused."""
    name = QUESTION.name
    assert main(["models", "--add", file_of(SAVED)]) == 0
    file_of(f"models: [plates]\ndatasets: [{name}]\nlimit: 2\n", "sweep.yaml")
    answers = perfect_answers("plates", [name])
    path = tmp_path / "outputs" / "plates" / f"plates_{name}.json"
    with ChatServer(lambda asked, _: completion(answers[content(asked.body)])) as server:
        sweep = ["sweep", "sweep.yaml", "--base-url", server.url]
        assert main(sweep) == 0
        assert {asked.body["model"] for asked in server.asked} == {"acme/Plates-7B"}
        assert metric_values(path)["f1"] == 100
        run = read_identity(path)
        assert run is not None
        ((plugin, version),) = run.plugins.items()
        assert plugin == "findit_models.yaml:plates"
        # Another model in the file changes nothing; neither does saying the same again.
        assert main(["models", "--add", file_of("- {name: other, space: unit}")]) == 0
        assert main(["models", "--add", file_of(SAVED), "--replace"]) == 0
        assert main(sweep) == 0
        assert len(server.asked) == 2
        # Described anew, it is another.
        other = SAVED.replace("acme/Plates-7B", "acme/Plates-9B")
        assert main(["models", "--add", file_of(other), "--replace"]) == 0
        capsys.readouterr()
        for command in (sweep, ["score", str(path)]):
            assert main(command) == 2
            reported = capsys.readouterr().err
            assert f"plug-in {plugin}: recorded {version}, now sha256:" in reported
        # Somewhere else it is asked anew: no answer of the other is taken for its own.
        assert main([*sweep, "--work-dir", "else", "--journal", "outputs/calls.jsonl"]) == 0
        assert [item.body["model"] for item in server.asked[2:]] == ["acme/Plates-9B"] * 2
    assert main(["models", "--remove", "plates"]) == 0
    assert main(["score", str(path)]) == 2
    assert "not here: python run_findit.py models --add FILE.yaml" in capsys.readouterr().err
    assert main(["score", str(path), "--force"]) == 0
    assert metric_values(path)["f1"] == 100
    said_in: dict[str, Any] = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
    assert any(plugin in item for item in said_in["forced"])


def test_an_entry_of_a_sweep_describes_a_model_too() -> None:
    add(Path(file_of(SAVED)), replaces=False)
    text = "models:\n- {name: mine, like: plates, checkpoint: a/b, space: pixels}\ndatasets: [Demo]"
    (entry,) = parse_sweep(text).models
    assert (entry.like, entry.checkpoint, entry.space) == ("plates", "a/b", "pixels")
    with pytest.raises(ConfigError, match=r"line 2: .*did you mean plates\?"):
        parse_sweep(text.replace("like: plates", "like: plate"))


def test_a_row_cannot_be_like_one_below_it() -> None:
    rows = "- {name: a, like: b}\n- {name: b, space: unit}"
    with pytest.raises(ConfigError, match="line 1, a: like: no model 'b'"):
        add(Path(file_of(rows)), replaces=False)


def test_a_name_is_removed_where_there_is_none(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--remove", "my-nano"]) == 2
    assert capsys.readouterr().err == "error: no custom model 'my-nano'\n"
