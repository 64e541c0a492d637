"""Only VLMEvalKit's models, datasets and runner import VLMEvalKit: every kind, every command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer
from chat_server import ChatServer, completion
from fake_program import Machine
from host_runs import environment, run, run_anew
from paths import SUPPORT
from provider_servers import OPENAI, address

from vlmeval_findit.cli import main
from vlmeval_findit.core import vlmevalkit
from vlmeval_findit.engine import (
    KINDS,
    Asking,
    InVLMEvalKit,
    deployment_of,
)
from vlmeval_findit.models import SHIPPED, ModelEntry

DATA = "FindIt_Demo_xyxy_json"
BOX = "[[100, 100, 500, 500]]"
COMMANDS = ("run", "sweep", "search", "probe", "reproduce")
OF_CELLS = ("sweep", "search")
"""Those that take --batch."""


@dataclass(frozen=True)
class Way:
    """A model of a kind as it is typed, with flags; ``entry`` is what else a file says of it."""

    model: str
    flags: Sequence[str] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = COMMANDS

    def lines(self) -> list[list[str]]:
        """Return its command lines; each has a folder of its own."""
        name, _, served = self.model.partition("=")
        entry = {"name": name, **({"served": served} if served else {}), **self.entry}
        sweep = {"models": [entry], "datasets": [DATA], "limit": 1}
        Path("sweep.yaml").write_text(json.dumps(sweep))
        words = {
            "run": ["--data", DATA, "--model", self.model, "--limit", "1"],
            "sweep": ["sweep.yaml"],
            "search": ["--data", "Demo", "--model", self.model, "--limit", "1"],
            "probe": ["--model", self.model, "--limit", "10"],
            "reproduce": [self.model, "--limit", "1"],
        }
        return [
            [command, *words[command], *self.flags, "--work-dir", command]
            for command in self.commands
        ]


def _box(*_: Any) -> Any:
    return completion(BOX)


NANO = SHIPPED["FindIt-Nano"]


def _at_server(servers: ExitStack) -> Way:
    url = servers.enter_context(ChatServer(_box)).url
    return Way("FindIt-Nano=m", ["--base-url", url])


def _at_openrouter(servers: ExitStack) -> Way:
    url = servers.enter_context(ChatServer(_box)).url
    return Way("GPT-5.4", variables={"OPENROUTER_API_KEY": "k", "OPENROUTER_BASE_URL": url})


def _at_provider(servers: ExitStack) -> Way:
    server = servers.enter_context(ChatServer(OPENAI.answering(lambda body: BOX)))
    _, key = OPENAI.key
    where = {
        "OPENAI_API_KEY": key.removeprefix("Bearer "),
        "OPENAI_BASE_URL": address(server, OPENAI),
    }
    return Way("GPT-5.4", ["--provider", "openai"], variables=where)


def _in_batches(servers: ExitStack) -> Way:
    url = servers.enter_context(BatchServer()).url
    return Way("FindIt-Nano=m", ["--batch", "openai", "--base-url", url], commands=OF_CELLS)


def _served(servers: ExitStack) -> Way:
    machine = Machine(Path("machine"))
    servers.callback(machine.ends)
    flags = ["--serve", "vllm", "--gpus", "1"]
    return Way("FindIt-Nano", flags, variables=machine.environment)


HERE: Mapping[str, Way] = {
    "LocalBaseline": Way("FullImage"),
    "Local": Way("FindIt-Nano"),
    "LocalCheckpoint": Way(f"FindIt-Nano={NANO}", entry={"served": None, "checkpoint": NANO}),
}
ON_RAY = Way("FindIt-Nano", ["--executor", "ray", "--replicas", "1"], commands=COMMANDS[1:])
ELSEWHERE: Mapping[str, Callable[[ExitStack], Way]] = {
    "AtServer": _at_server,
    "AtOpenRouter": _at_openrouter,
    "AtProvider": _at_provider,
    "InBatches": _in_batches,
    "Served": _served,
    "OnRay": lambda servers: ON_RAY,
}
OF_OURS = {**{kind: lambda servers, way=way: way for kind, way in HERE.items()}, **ELSEWHERE}


def test_every_kind_but_vlmevalkits_has_a_way() -> None:
    assert {*OF_OURS} == {kind.__name__ for kind in KINDS} - {InVLMEvalKit.__name__}


@pytest.fixture
def servers(tmp_path: Path, lmu_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMUData", str(lmu_data))
    with ExitStack() as stack:
        yield stack


def check(kind: str, servers: ExitStack, where: str, lmu: Path) -> None:
    """Run the commands of a kind in a process; ``where``: as of without_host.py."""
    way = OF_OURS[kind](servers)
    # A baseline needs nothing that the warm process has imported.
    start = run_anew if kind == "LocalBaseline" else run
    lines = way.lines()
    program = [str(SUPPORT / "without_host.py")]
    variables = environment(lmu, **way.variables)
    done = start(program, [where, json.dumps(lines)], Path.cwd(), variables)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("["), done.stdout
    ended = dict(zip(way.commands, json.loads(last), strict=True))
    assert not [name for name, (_, imports) in ended.items() if imports]
    # Probes may find nothing to judge, and some models have no published figure.
    asked = {name: status for name, (status, _) in ended.items() if name in ("run", *OF_CELLS)}
    assert asked == dict.fromkeys(asked, 0), done.stdout


@pytest.mark.parametrize(
    "kind",
    [
        "LocalBaseline",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in OF_OURS
            if kind != "LocalBaseline"
        ),
    ],
)
def test_no_command_imports_vlmevalkit_for_a_model_of_ours(
    kind: str, servers: ExitStack, lmu_data: Path
) -> None:
    check(kind, servers, "HERE", lmu_data)


@pytest.mark.parametrize(
    "kind",
    [
        "LocalBaseline",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("Local", "LocalCheckpoint")),
    ],
)
def test_models_here_answer_where_there_is_no_vlmevalkit(
    kind: str, servers: ExitStack, lmu_data: Path
) -> None:
    check(kind, servers, "NOWHERE", lmu_data)


def test_only_vlmevalkits_models_are_made_in_vlmevalkit(monkeypatch: pytest.MonkeyPatch) -> None:
    class AskedError(Exception):
        pass

    def host() -> Any:
        raise AskedError

    monkeypatch.setattr(
        "vlmeval_findit.engine.deployment_kinds.may_have_model", lambda name: name == "Theirs"
    )
    theirs = deployment_of(ModelEntry("Theirs"), Asking(host=host))
    for needed in (theirs.ready, theirs.backend):
        with pytest.raises(AskedError):
            needed()
    for entry in (
        ModelEntry("FullImage"),
        ModelEntry("FindIt-Nano"),
        ModelEntry("x", checkpoint=NANO, like="FindIt-Nano"),
    ):
        for on_ray in (False, True):
            ours = deployment_of(entry, Asking(host=host, on_ray=on_ray))
            assert ours.ready().backend() is not None


@pytest.mark.parametrize("command", ["run", "sweep", "search"])
def test_an_unknown_model_may_be_vlmevalkits(
    command: str,
    servers: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where there is no VLMEvalKit, nobody knows its names."""
    for place in ("engine.deployment_kinds", "core.vlmevalkit", "cli.run"):
        monkeypatch.setattr(f"vlmeval_findit.{place}.package_folder", lambda: None)
    vlmevalkit._text.cache_clear()
    line = next(
        line
        for line in Way("InternVL2-8B", ["--space", "pixels"], {"space": "pixels"}).lines()
        if line[0] == command
    )
    assert main(line) == 2
    vlmevalkit._text.cache_clear()
    error = capsys.readouterr().err
    assert "unknown model 'InternVL2-8B'" in error
    assert re.search(r"[.?] For a model of VLMEvalKit's, install it: pip install ", error)


def test_a_dataset_that_is_not_findits_needs_vlmevalkit(
    servers: ExitStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("core.vlmevalkit", "cli.run"):
        monkeypatch.setattr(f"vlmeval_findit.{place}.package_folder", lambda: None)
    why = "other datasets than FindIt's need VLMEvalKit's runner, and VLMEvalKit is "
    assert main(["run", "--data", "MMStar", "--model", "FindIt-Nano"]) == 2
    assert f"--data MMStar: {why}" in capsys.readouterr().err
    assert main(["run", "--data", "Scenes_mini_xyxy_json", "--model", "FindIt-Nano"]) == 2
    error = capsys.readouterr().err
    assert "did you mean FindIt_Scenes_mini_xyxy_json?\n" in error
