"""A stand-in for ``vllm`` and ``sglang``: takes their command lines, serves chat completions.

The variable FAKE says what goes wrong: ``dies`` before it listens, ``dies-later`` after three
calls, ``refuses`` every call, ``stubborn`` heeds no SIGTERM, ``children`` starts a process in a
session of its own.  A call takes FAKE_SECONDS.  What it was started with is appended to the file
FAKE_RECORD, what it is asked to FAKE_CALLS.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import stat
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path


def install(folder: Path, *names: str) -> Path:
    """Put executables of these names into a folder, which goes onto the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        script = folder / name
        script.write_text(f"#!{sys.executable}\n{Path(__file__).read_text(encoding='utf-8')}")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("verb", choices=["serve"])
    if os.path.basename(sys.argv[0]) == "sglang":
        parser.add_argument("--model-path", required=True, dest="checkpoint")
        parser.add_argument("--tp-size", type=int, required=True, dest="parallel")
        parser.add_argument("--sampling-defaults", choices=["openai"], required=True)
    else:
        parser.add_argument("checkpoint")
        parser.add_argument("--tensor-parallel-size", type=int, required=True, dest="parallel")
        parser.add_argument("--generation-config", choices=["vllm"], required=True)
        parser.add_argument("--limit-mm-per-prompt", type=json.loads)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", choices=["127.0.0.1", "0.0.0.0"], required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--revision")
    parser.add_argument("--dtype")
    parser.add_argument("--max-model-len", type=int)
    return parser.parse_args()


def main() -> None:
    given, fake = _parsed(), os.environ.get("FAKE", "")
    numbers = count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say(200, {"data": [{"id": given.served_model_name}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            _record("FAKE_CALLS", {**body, "messages": len(body["messages"])})
            if body["max_tokens"] > 4:
                time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
            if fake == "dies-later" and next(numbers) > 3:
                print("CUDA error: an illegal memory access", flush=True)
                os._exit(7)
            if fake == "refuses" or body["model"] != given.served_model_name:
                self._say(500, {"error": {"message": "the engine is broken"}})
                return
            message = {"role": "assistant", "content": "[]"}
            choice = {"message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 1}
            self._say(200, {"id": "1", "choices": [choice], "usage": usage})

        def _say(self, status: int, values: object) -> None:
            body = json.dumps(values).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

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


if __name__ == "__main__":
    main()
