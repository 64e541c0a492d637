"""Questions that are not FindIt's, asked of every class of models: a text comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas
import pytest
from chat_server import Answer, Asked, ChatServer, completion, error
from host_runs import RUN_FINDIT, environment, require_host, run
from PIL import Image
from provider_servers import KEY, OPENAI, address

from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import HttpService, Served, deployment_of, prompts_of
from vlmeval_findit.models import Endpoint, ModelEntry, to_host_message
from vlmeval_findit.serving import ServeOptions

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
OTHERS = (None, "MMBench_DEV_EN", "mcq")
FAILED = "Failed to obtain answer via API."


@pytest.fixture(autouse=True)
def _registered(lmu: Path) -> None:
    from vlmeval_findit.host import register

    register()


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{colour}.png" for colour in ("red", "blue")]
    for path in paths:
        Image.new("RGB", (64, 48), path.stem).save(path)
    return list(map(str, paths))


def messages(images: list[str]) -> Mapping[str, tuple[Any, list[str]]]:
    """Return messages as VLMEvalKit has them, and what should be asked: kinds, texts themselves."""
    red, blue = images

    def part(kind: str, value: str, **more: str) -> dict[str, str]:
        return {"type": kind, "value": value, **more}

    return {
        "a text": ("hello", ["hello"]),
        "a part": (part("text", "hello"), ["hello"]),
        "a file and a text": ([red, "which colour?"], ["image", "which colour?"]),
        "interleaved parts": (
            [part("text", "a"), part("image", red), part("text", "b"), part("image", blue)],
            ["a", "image", "b", "image"],
        ),
        "a system text": (
            [part("image", red), part("text", "c"), part("text", "Be brief.", role="system")],
            ["image", "c"],
        ),
        "a web address": (["http://127.0.0.1:9/page"], ["http://127.0.0.1:9/page"]),
    }


# --- models over HTTP -----------------------------------------------------------------------------


def at_server(server: ChatServer, patch: pytest.MonkeyPatch) -> Any:
    import vlmeval.api

    return vlmeval.api.FindItServer("Qwen3.5-4B-nothink", server.url, retry=1)


def at_provider(server: ChatServer, patch: pytest.MonkeyPatch) -> Any:
    import vlmeval.api

    patch.setenv(OPENAI.variable, KEY)
    url = address(server, OPENAI).removesuffix("/v1") + "/api/v1"
    return vlmeval.api.FindItProvider(OPENAI.model, "openai", base_url=url, retry=1)


def at_openrouter(server: ChatServer, patch: pytest.MonkeyPatch) -> Any:
    import vlmeval.api

    patch.setenv("OPENROUTER_API_KEY", "none")
    patch.setenv("OPENROUTER_BASE_URL", server.url)
    return vlmeval.api.FindItOpenRouter("GPT-5.4", retry=1)


def served(server: ChatServer, patch: pytest.MonkeyPatch) -> Any:
    """Return a model whose space, with transformers, is known only for other programs."""
    import vlmeval.api

    patch.setattr(ServeOptions, "check", lambda self: None)
    service = lambda self: HttpService(self.model.chat(), [Endpoint(server.url)])  # noqa: E731
    patch.setattr(Served, "service", service)
    serve = {"program": "transformers"}
    return vlmeval.api.FindItServed("Qwen2.5-VL-7B", serve=serve, retry=1)


WAYS: tuple[Callable[..., Any], ...] = (at_server, at_provider, at_openrouter, served)


def asked_parts(asked: Asked) -> list[str]:
    content = asked.body["messages"][-1]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [part["text"] if part["type"] == "text" else "image" for part in parts]


@pytest.mark.parametrize("way", WAYS)
def test_services_answer_any_question_with_text(
    way: Callable[..., Any], images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda *_: completion("a red one")) as server:
        model = way(server, monkeypatch)
        for dataset in OTHERS:
            for name, (message, expected) in messages(images).items():
                assert model.generate(message, dataset=dataset) == "a red one", name
                assert asked_parts(server.asked[-1]) == expected, name
        limits = {"max_tokens", "max_completion_tokens"} & server.asked[-1].body.keys()
        reasons = way in (at_provider, at_openrouter)  # its row's limit covers the reasoning
        assert [server.asked[-1].body[name] >= 768 for name in limits] == [True]
        assert reasons or server.asked[-1].body["max_tokens"] == 768
        assert reasons or server.asked[-1].body["temperature"] == 0.0
        system = next(a for a in server.asked if len(a.body["messages"]) == 2)
        assert system.body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert model.is_api
        assert model.INTERLEAVE
        assert model.generate_inner("hello") == (0, "a red one", "")
    if way is at_server:
        assert server.asked[-1].body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("way", WAYS[:3])  # Boxes of the fourth are in an unknown space
def test_services_answer_findits_queries_with_records(
    way: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = to_host_message(prompts_of(load_dataset(DATA)).message(0))
    with ChatServer(lambda *_: completion("[]")) as server:
        reply = way(server, monkeypatch).generate(query, dataset=DATA)
    assert reply["prediction"] == "[]"
    assert json.loads(reply["extra_records"])["findit"]["call"]["status"] == 200


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "why"),
    [(error(400, "too nice"), "HTTP 400: too nice"), (completion(""), "reply is empty")],
)
def test_failed_calls_are_no_answers(
    way: Callable[..., Any], answer: Answer, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda *_: answer) as server:
        model = way(server, monkeypatch)
        for dataset in OTHERS:
            said = model.generate("hello", dataset=dataset)
            assert said.startswith(FAILED)
            assert why in said
        assert model.generate_inner("hello")[0] == -1


VIDEO = [{"type": "video", "value": "a.mp4"}, {"type": "text", "value": "what happens?"}]
TURNS = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("message", "why"), [(VIDEO, "and no video"), (TURNS, "a conversation")])
def test_what_models_cannot_take_is_refused(
    way: Callable[..., Any], message: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda *_: completion("x")) as server:
        model = way(server, monkeypatch)
        with pytest.raises(ValueError, match=why):
            model.generate(message, dataset=None)
        assert server.asked == []


# --- models in this process -----------------------------------------------------------------------


@pytest.mark.parametrize("dataset", OTHERS)
def test_baselines_refuse_what_is_not_findits(dataset: str | None) -> None:
    from vlmeval.config import supported_VLM

    with pytest.raises(ValueError, match=r"^FullImage answers FindIt's queries only: ask a model$"):
        supported_VLM["FullImage"]().generate("hello", dataset=dataset)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Qwen3-VL", "Gemma 4", "GLM-4.6V", "Qwen3.5-nothink"])
def test_local_models_answer_any_question(
    family: str, images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from tiny_checkpoints import build
    from vlmeval.vlm import FindItLocalModel

    from vlmeval_findit.models import MODELS

    checkpoint = str(build(family, tmp_path / "tiny"))
    model = FindItLocalModel(family, checkpoint, max_new_tokens=4)
    encoded = []
    encoder = model._client.runner._loaded.encoder
    chat = encoder.chat
    monkeypatch.setattr(encoder, "chat", lambda m: encoded.append(m) or chat(m))
    for name, (message, expected) in messages(images).items():
        said = {model.generate(message, dataset=dataset) for dataset in OTHERS}
        assert len(said) == 1, name
        assert all(isinstance(text, str) and text for text in said)
        kinds = [part.value if part.kind.value == "text" else "image" for part in encoded[-1]]
        assert kinds[-len(expected) :] == expected, name
    local = MODELS[family].local
    assert local is not None
    assert encoder._switches == dict(local.template)
    missing = [{"type": "image", "value": str(tmp_path / "gone.png")}]
    assert model.generate(missing).startswith(FAILED)
    for message, why in ((VIDEO, "and no video"), (TURNS, "a conversation")):
        with pytest.raises(ValueError, match=why):
            model.generate(message)
    query = to_host_message(prompts_of(load_dataset(DATA)).message(0))
    assert set(model.generate(query, dataset=DATA)) == {"prediction", "extra_records"}


def without_times(predictions: Path) -> list[Any]:
    """Return the rows of a prediction file, without what a clock measured."""
    rows: list[Any] = json.loads(predictions.read_text())
    for row in rows:
        del row["call_time"]
    return rows


@pytest.mark.slow
def test_one_command_asks_localisation_and_perception(tmp_path: Path) -> None:
    """The user's table is answered as VLMEvalKit writes it, FindIt's as without it."""
    require_host()
    pytest.importorskip("torch")
    env = environment(tmp_path / "lmu")
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    header = "index\timage_path\tquestion\tA\tB\tanswer"
    row = f"0\t{tmp_path / 'red.png'}\twhich colour?\tred\tblue\tA"
    (tmp_path / "lmu/mcq.tsv").write_text(f"{header}\n{row}\n")
    ours = "FindIt_Scenes_mini_xyxy_json"
    words = ["--model", "FindIt-Nano", "--limit", "2", "--work-dir"]
    places = ("both", "alone")
    done = run(RUN_FINDIT, ["--data", "mcq", ours, *words, "both"], tmp_path, env)
    assert done.returncode == 0, done.stdout[-2000:]
    alone = run(RUN_FINDIT, ["--data", ours, *words, "alone"], tmp_path, env)
    assert alone.returncode == 0, alone.stdout[-2000:]
    both, single = (tmp_path / name / f"FindIt-Nano/FindIt-Nano_{ours}.json" for name in places)
    assert without_times(both) == without_times(single)
    from vlmeval.smp import load

    (answers,) = {path.resolve() for path in (tmp_path / "both").rglob("FindIt-Nano_mcq.xlsx")}
    (answer,) = load(str(answers))["prediction"]
    assert isinstance(answer, str)
    assert "prediction" not in answer


# --- by VLMEvalKit's loop, of a name on the command line ------------------------------------------


class OneRow:
    """A dataset of somebody's with one question."""

    dataset_name = "mcq"

    def __init__(self) -> None:
        self.data = pandas.DataFrame({"index": [0], "question": ["which?"]})

    def __len__(self) -> int:
        return len(self.data)

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        return [{"type": "text", "value": line["question"]}]

    def dump_image(self, line: Any) -> None: ...


