"""The start-up hook: whatever is broken in it or met by it, Python and VLMEvalKit start."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from few_fast import every_nth_fast
from paths import ROOT

from vlmeval_findit import _autoload

# --- a hook that is broken ------------------------------------------------------------------------

SOUND = (ROOT / "vlmeval_findit" / "_autoload.py").read_text()
STARTS = "import site, sys; site.addsitedir(sys.argv[1]); print('started')"


def hook_line() -> str:
    """Return the line of the .pth file, as a build writes it."""
    for statement in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "HOOK_LINE":
            return str(ast.literal_eval(statement.value))
    raise AssertionError("setup.py has no HOOK_LINE")


def _no_package(package: Path) -> None:
    (package / "_autoload.py").unlink()
    (package / "__init__.py").unlink()
    package.rmdir()


def _folder(package: Path) -> None:
    (package / "_autoload.py").unlink()
    (package / "_autoload.py").mkdir()


def _loop(package: Path) -> None:
    (package / "_autoload.py").unlink()
    (package / "_autoload.py").symlink_to("_autoload.py")


def _hook(content: str | bytes) -> Callable[[Path], None]:
    def write(package: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (package / "_autoload.py").write_bytes(data)

    return write


def _package(content: str) -> Callable[[Path], None]:
    def write(package: Path) -> None:
        (package / "__init__.py").write_text(content)

    return write


BROKEN = {
    "sound": _hook(SOUND),
    "empty": _hook(""),
    "cut in a statement": _hook(SOUND[: SOUND.index("sys.meta_path.remove") + 4]),
    "cut in a text": _hook(SOUND[:60]),
    "zeros": _hook(bytes(4096)),
    "no UTF-8": _hook(b"\xff\xfe\x00import sys"),
    "an unknown encoding": _hook("# coding: nonsense\n"),
    "conflict marks": _hook("<<<<<<< ours\n" + SOUND),
    "brackets without end": _hook("(" * 5000),
    "raises ImportError": _hook("import no_such_module_at_all"),
    "raises RuntimeError": _hook("raise RuntimeError('broken')"),
    "raises AttributeError": _hook("import sys; sys.no_such_name"),
    "raises OSError": _hook("open('/no/such/file')"),
    "raises UnicodeError": _hook("b'\\xff'.decode()"),
    "never ends to call itself": _hook("def f(): f()\nf()"),
    "takes all memory": _hook("bytes(1 << 62)"),
    "a folder": _folder,
    "a link to itself": _loop,
    "no package": _no_package,
    "a package that raises": _package("raise ValueError('broken')"),
    "a package that is cut": _package("def f("),
    "a package of an old version": _hook("import vlmeval_findit.register"),
}


@pytest.mark.parametrize("kind", every_nth_fast(BROKEN, 3))
def test_python_starts_with_a_broken_hook(kind: str, tmp_path: Path) -> None:
    package = tmp_path / "vlmeval_findit"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_autoload.py").write_text(SOUND)
    BROKEN[kind](package)
    (tmp_path / "vlmeval_findit_hook.pth").write_text(hook_line())
    env = {**os.environ, "VLMEVAL_FINDIT": "1"}
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", STARTS, str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


# --- what the hook meets --------------------------------------------------------------------------

NAME = "vlmeval.config"


class Plain:
    """A loader, of one module or of several."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.loaded = True  # type: ignore[attr-defined]


class Slotted(Plain):
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class Typed(Plain):
    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError(name)


class Old:
    """A loader of before 3.4."""

    def load_module(self, name: str) -> ModuleType:
        return ModuleType(name)


class Finder:
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec:
        return ModuleSpec(name, self._loader)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return what is registered, with the module that it was given."""
    registered: list[tuple[str, str]] = []
    monkeypatch.setattr(
        _autoload, "_register", lambda what, module: registered.append((what, module.__name__))
    )
    return registered


def found(loader: Any, monkeypatch: pytest.MonkeyPatch, name: str = NAME) -> ModuleSpec:
    waiter = _autoload._Waiter()
    monkeypatch.setattr(sys, "meta_path", [waiter, object(), Finder(loader)])
    spec = waiter.find_spec(name)
    assert spec is not None
    return spec


@pytest.mark.parametrize("kind", [Slotted, Typed, Old])
def test_a_loader_that_cannot_be_wrapped_still_loads(
    kind: type, seen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = kind()
    with pytest.warns(UserWarning, match="could not register"):
        spec = found(loader, monkeypatch)
    assert spec.loader is loader
    if kind is not Old:
        module = module_from_spec(spec)
        loader.exec_module(module)
        assert module.loaded
    assert not seen


def test_a_loader_of_several_modules_registers_its_own(
    seen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = Plain()
    waiter = _autoload._Waiter()
    monkeypatch.setattr(sys, "meta_path", [waiter, Finder(loader)])
    specs = [waiter.find_spec(name) for name in ("vlmeval.dataset", NAME)]
    for spec in (ModuleSpec("vlmeval.smp", loader), *reversed(specs)):
        assert spec is not None
        loader.exec_module(module_from_spec(spec))
    assert seen == [("register_models", NAME), ("register_datasets", "vlmeval.dataset")]
