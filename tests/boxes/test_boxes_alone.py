"""`boxes` is a library: importing it loads only `core`, `protocol`, and nothing heavy."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys

from vlmeval_findit import boxes


def test_all_modules_load_two_rooms_and_nothing_heavy() -> None:
    names = [
        f"vlmeval_findit.boxes.{module.name}" for module in pkgutil.iter_modules(boxes.__path__)
    ]
    code = f"import sys, {', '.join(names)}; print(*sys.modules)"
    # The start-up hook of an installed package would load a module of another room.
    environment = {**os.environ, "VLMEVAL_FINDIT": "0"}
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    package = {name.split(".")[1] for name in loaded if name.startswith("vlmeval_findit.")}
    assert package == {"core", "protocol", "boxes"}
    assert not {"scipy", "pandas", "torch", "vlmeval", "cv2"} & set(loaded)
