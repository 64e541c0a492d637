"""What people type who know other programs, and what it is called here: the only such table.

The programs are vLLM, lmms-eval, lm-evaluation-harness, VLMEvalKit, inspect_ai, ultralytics,
transformers and the command lines of OpenAI and others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple


class Meaning(NamedTuple):
    """Names of one meaning, without dashes: of flags, of keys in files, of arguments.

    Ours are in the order of preference: a command, or a file, has one of them, or none. ``value``
    is what to write behind it, where that is not what people write behind theirs.
    """

    ours: Sequence[str]
    theirs: Sequence[str]
    value: str = ""


def _meaning(ours: str, theirs: str, value: str = "") -> Meaning:
    return Meaning(ours.split(), theirs.split(), value)


MEANINGS = (
    _meaning("model", "m models model-name model-id engine deployment hf-model"),
    _meaning(
        "model",
        "model-path model-args model-name-or-path pretrained checkpoint ckpt weights lora "
        "lora-path adapter adapter-path peft hf-path",
        "NAME=CHECKPOINT",
    ),
    _meaning("model", "served-model-name served-name served-model", "NAME=SERVED"),
    _meaning("data", "d t dataset datasets task tasks benchmark benchmarks bench evals eval"),
    _meaning("limit", "n num-samples max-samples num-examples num-prompts num-rows first head"),
    _meaning(
        "work-dir out",
        "o out output outputs output-dir output-path output-folder output-file save-dir log-dir "
        "results results-dir result-dir project dest destination dir runs run",
    ),
    _meaning("out", "work-dir"),
    _meaning("like", "base-model model-family model-type family chat-template conv-template"),
    _meaning(
        "system",
        "system-prompt system-message system-instruction system-file system-prompt-file",
        "FILE",
    ),
    _meaning("prompt-template", "template prompt prompt-file prompt-format user-prompt", "FILE"),
    _meaning("space", "coords coordinates coordinate-space coord-space coord-format bbox-space"),
    _meaning("box", "box-format bbox-format bbox-mode box-mode"),
    _meaning("temperature", "temp"),
    _meaning(
        "samples", "epochs repeats num-repeats num-generations num-return-sequences best-of k"
    ),
    _meaning("logprobs", "log-probs top-logprobs return-logprobs output-scores"),
    _meaning(
        "base-url", "api-base url endpoint api-url server host openai-api-base model-base-url"
    ),
    _meaning("provider", "api vendor api-type service"),
    _meaning("key", "api-key token openai-api-key auth-token access-token"),
    _meaning("header", "headers extra-headers http-header H"),
    _meaning(
        "extra-body settings",
        "gen-kwargs generation-kwargs generation-config sampling-params extra-args "
        "override-generation-config model-kwargs request-body",
    ),
    _meaning(
        "api-nproc threads",
        "max-connections max-concurrency concurrency concurrent num-concurrent workers num-workers "
        "n-workers num-threads threads nthreads nproc jobs j parallel parallelism max-workers "
        "max-tasks num-procs",
    ),
    _meaning("timeout", "time-limit request-timeout api-timeout max-time"),
    _meaning("batch-size", "bs b max-num-seqs per-device-eval-batch-size eval-batch-size"),
    _meaning("dtype", "precision torch-dtype data-type weights-dtype"),
    _meaning("device", "device-map cuda gpu-id gpu-ids"),
    _meaning("gpus", "num-gpus n-gpus ngpus gpu gpus-per-node nproc-per-node"),
    _meaning("tensor-parallel", "tp tensor-parallel-size tp-size"),
    _meaning("serve", "server-program backend launch inference-backend"),
    _meaning("serve-args", "vllm-args server-args engine-args extra-server-args"),
    _meaning("max-usd", "budget cost-limit max-cost max-budget spending-limit max-price usd"),
    _meaning("prices", "price cost costs pricing"),
    _meaning("dry-run", "dry dryrun simulate plan estimate count count-only n-calls"),
    _meaning("batch", "batch-api use-batch"),
    _meaning("mode", "predict-only no-score score-only eval-only infer-only"),
    _meaning("image-root", "image-dir image-folder images images-dir img-dir image-path"),
    _meaning(
        "max-new-tokens max-tokens",
        "max-tokens max-new-tokens max-output-tokens max-completion-tokens max-length num-predict",
    ),
    _meaning("to formats", "format output-format"),
    _meaning("to", "target exporter logger"),
    _meaning("json", "output-json json-file save-json report-json"),
    _meaning("figures", "published reference published-figures"),
    _meaning("name set", "data dataset dataset-name data-name"),
    _meaning("set", "split subset"),
    _meaning("from", "source src path local-dir copy"),
    _meaning("replace", "overwrite exist-ok"),
    _meaning("yes", "y force assume-yes no-confirm"),
    _meaning("units", "unit normalized normalised box-units"),
    _meaning("quick", "fast short small"),
    _meaning("top", "top-k top-n num"),
    _meaning("index", "i row id idx sample sample-id"),
    _meaning("cards", "samples num-cards max-cards examples"),
    _meaning("version", "V"),
    _meaning("verbose", "debug verbosity log-level loglevel"),
    _meaning("quiet", "silent no-progress no-verbose"),
)
"""Names of flags, keys and arguments, theirs and ours."""


def same_meaning(name: str, known: Collection[str]) -> tuple[str, str] | None:
    """Return the known name that means what another program's does, and what to write behind it.

    Dashes and underscores are alike; a single letter has its case.

    >>> same_meaning("--api_key", ["--data", "--key"])
    ('--key', '')
    >>> same_meaning("tasks", ["model", "data"])
    ('data', '')
    >>> same_meaning("tasks", ["out"])
    """
    typed = _plain(name)
    meanings = _by_typed_name().get(typed, ())
    by_name = {_plain(each): each for each in known} if meanings or "_" in name else {}
    if typed in by_name:
        return by_name[typed], ""
    for row in meanings:
        for ours in row.ours:
            if ours in by_name:
                return by_name[ours], row.value
    return None


@cache
def _by_typed_name() -> Mapping[str, Sequence[Meaning]]:
    rows: dict[str, list[Meaning]] = {}
    for row in MEANINGS:
        for typed in row.theirs:
            rows.setdefault(typed, []).append(row)
    return rows


def _plain(name: str) -> str:
    plain = name.lstrip("-").replace("_", "-")
    return plain if len(plain) == 1 else plain.lower()


_ASKING = {
    "format formats output-format": (
        "a format is the end of a dataset's name, as in FindIt_Scenes_mini_xyxy_json; the formats: "
        "run_findit.py formats"
    ),
    "max-tokens max-new-tokens max-output-tokens max-completion-tokens max-length num-predict": (
        """ask a server with --extra-body '{"max_tokens": 500}'; in a sweep file, a model has """
        "settings: {max_new_tokens: 500}"
    ),
    "top-p top-k min-p repetition-penalty presence-penalty frequency-penalty stop num-beams": (
        """ask a server with --extra-body '{"top_p": 0.9}'; replies are greedy unless """
        "--temperature says otherwise"
    ),
    "seed": (
        "replies are greedy unless --temperature says otherwise; ask a server with "
        """--extra-body '{"seed": 1}'"""
    ),
    "shuffle random": "rows are asked in the order of their table; --limit N takes the first N",
    "overwrite fresh rerun no-cache ignore-cache recompute clear-cache restart": (
        "an answer is never asked for twice in one folder; another --work-dir asks again"
    ),
    "resume continue retry-failed resume-from": "type the same command again: it goes on",
    "cache use-cache cache-requests": "it is always on: the same command again goes on",
    "num-fewshot fewshot few-shot shots num-shots": "every query is asked without examples",
    "apply-chat-template use-chat-template": "a checkpoint's chat template is always used",
    "log-samples save-predictions write-out save-outputs": "every answer is always stored",
    "trust-remote-code": "a checkpoint's own Python code is never run",
    "quantization load-in-4bit load-in-8bit max-model-len gpu-memory-utilization port "
    "mm-processor-kwargs limit-mm-per-prompt data-parallel-size enforce-eager": (
        "it is a server's: --serve vllm --serve-args '--max-model-len 8192'"
    ),
}

_ANYWHERE = {
    "split subset": "a split is part of a dataset's name: run_findit.py data list",
    "metric metrics": "a score has every metric of its benchmark",
    "csv xlsx excel tex latex md markdown": (
        "run_findit.py leaderboard outputs writes CSV, a sheet, LaTeX and Markdown"
    ),
    "sort sort-by order-by": "tables are in the order of ranks; leaderboard.csv sorts as you like",
    "wandb wandb-project wandb-args mlflow tensorboard report-to": (
        "send what was scored: run_findit.py export outputs --to wandb"
    ),
    "cache-dir download-dir data-dir hf-home": (
        "LMUData is the folder of data, HF_HOME that of checkpoints: variables of the environment"
    ),
    "open browser": "run_findit.py report outputs writes a page; open it in a browser",
    "iou iou-threshold iou-thres conf conf-thres threshold": (
        "scores have F1 at several IoU; models state no confidence"
    ),
}

_TABLES = "CSV, a sheet, LaTeX, Markdown and JSON are always written"
_RUNS_OF_A_FORMAT = (
    "the format of a run is the end of its file's name; name the files of one: "
    "outputs/M/*_xyxy_json.json"
)

_OF_RUNS = ("leaderboard", "report", "export", "compare", "errors", "samples")
"""Commands that take runs, and neither ``--data`` nor ``--model``."""

_IN_COMMANDS: Mapping[str, Mapping[str, str]] = {
    "data d t dataset datasets task tasks benchmark bench": {
        **dict.fromkeys(
            _OF_RUNS, "name the files of its runs, as outputs/*/*_RefCOCO_*_xyxy_json.json"
        ),
        "sweep": "datasets are in its file",
    },
    "model m models model-name model-id": {
        **dict.fromkeys(
            (*_OF_RUNS, "score", "audit", "calibration", "coords"),
            "name the folder of its runs, as outputs/FindIt-Nano",
        ),
        "sweep": "models are in its file",
    },
    "format formats output-format": {
        "search": "it asks in many formats and says which is best; all: run_findit.py formats",
        "sweep": "formats are keys of its file, and the ends of datasets' names in it",
        "watch-checkpoints": "a format is the end of the name after --data",
        "demo": "it asks in two formats, and says which is better",
        "figures": "it writes YAML",
        "data list": "it prints a table",
        "data get": "files are recognised, and stored as one table; --box says what numbers are",
        "data import": "files are recognised: COCO, YOLO, CSV and others; --box says what numbers "
        "are",
        "data show": "a format is the end of the dataset's name: data show "
        "FindIt_Scenes_mini_xyxy_json",
        "data stats": "--json FILE writes JSON",
        "data remove": "it deletes a dataset with all its formats",
        "data reviews": "--json FILE writes JSON",
        "data check": "annotations are the same in all formats",
        "score": f"{_RUNS_OF_A_FORMAT}. A score is written as JSON",
        "leaderboard": f"{_TABLES}: --out says where. Rows of other formats: --format xyxy_json",
        "compare": f"{_RUNS_OF_A_FORMAT}. --json FILE writes JSON",
        "errors": f"{_RUNS_OF_A_FORMAT}. --json FILE writes JSON",
        "audit": f"{_RUNS_OF_A_FORMAT}. --json FILE writes JSON",
        "samples": _RUNS_OF_A_FORMAT,
        "calibration": f"{_RUNS_OF_A_FORMAT}. --json FILE writes JSON",
        "coords": f"{_RUNS_OF_A_FORMAT}. --json FILE writes JSON",
        "report": "it writes one HTML page. Answers in another format: --format xyxy_json",
        "formats": "type a part of its name: formats xywh",
        "models": "models answer in any format; formats: run_findit.py formats",
        "plugins": "formats: run_findit.py formats",
        "check": "it tries every format of a benchmark",
    },
    "work-dir results results-dir result-dir runs run log-dir": {
        **dict.fromkeys(
            ("leaderboard", "report", "export"),
            "folders of runs are typed without a flag, as outputs; --out says where to write",
        ),
        **dict.fromkeys(
            ("score", "compare", "errors", "audit", "samples", "calibration", "coords"),
            "folders of runs are typed without a flag, as outputs",
        ),
    },
}

_BY_WORD = {
    word: sentence
    for words, sentence in [*_ASKING.items(), *_ANYWHERE.items()]
    for word in words.split()
}
_OF_ASKING = frozenset(word for words in _ASKING for word in words.split())
_BY_COMMAND = {
    word: sentences for words, sentences in _IN_COMMANDS.items() for word in words.split()
}

OTHER_FLAGS = frozenset((*_BY_WORD, *_BY_COMMAND, *(w for row in MEANINGS for w in row.theirs)))
"""What people type who know other programs: names of other meanings, and what no command has."""


def is_of_others(name: str) -> bool:
    """Tell whether a flag is known of other programs: then it is no typing error.

    >>> is_of_others("--api_key"), is_of_others("--limt")
    (True, False)
    """
    return _plain(name) in OTHER_FLAGS


class Advice(NamedTuple):
    """What to do without a flag; ``of_asking``: where models are asked."""

    sentence: str
    of_asking: bool = False


def advice_without(name: str, command: str) -> Advice | None:
    """Return what to do in a command without a flag of other programs; None if none is known.

    >>> advice_without("--resume", "run").sentence
    'type the same command again: it goes on'
    >>> advice_without("--output-format", "figures").sentence
    'it writes YAML'
    """
    word = _plain(name)
    if sentence := _BY_COMMAND.get(word, {}).get(command):
        return Advice(sentence)
    if word not in _BY_WORD:
        return None
    return Advice(_BY_WORD[word], word in _OF_ASKING)


_RUN = "run (asks models, and scores)"
_SCORE = "score (scores prediction files)"
_LIST = "data list (the datasets)"
_GET = "data get NAME (gets a published dataset)"
_IMPORT = "data import (makes a dataset of your files)"
_SHOW = "data show NAME (prints what a query asks)"
_REPORT = "report (one page with plots and every answer)"
_ERRORS = "errors (which error types cost a run its points)"
_BOARD = "leaderboard (models x datasets)"
_FORMATS = "formats (ways to write a box)"
_MODELS = "models (the models)"
_MODEL = "models NAME (what is known of a model)"
_INFER = "run --mode infer (asks models, scores nothing)"

_OTHER_COMMANDS = {
    "ask, bench, benchmark, val": [_RUN],
    "eval, evaluate, eval-set": [_RUN, _SCORE],
    "test": [_RUN, "check (tries a benchmark or a model of yours)"],
    "predict, infer, inference, generate": [_INFER],
    "resume, continue, eval-retry, retry": ["run (the same line again goes on)"],
    "list, ls": [_LIST, _MODELS],
    "list datasets": [_LIST],
    "list models": [_MODELS],
    "list formats": [_FORMATS],
    "list tasks": [_LIST],
    "dataset, datasets": [_LIST, _GET],
    "tasks, benchmarks": [_LIST],
    "download, fetch, prepare, pull": [_GET],
    "import, convert, add, create": [_IMPORT],
    "data add, data create, data new, data make, data convert": [_IMPORT],
    "rm, delete, remove": ["data remove NAME (deletes what an import made)"],
    "data validate, data verify": ["data check (checks annotations and images)"],
    "data info, data describe, data view, data print": [_SHOW, "data stats (counts)"],
    "show": [_SHOW, _REPORT],
    "stats": ["data stats (counts of datasets)"],
    "view, visualize, visualise, plot, open, html": [_REPORT],
    "analyze, analyse": [_ERRORS, _REPORT],
    "board, rank, summarize, summary, table": [_BOARD],
    "results": [_BOARD, _REPORT],
    "review": ["audit --review review.html (a page on which a person judges doubtful labels)"],
    "diff": ["compare (how two runs differ)"],
    "replicate, verify": ["reproduce (whether a setup gives a model's published number)"],
    "push, upload": ["export --to hub"],
    "train": ["watch-checkpoints (evaluates the checkpoints of a training)"],
    "version, doctor, env": ["--version (what is installed)"],
    "validate": ["check (tries a benchmark or a model of yours)", "data check (checks a dataset)"],
    "spaces, space": ["score --help (coordinate spaces)"],
    "format, representations, prompts": [_FORMATS],
    "model": [_MODEL, _MODELS],
    "info, describe, details, card, about": [_MODEL, _SHOW],
    "config, configs, grid": ["sweep (runs models x datasets x formats from a file)"],
    "serve, server, launch": ["run --serve vllm (starts a server of the model, and asks it)"],
    "init, example, quickstart, tutorial": ["demo (the demonstration)"],
    "cache, where, folders": ["data list (datasets, and where their files are)"],
    "completion, completions": ["--help (ends with the line for your shell)"],
}

OTHER_COMMANDS: Mapping[str, Sequence[str]] = {
    words: rows for several, rows in _OTHER_COMMANDS.items() for words in several.split(", ")
}
"""Commands of other programs -> what to type here, with what it does; NAME is what they name."""
