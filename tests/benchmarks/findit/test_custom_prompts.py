"""The user's own words: what a template renders, refuses and records, whatever model is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boards import JSON, board, runs
from chat_server import ChatServer, completion
from PIL import Image
from scored_runs import World, speaking
from test_prompts import query_for

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.findit import BENCHMARK, parse
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import Prompts
from vlmeval_findit.leaderboard import make_board, remarks
from vlmeval_findit.models import (
    GenerateClient,
    content_request,
    from_host_message,
    messages_request,
    to_host_message,
)
from vlmeval_findit.protocol import (
    Batch,
    CustomPrompt,
    Identity,
    Message,
    Part,
    PromptSet,
    Reference,
    TemplateError,
    custom_prompt,
    image,
    prompt_set,
    system,
    text,
)
from vlmeval_findit.report import gather_transcripts
from vlmeval_findit.scoring import Run
from vlmeval_findit.storage import image_folder, read_identity

__all__ = ["board", "runs"]

SYSTEM = "You are a detector."
TEMPLATE = """\
{% for image in images %}
{{ image }}
{% endfor %}
Locate <ref>{{ label }}</ref> ({{ frames }}, {{ width }}x{{ height }}).
{{ format_sentence }} {{ if_nothing }}
For example {{ example }} for {{ format }}.
"""


def message(name: str, prompt: CustomPrompt) -> Message:
    variant = parse(name)
    return prompt_set(BENCHMARK, prompt).message(query_for(variant), variant)


def test_a_template_renders_what_the_prompts_know() -> None:
    asked = message("FindIt_D3_xywh_text", CustomPrompt(SYSTEM, TEMPLATE))
    assert asked[:2] == (system(SYSTEM), image("1.jpg"))
    assert asked[2].value.strip() == (
        "Locate <ref>a sleeping dog</ref> (1, 640x480).\nReturn one bounding box for each, each "
        "on a line of its own, written as: [x_min, y_min, width, height]. If nothing in the image "
        "matches, answer with an empty list: [].\n"
        "For example [x_min, y_min, width, height] for xywh_text."
    )
    in_json = message("FindIt_Pascal_xyxy_json_bbox_2d", CustomPrompt(template=TEMPLATE))
    form = '[{"bbox_2d": [x_min, y_min, x_max, y_max]}, ...]'
    assert in_json[-1].value.endswith(f"\nFor example {form} for xyxy_json_bbox_2d.")
    words = CustomPrompt(template="{{ expression or 'a name' }}")
    assert message("FindIt_RefCOCO_xyxy_json", words)[-1].value == "dog on the left"
    assert message("FindIt_Pascal_xyxy_json", words)[-1].value == "a name"


def test_without_places_images_stand_as_usual() -> None:
    name = "FindIt_HRInsDet_easy_xyxy_json"
    *images, last = BENCHMARK.prompts()[0].message(query_for(parse(name)), parse(name))
    asked = message(name, CustomPrompt(template="{{ find }} {{ request | length > 9 }}"))
    found = "Find every instance of the object of the reference images in the scene."
    assert asked == (*images, text(f"{found} True"))
    placed = message(name, CustomPrompt(template="{{ images[2] }}a{{ images[0] }}{{ images[1] }}"))
    assert [isinstance(part, Reference) for part in placed] == [False, False, True, True]
    assert message(name, CustomPrompt(SYSTEM))[1:] == (*images, last)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ lable }}", "unknown variable 'lable': did you mean label"),
        ("{{ prompt }}", r"unknown variable 'prompt' \([^()]*images\)$"),
        ("{{ images[0] }}{{ images[0] }}", "row 7 has 1 images, and the template puts 2 there"),
        ("{{ label.__class__.__mro__ }}", "row 7: access to attribute '__class__'"),
        ("{% if caption %}{{ caption }}{% endif %}", "row 7: the template renders to nothing"),
    ],
)
def test_templates_that_are_refused(template: str, why: str) -> None:
    with pytest.raises(TemplateError, match=f"--prompt-template: .*{why}"):
        message("FindIt_Pascal_xyxy_json", CustomPrompt(template=template))
    letters = benchmark_of("VPBench_Scenes_mini")  # have no parts, but take a system text
    assert prompt_set(letters, CustomPrompt(SYSTEM)).name.startswith("custom-")
    with pytest.raises(TemplateError, match="prompts of VP-Bench have no parts to put into a temp"):
        prompt_set(letters, CustomPrompt(template="{{ label }}"))


def test_files_that_are_refused(tmp_path: Path) -> None:
    def given(content: bytes) -> str:
        (tmp_path / "t").write_bytes(content)
        return str(tmp_path / "t")

    with pytest.raises(ValueError, match=r"--prompt-template .*/t: the file is empty"):
        custom_prompt(None, given(b" \n"))
    with pytest.raises(ValueError, match=r"--system .*/t, line 1: byte 0xff is not UTF-8"):
        custom_prompt(given(b"\xff\xfe"), None)
    with pytest.raises(ValueError, match=r"--prompt-template .*/t, line 2: unexpected"):
        custom_prompt(None, given(b"\n{{ label"))
    assert custom_prompt(given(b"\xef\xbb\xbfa\n\n"), None) == CustomPrompt("a")


@pytest.mark.parametrize(
    "command", ["run --data FindIt_Demo_xyxy_json", "search --data Demo", "probe"]
)
def test_refused_before_anything_is_asked(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jinja").write_text("{{ lable }}")
    served = "--model Qwen3-VL=mine --base-url http://localhost:1/v1"
    for words, why in (
        (f"{served} --prompt-template t.jinja", "unknown variable 'lable': did you mean label"),
        (f"{served} --system nowhere", "--system nowhere: the file does not exist"),
        ("--model FullImage --system t.jinja", "--system has no effect: FullImage is a"),
    ):
        assert main([*command.split(), *words.split()]) == 2
        assert why in capsys.readouterr().err


def test_a_system_text_on_every_wire() -> None:
    asked = message("FindIt_Pascal_xyxy_json", CustomPrompt(SYSTEM))
    host = to_host_message(asked)
    assert host[0] == {"type": "text", "value": SYSTEM, "system": True}
    assert from_host_message(host) == asked
    user = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "system", "content": "b"}, user]}
    assert messages_request(body) == {**body, "messages": [user], "system": "b"}
    request = content_request(body)
    assert request["systemInstruction"] == {"parts": [{"text": "b"}]}
    assert request["contents"] == [{"role": "user", "parts": [{"text": "a"}]}]


def test_a_system_text_and_a_user_text_are_different_calls() -> None:
    dataset = load_dataset("FindIt_Demo_xyxy_json")

    def shared(first: Part) -> tuple[bytes, str]:
        words = PromptSet("test", lambda query, variant: (first, image(query.images[0])))
        prompts = Prompts(dataset, image_folder(dataset.variant.images), words)
        return prompts.hashes((0,)).sha256, prompts.hash

    as_system = shared(system(SYSTEM))
    as_user = shared(text(SYSTEM))
    assert as_system[0] != as_user[0]
    assert as_system[1] != as_user[1]


@pytest.mark.parametrize("takes_system", [True, False])
def test_only_models_with_system_texts_get_one(takes_system: bool) -> None:
    got: list[Any] = []

    def generate(message: Any, dataset: str) -> str:
        got.extend(message)
        return "[]"

    model = SimpleNamespace(generate=generate, takes_system=takes_system)
    asked = message("FindIt_Pascal_xyxy_json", CustomPrompt(SYSTEM))
    GenerateClient(model).ask(Batch((asked,), (parse(JSON),), False))
    assert [part["type"] for part in got] == [*["text"] * takes_system, "image", "text"]
    assert ("system" in got[0]) is takes_system


SWEEP = """\
models:
- {name: Qwen3-VL, served: mine, base_url: URL, system: system.txt, prompt_template: t.jinja}
- {name: Qwen3-VL-8B, served: mine, base_url: URL}
datasets: [FindIt_Demo_xyxy_json]
limit: 3
"""


def test_a_sweep_uses_each_models_prompts_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("system.txt").write_text(f"{SYSTEM}\n")
    Path("t.jinja").write_text("{{ images[0] }}Locate {{ label }}: {{ example }}")
    with ChatServer(lambda asked, number: completion("[]")) as server:
        Path("sweep.yaml").write_text(SWEEP.replace("URL", server.url))
        assert main(["sweep", "sweep.yaml"]) == 0
        bodies = [asked.body for asked in server.asked]
        assert main(["sweep", "sweep.yaml"]) == 0
        assert len(server.asked) == len(bodies) == 6, "nothing is asked twice"
        Path("t.jinja").write_text("Locate {{ label }}: {{ example }}")
        capsys.readouterr()
        assert main(["sweep", "sweep.yaml"]) == 2
        assert "prompts: recorded custom-" in capsys.readouterr().err
    custom = [body["messages"] for body in bodies if len(body["messages"]) == 2]
    assert len(custom) == 3
    for before, asked in custom:
        assert before == {"role": "system", "content": SYSTEM}
        assert asked["content"][1]["text"].startswith("Locate ")
    path = Path("outputs/Qwen3-VL/Qwen3-VL_FindIt_Demo_xyxy_json.json")
    identity = read_identity(path)
    assert identity is not None
    assert str(identity.prompts).startswith("custom-")
    assert identity.custom_prompt["system"] == SYSTEM
    assert "Locate" in str(identity.custom_prompt["template"])
    assert main(["compare", str(path), "outputs/Qwen3-VL-8B", "--json", "c.json"]) == 0
    (compared,) = json.loads(Path("c.json").read_text())
    assert compared["a"]["prompts"] == identity.prompts
    out = " ".join(capsys.readouterr().out.split())
    assert f"asked with a system text and a prompt template of its user ({identity.prompts})" in out


def test_a_model_that_is_opened_is_asked_in_these_words(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Locate {{ label }}.")
    with ChatServer(lambda asked, number: completion("[]")) as server:
        words = {"system": tmp_path / "t", "prompt_template": tmp_path / "t"}
        model = findit.open_model("mine", server.url, like="Qwen3-VL", **words)
        model.ask(Image.new("RGB", (9, 9)), "dog")
    before, asked = server.asked[0].body["messages"]
    assert before["content"] == "Locate {{ label }}."
    assert asked["content"][1]["text"] == "Locate dog."
    with pytest.raises(ValueError, match="system has no effect: FullImage is a baseline"):
        findit.open_model("FullImage", system=tmp_path / "t")


def test_other_words_are_told_and_not_ranked_with_the_standard(
    world: World, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = CustomPrompt(SYSTEM, "Locate {{ label }}.")
    prompts = prompt_set(BENCHMARK, prompt)

    def change(asked: Identity) -> Identity:
        words = {"prompts": prompts.name, "prompt_hash": prompts.hash(load_dataset(JSON))}
        custom = {"system": prompt.system, "template": prompt.template}
        return replace(asked, **words, custom_prompt=custom)  # type: ignore[arg-type]

    other = world.run("Other", JSON, speaking(JSON, 1.0), change=change)
    mixed = make_board([*runs, other])
    assert "Other" not in mixed.models
    (excluded,) = mixed.excluded
    asked = f"asked with a system text and a prompt template of its user ({prompts.name})"
    assert excluded.reason == f"{asked}, the rest findit-own-1"
    (note,) = [each for each in remarks(make_board([other])) if each.title == "Custom prompts"]
    assert note.lines == [f"Other on {JSON}: {asked}"]
    assert not [each for each in remarks(make_board(runs)) if each.title == "Custom prompts"]

    world.at_hand(monkeypatch)
    ((transcript,), missing) = gather_transcripts([other])
    assert not missing
    assert transcript.prompt(0).startswith(f"[system: {SYSTEM}]\n[image: ")
    assert transcript.prompt(0).splitlines()[-1].startswith("Locate ")
