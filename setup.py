"""What a build does beyond pyproject.toml: the start-up hook, and what lies outside the package."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

CLONE = Path(__file__).resolve().parent

# Sorts after setuptools' own __editable__… files: those make an editable install importable.
HOOK = "vlmeval_findit_hook.pth"
HOOK_LINE = (
    'import os; exec(\'try:\\n if os.environ.get("VLMEVAL_FINDIT") != "0":'
    " import vlmeval_findit._autoload\\nexcept ImportError: pass')\n"
)

# What a wheel takes into the package from its neighbours: sweeps, the tables that ship, and, where
# they are, the weights.  Other tables in datasets_tsv/ were made here, and have their own licences
# (.gitignore, MANIFEST.in).
SHIPPED = (
    "configs/*.yaml",
    "datasets_tsv/Demo*.tsv",
    "datasets_tsv/Scenes*.tsv",
    "datasets_tsv/SelfRetrieval_Scenes*.tsv",
    "datasets_tsv/VPBench_Scenes*.tsv",
    "weights/findit_nano*/*",
)

# Weights of the small models: in a clone, not in a source archive (docs/design/structure.md).
WEIGHTS = CLONE / "weights"
EXTRA = "weights"
NOTHING_ASKED = f"\n{EXTRA} = []\n"


class BuildWithHook(build_py):
    """Adds what lies outside the package: the start-up hook, and in wheels what SHIPPED names.

    An editable install gets the hook; the rest lies in its clone.
    """

    def run(self):
        refuse_without_weights(self.distribution)
        if not self.editable_mode:
            # Modules that are no longer there would go from an old build into a new wheel.
            shutil.rmtree(Path(self.build_lib) / "vlmeval_findit", ignore_errors=True)
        super().run()
        folder = self.build_lib
        if self.editable_mode:
            folder = self.get_finalized_command("install").install_lib
        path = Path(folder) / HOOK
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HOOK_LINE, encoding="ascii")
        if not self.editable_mode:
            for source, target in self._shipped():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode=True):
        shipped = [] if self.editable_mode else [str(target) for _, target in self._shipped()]
        hook = str(Path(self.build_lib) / HOOK)
        return [*super().get_outputs(include_bytecode), *shipped, hook]

    def _shipped(self):
        """List the files as (where it lies, where a wheel has it)."""
        package = Path(self.build_lib) / "vlmeval_findit"
        files = [path for pattern in SHIPPED for path in sorted(CLONE.glob(pattern))]
        return [(path, package / path.relative_to(CLONE)) for path in files]


class ArchiveWithoutWeights(sdist):
    """Leaves the weights out of a source archive, which asks for their package instead."""

    def run(self):
        if WEIGHTS.is_dir():
            extras = self.distribution.extras_require
            self.distribution.extras_require = {**extras, EXTRA: [self._asked()]}
        super().run()

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        if not WEIGHTS.is_dir():
            return  # An archive of an archive asks already.
        path = Path(base_dir, "pyproject.toml")
        text = path.read_text(encoding="utf-8")
        if text.count(NOTHING_ASKED) != 1:
            raise SystemExit(f"pyproject.toml: expected one line {NOTHING_ASKED.strip()!r}")
        asked = f'\n{EXTRA} = ["{self._asked()}"]\n'
        path.write_text(text.replace(NOTHING_ASKED, asked), encoding="utf-8")

    def _asked(self):
        return f"vlmeval-findit-nano=={self.distribution.get_version()}"


def refuse_without_weights(distribution):
    """Stop a build that would neither have the weights nor ask for them."""
    if not WEIGHTS.is_dir() and not distribution.extras_require.get(EXTRA):
        raise SystemExit(f"{WEIGHTS} is missing: get the whole clone, weights/ too")


setup(cmdclass={"build_py": BuildWithHook, "sdist": ArchiveWithoutWeights})
