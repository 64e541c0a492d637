"""Which proxy of the environment a request takes, and which are refused before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import ChatServer, completion
from few_fast import few_fast

from vlmeval_findit.cli import main
from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import Endpoint, ProxyError, chat_model, proxy_for
from vlmeval_findit.protocol import say_once

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_direct"),
    [
        ("10.0.0.0/8", "http://10.1.2.3:8000/v1", True),
        ("10.0.0.0/8", "http://11.1.2.3:8000/v1", False),
        ("192.168.1.7", "http://192.168.1.7/v1", True),
        (".cluster.local", "http://gpu.cluster.local:8000/v1", True),
        ("cluster.local", "http://gpu.cluster.local/v1", True),
        ("gpu:8000", "http://gpu:8000/v1", True),
        ("*", "https://example.org/v1", True),
        ("", "https://example.org/v1", False),
        # Loopback needs no proxy, whatever is said.
        ("", "http://127.0.0.1:8000/v1", True),
        ("", "http://127.8.9.1:8000/v1", True),
        ("", "http://[::1]:8000/v1", True),
        ("", "http://localhost:8000/v1", True),
    ],
)
@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_hosts_that_need_no_proxy(
    monkeypatch: pytest.MonkeyPatch, variable: str, no_proxy: str, url: str, is_direct: bool
) -> None:
    monkeypatch.setenv(variable, "proxy.invalid:3128")
    if variable == "http_proxy":
        monkeypatch.setenv("https_proxy", "proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    proxy = proxy_for(url)
    assert (proxy is None) is is_direct
    assert proxy is None or proxy.address == "http://proxy.invalid:3128"


KINDS = ("socks4", "socks4a", "socks5", "socks5h", "SOCKS5H", "quic", "ftp")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_of_another_kind_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, kind: str
) -> None:
    monkeypatch.setenv(variable, f"{kind}://me:pr0xy-password@127.0.0.1:1080")
    with pytest.raises(ProxyError) as refused:
        proxy_for("http://llm.example:8000/v1")
    assert f"{variable}={kind.lower()}://127.0.0.1:1080: proxies of the kind" in str(refused.value)
    assert "pr0xy" not in str(refused.value)
    assert proxy_for("http://localhost:8000/v1") is None, "asked without it"
    monkeypatch.setenv("NO_PROXY", "llm.example")
    assert proxy_for("http://llm.example:8000/v1") is None, "asked without it"


@pytest.mark.parametrize("address", ["http://proxy:port", "http://", "http://[::1", "://"])
def test_a_proxys_address_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", address)
    with pytest.raises(ProxyError, match="Type HTTP_PROXY=http://HOST:PORT"):
        proxy_for("http://llm.example:8000/v1")


def test_small_letters_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    found = proxy_for("http://llm.example:8000/v1")
    assert found is not None
    assert found.shown == "http://proxy.example:3128"


DATA = ["--data", "FindIt_Scenes_mini_xyxy_json", "--limit", "1", "--work-dir", "never-made"]


@pytest.mark.parametrize(
    "model",
    [
        ["--model", "Qwen3-VL=stub", "--base-url", "http://llm.example:8000/v1"],
        ["--model", "GPT-5.4", "--provider", "openai", "--key", "none"],
        ["--model", "GPT-5.4"],
    ],
    ids=["server", "provider", "OpenRouter"],
)
def test_a_run_behind_it_is_refused_before_any_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: list[str]
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9080")
    monkeypatch.setenv("OPENROUTER_API_KEY", "none")
    assert main(["run", *DATA, *model]) == 2
    assert "ALL_PROXY=socks5h://127.0.0.1:9080: proxies of the kind" in capsys.readouterr().err


def test_a_model_in_python_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9080")
    with pytest.raises(ProxyError, match="not supported"):
        HttpService(chat_model("Qwen3-VL"), [Endpoint("http://llm.example:8000/v1")])


# --- a proxy in force is told, and recorded ---

FAR = "http://gpu.invalid:8000/v1"
ASKS = {
    "run": ["run", "--data", "FindIt_Demo_xyxy_json", "--limit", "1"],
    "sweep": ["sweep", "sweep.yaml"],
    "probe": ["probe", "--limit", "20"],
    "search": ["search", "--data", "Demo", "--limit", "1"],
}


@pytest.fixture
def proxy(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Return a proxy that answers in place of the server behind it."""
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)
    sweep = {
        "models": [{"name": "Qwen3-VL", "base_url": FAR}, "FullImage"],
        "datasets": ["FindIt_Demo_xyxy_json"],
        "limit": 1,
    }
    Path("sweep.yaml").write_text(json.dumps(sweep))
    with ChatServer(lambda asked, number: completion("[]")) as started:
        address = started.url.replace("http://", "http://me:pr0xy-password@").removesuffix(
            "/api/v1"
        )
        monkeypatch.setenv("HTTP_PROXY", address)
        yield started


