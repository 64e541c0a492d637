"""A stand-in for ``vllm``, ``sglang`` and ``transformers``: their commands, and chat completions.

FAKE_VLLM says which vllm it is: ``new`` refuses bounds of images in requests unless it is started
for them, ``old`` takes them and knows no flag for it, ``oldest`` has a help without parts, too. A
field that a program does not know is refused.

The variable FAKE says what goes wrong: ``dies`` before it listens, ``dies-later`` after three
calls, ``engine-dies`` likewise, but says so in an error as vLLM does, ``refuses`` every call,
``lacks`` weights and says so as transformers does, ``stubborn`` heeds no SIGTERM, ``children``
starts a process in a separate session.  A call takes FAKE_SECONDS.
Its command line is appended to the file FAKE_RECORD, its calls to FAKE_CALLS.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from json_replies import JsonReplies
from paths import SUPPORT

# Fields of requests that each program takes beside OpenAI's
FIELDS = {
    "vllm": {"mm_processor_kwargs", "chat_template_kwargs", "skip_special_tokens"},
    "sglang": {"chat_template_kwargs", "skip_special_tokens"},
    "transformers": {"chat_template_kwargs"},
}
OPENAI_FIELDS = {
    "model", "messages", "max_tokens", "temperature", "seed", "logprobs", "top_logprobs",
    "response_format",
}  # fmt: skip

SCRIPT = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from fake_program import main
main()
"""


def install(folder: Path, *names: str) -> Path:
    """Put executables of these names into a folder, which goes onto the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(SCRIPT)
        (folder / name).chmod(0o755)
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    """Return what programs recorded."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def ends(pids: list[int], seconds: float = 10.0) -> bool:
    """Return whether processes end in time."""
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


class Machine:
    """Four GPUs, fake programs on the PATH, and what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = install(folder / "env" / "bin", *FIELDS)
        for name in ("fastapi", "uvicorn"):
            distribution = f"env/lib/python3.12/site-packages/{name}-1.0.dist-info"
            (folder / distribution).mkdir(parents=True)
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "CUDA_VISIBLE_DEVICES": "0,1,GPU-5b,3",
            "FAKE_RECORD": str(folder / "record"),
            "FAKE_CALLS": str(folder / "calls"),
            "HF_HUB_OFFLINE": "1",
        }

    @property
    def started(self) -> list[dict[str, Any]]:
        """What servers were started with."""
        return lines(self.folder / "record")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls, without those that show whether a server answers."""
        return [call for call in lines(self.folder / "calls") if call["max_tokens"] > 4]

    def ends(self, seconds: float = 10.0) -> bool:
        """Return whether all servers do, in time."""
        return ends([server["pid"] for server in self.started], seconds)


def _program() -> str:
    return os.path.basename(sys.argv[0])


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("verb", choices=["serve"])
    parser.set_defaults(parallel=1, trust_request_mm_kwargs=False)
    if _program() == "sglang":
        parser.add_argument("--model-path", required=True, dest="checkpoint")
        parser.add_argument("--tp-size", type=int, required=True, dest="parallel")
        parser.add_argument("--sampling-defaults", choices=["openai"], required=True)
    else:
        parser.add_argument("checkpoint")
    if _program() == "vllm":
        parser.add_argument("--tensor-parallel-size", type=int, required=True, dest="parallel")
        parser.add_argument("--generation-config", choices=["vllm"], required=True)
        parser.add_argument("--limit-mm-per-prompt", type=json.loads)
        parser.add_argument("--enable-lora", action="store_true")
        parser.add_argument("--lora-modules")
        parser.add_argument("--max-lora-rank", type=int)
        if _version() == "new":
            parser.add_argument("--trust-request-mm-kwargs", action="store_true")
    if _program() != "transformers":
        parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", choices=["127.0.0.1", "0.0.0.0"], required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--revision")
    parser.add_argument("--dtype")
    parser.add_argument("--max-model-len", type=int)
    if "--help=all" in sys.argv and _version() != "oldest":
        parser.print_help()
        sys.exit(0)
    return parser.parse_args()


def _version() -> str:
    return os.environ.get("FAKE_VLLM", "new")


def _refusal(body: dict[str, Any], is_trusting: bool) -> str:
    """Return why a request is refused; "" if it is not."""
    program = _program()
    unknown = body.keys() - OPENAI_FIELDS - FIELDS[program]
    if unknown:
        return f"Unexpected fields in the request: {sorted(unknown)}"
    is_wary = program == "vllm" and _version() == "new" and not is_trusting
    if is_wary and body.get("mm_processor_kwargs"):
        return "mm_processor_kwargs is off. Start the server with --trust-request-mm-kwargs"
    return ""


def main() -> None:
    given, fake = _parsed(), os.environ.get("FAKE", "")
    adapter = getattr(given, "lora_modules", None)
    served = getattr(given, "served_model_name", given.checkpoint)
    if adapter:
        served = adapter.partition("=")[0]
    numbers = count(1)

    class Handler(JsonReplies, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.say(200, {"data": [{"id": served}]})

        def do_POST(self) -> None:
            body = json.loads(self.read())
            _record("FAKE_CALLS", {**body, "messages": len(body["messages"])})
            if body["max_tokens"] > 4:
                time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
            if fake in ("dies-later", "engine-dies") and next(numbers) > 3:
                if fake == "engine-dies":
                    self.say(500, {"error": {"message": "EngineCore encountered an issue."}})
                print("CUDA error: an illegal memory access", flush=True)
                os._exit(7)
            if fake == "lacks":
                print("model.norm.weight | MISSING | ", flush=True)
            if fake == "refuses" or body["model"] != served:
                self.say(500, {"error": {"message": "the engine is broken"}})
                return
            refusal = _refusal(body, given.trust_request_mm_kwargs)
            if refusal:
                self.say(400, {"error": {"message": refusal}})
                return
            message = {"role": "assistant", "content": "[]"}
            choice = {"message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 900, "completion_tokens": 1}
            self.say(200, {"id": "1", "choices": [choice], "usage": usage})

    child = None
    if fake == "children":
        child = subprocess.Popen(["sleep", "600"], start_new_session=True).pid
    _record(
        "FAKE_RECORD",
        {"argv": sys.argv[1:], "cuda": os.environ.get("CUDA_VISIBLE_DEVICES"), "pid": os.getpid(),
         "child": child, "parallel": given.parallel, "url": f"http://127.0.0.1:{given.port}/v1"},
    )  # fmt: skip
    if fake == "dies":
        print("loading weights\nCUDA out of memory", flush=True)
        sys.exit(3)
    if fake == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()


def _record(variable: str, values: object) -> None:
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")
