"""Names of a package that are loaded when somebody asks for them, so that one module of it can be had without torch.

Knows no name itself.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for `package` (PEP 562); `homes`: the module that defines each name, below the package."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # asked once
        return value

    return load
