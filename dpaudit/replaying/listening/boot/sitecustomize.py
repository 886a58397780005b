"""Python imports this first in a world's process: from here on its random draws are intercepted."""

import gc
import importlib
import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _start():
    spec = importlib.util.spec_from_file_location(
        "dpaudit_listening",
        os.path.join(_FOLDER, "__init__.py"),
        submodule_search_locations=[_FOLDER],
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["dpaudit_listening"] = module
    spec.loader.exec_module(module)
    module.start()


if "DPAUDIT_LISTEN" in os.environ:
    gc.disable()  # collections while modules load take a tenth of the time and free nothing
    _start()
    if "DPAUDIT_LISTEN_PRELOAD" in os.environ:  # while the coordinator still loads, too
        importlib.import_module(os.environ.pop("DPAUDIT_LISTEN_PRELOAD"))
    gc.enable()
