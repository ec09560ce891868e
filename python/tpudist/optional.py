"""Optional packages, loaded on first use."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import Error

__all__ = ["load"]


def load(module: str, package: str) -> Any:
    """The module, or an Error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Error(f"{module} is missing ({error}): pip install {package}") from error
