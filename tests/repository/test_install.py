"""Installing: the start-up hook is there, costs nothing, fires, is off when told, and goes.

The tables that ship are there too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lazy_loader
import pytest
from fresh_venvs import bare_venv, build, copy_of_the_clone, pip
from paths import ROOT

pytestmark = pytest.mark.slow

# A host of two modules: enough to see when the hook fires, without seven gigabytes.
TOY_HOST = {
    "vlmeval/__init__.py": "",
    "vlmeval/dataset/__init__.py": "NAME = 'datasets'",
    "vlmeval/inference.py": "NAME = 'inference'\n",
    "vlmeval/config.py": "NAME = 'models'",
}

SPY = """
import sys, types
spy = types.ModuleType("vlmeval_findit.host")
spy.seen = []
spy.register_datasets = lambda module: spy.seen.append(module.NAME)
spy.register_models = spy.register_inference = spy.register_datasets
spy.registration = spy
sys.modules["vlmeval_findit.host"] = spy
import vlmeval_findit
vlmeval_findit.host = spy
import vlmeval.config, vlmeval.dataset, vlmeval.inference
print(spy.seen)
"""


def python(venv: Path, code: str, **env: str) -> str:
    dropped = ("PYTHONPATH", "VLMEVAL_FINDIT", "PYTHONDONTWRITEBYTECODE")
    stored = {k: v for k, v in os.environ.items() if k not in dropped}
    command = [str(venv / "bin" / "python"), "-c", code]
    done = subprocess.run(
        command, env={**stored, **env}, check=True, capture_output=True, text=True, cwd="/"
    )
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["build_wheel", "build_editable"])
def test_the_hook_and_the_tables_are_there(kind: str, tmp_path: Path) -> None:
    """In a fresh environment with nothing but us, installed one of the two ways; it leaves none."""
    wheel = build(copy_of_the_clone(tmp_path), kind, tmp_path / "dist")
    venv = bare_venv(tmp_path / "venv")
    pip(venv, "install", "--no-deps", "--no-index", str(wheel))
    for name, content in TOY_HOST.items():
        path = tmp_path / "host" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with_host = f"import sys; sys.path.insert(0, {str(tmp_path / 'host')!r})\n"

    assert python(venv, with_host + SPY) == "['models', 'datasets', 'inference']"
    assert python(venv, with_host + SPY, VLMEVAL_FINDIT="0") == "[]"
    broken = "sys.modules['vlmeval_findit.host'] = None\n"
    imported = "import vlmeval.dataset; print(vlmeval.dataset.NAME)"
    assert python(venv, with_host + broken + imported) == "datasets"
    loaded = "import sys; print(sorted(m for m in sys.modules if m.startswith('vlmeval')))"
    assert python(venv, loaded) == "['vlmeval_findit', 'vlmeval_findit._autoload']"

    packages = next(venv.glob("lib/python*/site-packages"))
    shutil.copytree(Path(lazy_loader.__file__).parent, packages / "lazy_loader")
    where = "from vlmeval_findit.core import command; print(command.shipped_folder('datasets_tsv'))"
    tables = {path.name for path in Path(python(venv, where)).glob("*.tsv")}
    assert tables == {path.name for path in (ROOT / "datasets_tsv").glob("*.tsv")}

    pip(venv, "uninstall", "--yes", "vlmeval-findit")
    assert not list(venv.glob("lib/python*/site-packages/*findit*"))


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
