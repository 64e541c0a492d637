"""Installing: the start-up hook is there, costs nothing, fires, is off when told, and goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_venvs import bare_venv, build, copy_of_the_clone, pip
from paths import ROOT

pytestmark = pytest.mark.slow

HOOK = "vlmeval_findit_hook.pth"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_clone(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module", params=["build_wheel", "build_editable"])
def environment(
    request: pytest.FixtureRequest, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a fresh virtual environment with nothing but us, installed one of the two ways."""
    base = tmp_path_factory.mktemp(request.param)
    wheel = build(source, request.param, base / "dist")
    venv = bare_venv(base / "venv")
    pip(venv, "install", "--no-deps", "--no-index", str(wheel))
    return venv


def python(venv: Path, code: str, **env: str) -> str:
    dropped = ("PYTHONPATH", "VLMEVAL_FINDIT", "PYTHONDONTWRITEBYTECODE")
    stored = {k: v for k, v in os.environ.items() if k not in dropped}
    return subprocess.run(
        [str(venv / "bin" / "python"), "-c", code],
        env={**stored, **env},
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
    ).stdout


TOY_HOST = {
    "vlmeval/__init__.py": "",
    "vlmeval/dataset/__init__.py": "NAME = 'datasets'",
    "vlmeval/inference.py": "NAME = 'inference'\n",
    "vlmeval/config.py": "NAME = 'models'",
}
"""A host of two modules: enough to see when the hook fires, without seven gigabytes."""

SPY = """
import sys, types
spy = types.ModuleType("vlmeval_findit.host")
spy.seen = []
spy.register_datasets = lambda module: spy.seen.append(module.NAME)
spy.register_models = lambda module: spy.seen.append(module.NAME)
spy.register_inference = lambda module: spy.seen.append(module.NAME)
spy.registration = spy
sys.modules["vlmeval_findit.host"] = spy
import vlmeval_findit
vlmeval_findit.host = spy
"""


@pytest.fixture
def toy_host(tmp_path: Path) -> str:
    for name, content in TOY_HOST.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"


def test_the_hook_fires_when_the_host_is_imported(environment: Path, toy_host: str) -> None:
    code = toy_host + SPY + "import vlmeval.config, vlmeval.dataset, vlmeval.inference\n"
    code += "print(spy.seen)"
    assert python(environment, code) == "['models', 'datasets', 'inference']\n"


def test_the_hook_is_off_when_told(environment: Path, toy_host: str) -> None:
    code = toy_host + SPY + "import vlmeval.config, vlmeval.dataset, vlmeval.inference\n"
    code += "print(spy.seen)"
    assert python(environment, code, VLMEVAL_FINDIT="0") == "[]\n"


def test_a_failing_hook_does_not_stop_the_host(environment: Path, toy_host: str) -> None:
    code = toy_host + "sys.modules['vlmeval_findit.host'] = None\n"
    code += "import vlmeval.dataset; print(vlmeval.dataset.NAME)"
    assert python(environment, code) == "datasets\n"


def test_the_hook_imports_nothing_else(environment: Path) -> None:
    code = "import sys; print(sorted(m for m in sys.modules if m.startswith('vlmeval')))"
    assert python(environment, code) == "['vlmeval_findit', 'vlmeval_findit._autoload']\n"


def test_uninstalling_takes_the_hook_along(source: Path, tmp_path: Path) -> None:
    for kind in ("build_wheel", "build_editable"):
        wheel = build(source, kind, tmp_path / kind)
        venv = bare_venv(tmp_path / f"venv-{kind}")
        pip(venv, "install", "--no-deps", "--no-index", str(wheel))
        pip(venv, "uninstall", "--yes", "vlmeval-findit")
        left = [p.name for p in venv.glob("lib/python*/site-packages/*findit*")]
        assert not left


@pytest.mark.parametrize("command", [["score", "-h"], ["models"], ["data", "get", "-h"]])
def test_light_commands_import_neither_torch_nor_the_host(command: list[str]) -> None:
    code = (
        "import sys; from vlmeval_findit.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'vlmeval', 'transformers', 'pandas', 'cv2', 'pyarrow'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    env = {**os.environ, "VLMEVAL_FINDIT": "0"}
    subprocess.run([sys.executable, "-c", code, *command], check=True, cwd=ROOT, env=env)