def asked_by_name(name: str, folder: Path) -> tuple[Any, list[str]]:
    """Return what the loop goes on with, and the stored answers."""
    import vlmeval.inference

    how = {"model_name": name, "dataset": OneRow(), "work_dir": str(folder)}
    after = vlmeval.inference.infer_data_job(name, **how)
    (path,) = folder.glob(f"{name}_mcq.xlsx")
    return after, list(pandas.read_excel(path)["prediction"])


def test_the_engine_asks_a_name_that_it_deploys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.host import preflight

    monkeypatch.delenv("PRED_FORMAT", raising=False)
    with ChatServer(lambda *_: completion("A")) as server:
        name = "Deployed-free"
        entry = ModelEntry(name, base_url=server.url, like="Qwen3-VL")
        with preflight.models_of_command([deployment_of(entry)]):
            assert asked_by_name(name, tmp_path) == (name, ["A"])


def test_a_local_model_gets_its_own_arguments_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VLMEvalKit tells models of some names to use vLLM or not."""
    from vlmeval.vlm import FindItLocalModel

    made: list[dict[str, Any]] = []

    def init(self: Any, **arguments: Any) -> None:
        made.append(arguments)

    monkeypatch.delenv("PRED_FORMAT", raising=False)
    monkeypatch.setattr(FindItLocalModel, "__init__", init)
    monkeypatch.setattr(FindItLocalModel, "generate", lambda self, message, dataset: "A")
    monkeypatch.setattr(FindItLocalModel, "on_this_machine", lambda answering, **_: answering)
    _, answers = asked_by_name("Qwen2.5-VL-7B", tmp_path)
    assert answers == ["A"]
    assert [{*arguments} for arguments in made] == [{"like", "model_path"}]
