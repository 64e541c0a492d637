"""Any value in any place of a file is read, or refused with the file's name: never a traceback."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import yaml
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import ConfigError
from vlmeval_findit.protocol import Reply
from vlmeval_findit.storage import (
    CustomDataset,
    DatasetFileError,
    DatasetsConfig,
    FolderError,
    PredictionError,
    custom_datasets,
    read_config,
    read_predictions,
)
from vlmeval_findit.sweeps import SweepFile, parse_sweep

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.sampled_from(["", " ", "7", "all", "winner", "../x", "Demo", "FullImage", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
COLUMNS = ("index", "prediction", "extra_records", "label", "width", "image_sha256", "thinking")


@given(st.dictionaries(st.sampled_from(COLUMNS), ODD) | ODD)
def test_any_row_of_a_prediction_file(row: Any) -> None:
    rows = [{"index": 0, "prediction": "[]"}, row]
    if isinstance(row, dict):
        rows[1] = {"index": 1, "prediction": "[]", **row}
    with TemporaryDirectory() as folder:
        path = Path(folder, "p.json")
        path.write_text(json.dumps(rows))
        try:
            replies = read_predictions(path)
        except PredictionError as error:
            message = str(error)
        else:
            assert all(isinstance(reply, Reply) for reply in replies)
            return
    assert message.startswith(f"{path}, row 2")
    assert len(message) < 600


@given(
    st.dictionaries(st.sampled_from(["Mine", ""]), st.fixed_dictionaries({"folder": ODD})) | ODD,
    st.sampled_from([field.name for field in fields(CustomDataset)]),
    ODD,
)
def test_any_file_of_custom_datasets(values: Any, key: str, odd: Any) -> None:
    if isinstance(values, dict) and isinstance(values.get("Mine"), dict):
        values["Mine"] = {"folder": "images", **values["Mine"], key: odd}
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"LMUData": folder}):
        path = Path(folder, "findit_datasets.json")
        path.write_text(json.dumps(values))
        try:
            datasets = custom_datasets()
        except DatasetFileError as error:
            message = str(error)
        else:
            assert all(isinstance(each, CustomDataset) for each in datasets.values())
            return
    assert message.startswith(str(path))
    assert len(message) < 600


@given(st.sampled_from([field.name for field in fields(DatasetsConfig)]), ODD)
def test_any_configuration_of_datasets(key: str, odd: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "datasets.yaml")
        path.write_text(yaml.safe_dump({"root": "images", key: odd}))
        try:
            config = read_config(path)
        except FolderError as error:
            message = str(error)
        else:
            assert isinstance(config, DatasetsConfig)
            return
    assert message.startswith(str(path))
    assert len(message) < 600


@given(st.sampled_from([field.name for field in fields(SweepFile)]), ODD)
def test_any_sweep_file(key: str, odd: Any) -> None:
    text = yaml.safe_dump({"models": "FullImage", "datasets": "Demo", key: odd})
    try:
        parse_sweep(text, "sweep.yaml")
    except ConfigError as error:
        message = str(error)
    else:
        return
    assert message.startswith("sweep.yaml, line ")
    assert len(message) < 1500
