"""The start-up hook: register FindIt when VLMEvalKit is imported by any program.

A ``.pth`` file in site-packages imports this module in every interpreter of the environment
(unless ``VLMEVAL_FINDIT=0``), so it imports only ``sys``, not even ``typing``.  It waits on
``sys.meta_path`` for the modules with VLMEvalKit's tables and its inference, lets them load,
registers what FindIt adds, and removes itself.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

import sys


class _Waiter:
    """Finds nothing itself: it wraps the loader of another finder."""

    def __init__(self):
        self.waiting = {
            "vlmeval.dataset": "register_datasets",
            "vlmeval.config": "register_models",
            "vlmeval.inference": "register_inference",
            "vlmeval.tools": "register_tools",
        }

    def find_spec(self, name, path=None, target=None):
        """Part of the import protocol; None for all but those modules of VLMEvalKit."""
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                self._wrap(spec.loader, name)
                return spec
        return None

    def _wrap(self, loader, name):
        load = getattr(loader, "exec_module", None)
        if load is None:
            _warn(AttributeError(f"the loader of {name} has no exec_module"))
            return

        def exec_module(module):
            load(module)
            if module.__name__ != name:
                return  # a loader may be that of several modules
            # Not earlier: others may look for the module's spec without loading it.
            register = self.waiting.pop(name, None)
            if not self.waiting and self in sys.meta_path:
                sys.meta_path.remove(self)
            if register is not None:
                _register(register, module)

        try:
            loader.exec_module = exec_module
        except (AttributeError, TypeError) as error:  # such a loader takes no other method
            _warn(error)


def _register(register, module):
    try:
        from .host import registration

        getattr(registration, register)(module)
    except Exception as error:  # VLMEvalKit must start in any case
        _warn(error)


def _warn(error):
    import warnings

    warnings.warn(f"vlmeval_findit could not register: {error!r}", stacklevel=2)


if not any(type(finder).__name__ == "_Waiter" for finder in sys.meta_path):
    sys.meta_path.insert(0, _Waiter())