def line(command: str) -> list[str]:
    model = [] if command == "sweep" else ["--model", "Qwen3-VL", "--base-url", FAR]
    return [*ASKS[command], *model, "--work-dir", "out"]


@pytest.mark.parametrize("command", few_fast(ASKS, 2))
def test_the_proxy_of_a_server_is_told_once_and_recorded(
    command: str,
    proxy: ChatServer,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = proxy.url.removesuffix("/api/v1")
    for _ in range(2):
        say_once.cache_clear()
        main(line(command))
        said = "".join([*capsys.readouterr(), caplog.text])
        caplog.clear()
        told = f"{FAR}: asked through the proxy {shown} (HTTP_PROXY); NO_PROXY names hosts"
        assert said.count(told) == 1
        assert "pr0xy" not in said
    assert {asked.path for asked in proxy.asked} >= {f"{FAR}/chat/completions"}
    records = [json.loads(path.read_text()) for path in Path("out").rglob("*_identity.json")]
    of_server = [each["answering"] for each in records if each["model"] == "Qwen3-VL"]
    assert {each["proxy"] for each in of_server} == {shown}
    assert not any(b"pr0xy" in path.read_bytes() for path in Path("out").rglob("*.json*"))


def test_a_run_goes_on_behind_another_proxy(
    proxy: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(line("run")) == 0
    asked = len(proxy.asked)
    monkeypatch.delenv("HTTP_PROXY")
    (path,) = Path("out").rglob("*_identity.json")
    before = path.read_bytes()
    assert main(line("run")) == 0, "nothing is left to ask"
    assert len(proxy.asked) == asked
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_answers_through_several_proxies_are_told_and_recorded(
    command: str,
    proxy: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = line(command)
    assert main(words) == 0
    first = proxy.url.removesuffix("/api/v1")
    if command == "sweep":
        text = Path("sweep.yaml").read_text().replace('"limit": 1', '"limit": 3')
        Path("sweep.yaml").write_text(text)
    else:
        words[words.index("--limit") + 1] = "3"
    with ChatServer(lambda asked, number: completion("[]")) as other:
        second = other.url.removesuffix("/api/v1")
        monkeypatch.setenv("HTTP_PROXY", second)
        capsys.readouterr()
        assert main(words) == 0
        assert len(other.asked) == 2, "the answer through the first proxy stays"
    both = f"{first}, {second}"
    said = "".join([*capsys.readouterr(), caplog.text])
    assert f"answers came through other proxies ({first}) than calls do now ({second})" in said
    assert f"asked through several proxies: {both}" in " ".join(said.split())
    (path,) = Path("out").rglob("Qwen3-VL*_identity.json")
    record = json.loads(path.read_text())
    assert (record["earlier_proxies"], record["answering"]["proxy"]) == ([first], second)
    makers = [
        json.loads(record)["made_by"]["proxy"]
        for journal in Path("out").rglob("*calls.jsonl")
        for record in journal.read_text().splitlines()
        if '"proxy"' in record
    ]
    assert (makers.count(first), makers.count(second)) == (1, 2)


@pytest.mark.parametrize("hosts", ["gpu.invalid", ".invalid", "*", "gpu.invalid:8000"])
def test_hosts_without_a_proxy_are_not_told(
    hosts: str,
    proxy: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("NO_PROXY", hosts)
    assert main([*line("run"), "--dry-run"]) == 0
    assert "through the proxy" not in caplog.text
