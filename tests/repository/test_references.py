"""References in docstrings: what ``:func:`` and its like name is there."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

import pytest
from paths import ROOT

PACKAGES = ("vlmeval_findit", "training")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
_REFERENCE = re.compile(r":(attr|class|data|exc|func|meth|mod|obj):`~?(\.*)([\w.]+)`")


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def package_of(module: str, dots: int) -> str:
    """Where a relative import of a module begins."""
    parts = module.split(".")
    inside = 0 if MODULES[module].name == "__init__.py" else 1
    return ".".join(parts[: len(parts) - inside - dots + 1])


def names(body: list[ast.stmt], module: str) -> Iterator[tuple[str, str]]:
    """What statements make known, and the full name of what it is."""
    for one in body:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield one.name, f"{module}.{one.name}"
            case ast.Assign():
                for target in one.targets:
                    yield from ((n.id, "") for n in ast.walk(target) if isinstance(n, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, ""
            case ast.ImportFrom():
                base = package_of(module, one.level) if one.level else ""
                origin = ".".join(filter(None, (base, one.module)))
                yield from ((a.asname or a.name, f"{origin}.{a.name}") for a in one.names)
            case ast.Import():
                yield from ((a.asname or a.name.split(".")[0], a.name) for a in one.names)
            case ast.If() | ast.Try() | ast.With():
                yield from names([*one.body, *getattr(one, "orelse", [])], module)


@cache
def known(full: str) -> dict[str, str] | None:
    """The names inside a module or a class of ours by their full names; None of what is none."""
    if full in MODULES:
        below = {m.rpartition(".")[2]: m for m in MODULES if m.rpartition(".")[0] == full}
        return below | dict(names(tree(full).body, full))
    module, _, name = full.rpartition(".")
    if module not in MODULES:
        return None
    for one in ast.walk(tree(module)):
        if isinstance(one, ast.ClassDef) and one.name == name:
            return members(one, module)
    return None


def members(found: ast.ClassDef, module: str) -> dict[str, str]:
    own = dict(names(found.body, f"{module}.{found.name}"))
    for one in ast.walk(found):  # self.name = …
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            own[one.attr] = ""
    for base in found.bases:
        there = resolved(module, [], ast.unparse(base).partition("[")[0])
        own = (known(there) or {}) | own if there else own
    return own


def resolved(module: str, classes: list[ast.ClassDef], name: str) -> str | None:
    """The full name of what a name means in a module ('' where it is a value); None: nothing."""
    first, *rest = name.split(".")
    for scope in (*(members(one, module) for one in reversed(classes)), known(module) or {}):
        if first in scope:
            return followed(scope[first], rest)
    if hasattr(builtins, first):
        return ""
    return followed(first, rest)


def followed(full: str, rest: list[str]) -> str | None:
    """What lies below a full name; of what is not ours nobody looks further."""
    for name in rest:
        if not full:
            return ""
        inside = known(full)
        if inside is None and full.split(".")[0] in PACKAGES:
            inside = known(origin(full)) or {}
        if inside is None:
            return "" if find_spec(full.split(".")[0]) else None
        if name not in inside:
            return None
        full = inside[name]
    return full if not full or known(full) is not None or is_there(full) else None


def origin(full: str) -> str:
    """Where what was imported under a name is defined."""
    module, _, name = full.rpartition(".")
    there = (known(module) or {}).get(name, full) if module in MODULES else full
    return full if there == full else origin(there)


def is_there(full: str) -> bool:
    module, _, name = full.rpartition(".")
    if full.split(".")[0] in PACKAGES:
        return name in (known(module) or {})
    return find_spec(full.split(".")[0]) is not None


def scopes(module: str, line: int) -> list[ast.ClassDef]:
    return [
        one
        for one in ast.walk(tree(module))
        if isinstance(one, ast.ClassDef) and one.lineno <= line <= (one.end_lineno or 0)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_what_is_referred_to_is_there(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    stale = []
    for found in _REFERENCE.finditer(text):
        role, dots, name = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        there = None
        if dots:
            there = followed(package_of(module, len(dots)), name.split("."))
        if there is None and dots in ("", "."):
            there = resolved(module, scopes(module, line), name)
        if there is None and dots == "." and role != "mod":  # Sphinx looks everywhere
            there = "" if any(followed(one, name.split(".")) for one in MODULES) else None
        if there is None:
            stale.append(f"line {line}: {found[0]}")
    assert not stale, "\n".join(stale)
