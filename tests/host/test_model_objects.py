"""Any object that answers: a change is seen, a secret is not, and a new process says the same."""

from __future__ import annotations

import copy
import json
import pickle
import time
import uuid
from argparse import Namespace
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from host_runs import require_host
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import HIDDEN

pytestmark = pytest.mark.host

SECRET = "sk-of-the-user-0123456789"


@pytest.fixture(autouse=True)
def _registered(lmu: Path) -> None:
    require_host()
    from vlmeval_findit.host import register

    register()


@dataclass
class Sampling:
    temperature: float
    top_p: float = 1.0


class Mode(Enum):
    FAST = "fast"


class Model:
    """A class of a user's: no base class of VLMEvalKit's."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def generate(self, message: Any, dataset: str) -> str:
        return ""


def entry(model: Any, name: str = "Mine") -> Any:
    from vlmeval_findit.host import entry_of_object

    return entry_of_object(model, name)


def attributes(model: Any) -> Any:
    # As in a file and back.
    return json.loads(json.dumps(entry(model).attributes))


# --- what is seen ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (0.0, 0.7),
        (None, 1),
        (True, False),
        ("a", "b"),
        ([1, 2], [2, 1]),
        ((1, 2), (1, 2, 3)),
        ({"a", "b"}, {"a"}),
        ({"top_p": 1, "temperature": 0}, {"top_p": 1, "temperature": 1}),
        ({"deep": [{"er": 1}]}, {"deep": [{"er": 2}]}),
        (Sampling(0.1), Sampling(0.2)),
        (SimpleNamespace(n=1), SimpleNamespace(n=2)),
        (Namespace(n=1), Namespace(n=2)),
        (partial(max, key=1, default=1), partial(max, key=1, default=2)),
        (partial(max, 1), partial(max, 2)),
        (max, min),
        (Sampling, Model),
        (Path("/ckpt/a"), Path("/ckpt/b")),
        (b"a", b"b"),
        ("x" * 5000, "x" * 5001),
        ([0] * 3000, [1] + [0] * 2999),
        (Mode.FAST, "slow"),
        (SimpleNamespace(base_url="u", ndim=0), None),
        (float("nan"), float("inf")),
    ],
)
def test_a_change_of_any_attribute_is_seen(before: Any, now: Any) -> None:
    assert attributes(Model(value=before)) == attributes(Model(value=copy.deepcopy(before)))
    assert attributes(Model(value=before)) != attributes(Model(value=now))


def test_numbers_of_numpy_and_torch_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    assert attributes(Model(value=numpy.float64(0.5))) == {"value": 0.5}
    assert attributes(Model(value=torch.tensor(3))) == {"value": 3}
    assert attributes(Model(dtype=torch.float16)) == {"dtype": "torch.float16"}
    assert attributes(Model(net=torch.nn.Linear(2, 2))) == {"net": "Linear"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz"), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_values_are_equal_only_if_they_are(one: Any, other: Any) -> None:
    from vlmeval_findit.host import json_value_of

    is_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (json_value_of(one) == json_value_of(other)) == is_same or one == other


def test_the_arguments_of_any_constructor_are_known() -> None:
    import vlmeval.api
    import vlmeval.vlm

    class Mine(vlmeval.vlm.BaseModel):
        def __init__(self, path: str, width: int = 3, *more: int, **settings: Any) -> None:
            self._net = path  # nothing public says what was given

    given = entry(Mine("a", 3, temperature=1))
    assert given.arguments == {"path": "a", "temperature": 1}, "width is as by default"
    assert entry(Mine("a", width=4)).given == {"path": "a", "width": 4}
    assert entry(Mine("a", 4, 5, 6)).arguments == {"path": "a", "width": 4, "more": (5, 6)}
    for kept in (copy.deepcopy(Mine("b")), copy.copy(Mine("b"))):
        assert entry(kept).arguments == {"path": "b"}
    api = vlmeval.api.LMDeployAPI(model="m", api_base="http://h:1/v1/chat/completions", n=2)
    assert entry(pickle.loads(pickle.dumps(api))).given["n"] == 2
    assert entry(api).endpoint == "http://h:1/v1"
    assert entry(api).checkpoint == "m"


def test_a_named_model_equals_its_object(host: SimpleNamespace) -> None:
    """VLMEvalKit passes a name first, and for its next dataset the object that it became."""
    import vlmeval.api

    from vlmeval_findit.host import entry_of, stated_of

    api = vlmeval.api.LMDeployAPI
    maker = partial(api, model="m", api_base="http://h/v1", temperature=0, retry=3)
    host.config.supported_VLM["Mine"] = maker
    try:
        named, passed = entry_of("Mine"), entry(maker())
        assert dict(passed.arguments) == dict(named.arguments)
        assert (passed.given, passed.source) == (named.given, named.source)
        assert (passed.endpoint, passed.checkpoint) == (named.endpoint, named.checkpoint)
        assert stated_of(passed) == stated_of(named) == {}
        assert entry(maker(temperature=1)).given == {"temperature": 1}
    finally:
        del host.config.supported_VLM["Mine"]


# --- what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "OPENAI_API_KEY",
        "token",
        "hf_token",
        "password",
        "headers",
        "Authorization",
        "client_secret",
        "cookies",
        "extra_headers",
        "credentials",
    ],
)
def test_a_secret_is_in_no_record(name: str) -> None:
    for model in (
        Model(**{name: SECRET}),
        Model(extra_body={name: SECRET, "n": 1}),
        Model(config=SimpleNamespace(**{name: SECRET})),
        Model(calls=[{"inner": {name: {"value": SECRET}}}]),
    ):
        assert SECRET not in repr(entry(model).attributes)
    assert entry(Model(**{name: SECRET})).attributes == {}
    assert entry(Model(echo=SECRET, **{name: SECRET})).attributes in (
        {"echo": HIDDEN},
        {"echo": SECRET},
    )


@pytest.mark.parametrize(
    "address",
    [
        f"http://user:{SECRET}@host/v1",
        f"http://{SECRET}@host/v1",
        f"http://host/v1?api_key={SECRET}",
    ],
)
def test_an_address_is_recorded_without_its_credentials(address: str) -> None:
    model = Model(api_base=address, mirror=address, nested={"at": [address]})
    made = entry(model)
    assert made.endpoint == "http://host/v1"
    assert SECRET not in repr((made.attributes, made.endpoint))
    client = SimpleNamespace(base_url=address)
    assert entry(Model(client=client)).endpoint == "http://host/v1"


UNSTABLE = [
    ("started", time.time()),
    ("stamp", time.time_ns()),
    ("at", int(time.time())),
    ("seen", time.time() * 1000),
    ("session", str(uuid.uuid4())),
    ("session", uuid.uuid4().hex),
    ("when", time.strftime("%Y-%m-%d %H:%M:%S")),
    ("when", time.strftime("%Y%m%d_%H%M%S")),
    ("start_time", 12.5),
    ("pid", 4711),
    ("client", object()),
    ("lock", __import__("threading").Lock()),
    ("shown", repr(object())),
]


# Values differ in every process, and so would ids made of them.
@pytest.mark.parametrize(("name", "value"), UNSTABLE, ids=range(len(UNSTABLE)))
def test_what_differs_in_every_process_is_left_out(name: str, value: Any) -> None:
    for model in (Model(**{name: value}), Model(inner={name: value})):
        text = repr(entry(model).attributes)
        assert " at 0x" not in text
        assert str(value) not in text or (isinstance(value, int) and len(str(value)) < 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout_policy", "strict"),
        ("temperature", 0.7),
        ("checkpoint", "/runs/2026-05-01T12:00:00/model"),
        ("max_tokens", 4096),
        ("eos_token", "</s>"),
        ("seed", 1234567),
        ("prompt", "look at 1,0"),
    ],
)
def test_what_a_user_set_stays(name: str, value: Any) -> None:
    assert attributes(Model(**{name: value})) == {name: value}


# --- what its own calls change --------------------------------------------------------------------


def test_attributes_changed_by_calls_are_recorded_as_before() -> None:
    from vlmeval_findit.host import attributes_of, note_calls

    model = Model(calls=0, temperature=0.0)
    fresh = dict(attributes_of(model) or {})
    for _ in range(2):
        model.calls += 7
        model.last = "reply"
        note_calls(model)
        assert attributes_of(model) == fresh
    model.temperature = 0.7
    changed = {**fresh, "temperature": 0.7}
    assert attributes_of(model) == changed
    model.calls += 1
    note_calls(model)
    assert attributes_of(model) == changed
    model.top_p = 0.5
    assert attributes_of(model) == {**changed, "top_p": 0.5}
    del model.temperature
    assert attributes_of(model) == {"calls": 0, "top_p": 0.5}
