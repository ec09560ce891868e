"""Optional packages, loaded on first use."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .errors import Error

__all__ = ["jaxlib", "load"]


def load(module: str, package: str) -> Any:
    """The module, or an Error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Error(f"{module} is missing ({error}): pip install {package}") from error


def jaxlib(part: str) -> Any:
    """A module of jaxlib, whose internals change from version to version."""
    version = str(load("jaxlib", "'tpudist[measure]'").__version__)
    if not version.startswith("0.10."):
        raise Error(f"jaxlib {version} in {sys.executable}: 0.10 is needed: pip install 'tpudist[measure]'")
    return load(f"jaxlib.{part}", "'tpudist[measure]'")
