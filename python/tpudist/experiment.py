"""Experiment files, resolved and checked by the program."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _extension
from .program import run_program

__all__ = ["Experiment"]


class Experiment:
    """An experiment file with overrides. `config` holds every key with the value that the program takes."""

    def __init__(self, file: str, overrides: Mapping[str, Any]) -> None:
        self.file = file
        self.overrides = dict(overrides)
        text = run_program(["config", "show", file, *self.arguments, "--yaml"])
        #: nested dicts, all defaults filled in, paths absolute
        self.config: dict[str, Any] = _extension.yaml(text, file)

    @classmethod
    def load(cls, file: str | os.PathLike[str], **overrides: Any) -> Experiment:
        """Reads an experiment file or, like the program, a name such as "nlp". Keys are dotted:
        Experiment.load("nlp", **{"train.steps": 100}). Raises ConfigError with every mistake."""
        return cls(os.fspath(file), overrides)

    def override(self, **overrides: Any) -> Experiment:
        """The same experiment with more overrides. A later one, of a key or a whole block, replaces earlier ones."""
        merged = dict(self.overrides)
        for key, value in overrides.items():
            merged = {old: own for old, own in merged.items() if not old.startswith(key + ".")}
            block = next((old for old in merged if key.startswith(old + ".")), None)
            if block is None:
                merged[key] = value
            else:
                merged[block] = _replaced(merged[block], key[len(block) + 1 :].split("."), value)
        return Experiment(self.file, merged)

    @property
    def name(self) -> str:
        """The name of the experiment and of the run's folder."""
        return str(self.config["name"])

    @property
    def arguments(self) -> list[str]:
        """The overrides as arguments of the program; JSON is YAML."""
        return [f"{key}={_text(value)}" for key, value in self.overrides.items()]

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.file}{''.join(' ' + text for text in self.arguments)}>"


def _replaced(block: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    keys = dict(block) if isinstance(block, Mapping) else {}
    return {**keys, path[0]: _replaced(keys.get(path[0]), path[1:], value)}


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return re.sub(r'("(?:\\.|[^"\\])*")|(-?)Infinity', lambda found: found[1] or found[2] + ".inf", text)


def _plain(value: Any) -> Any:
    """Converts what JSON lacks: paths, and numbers of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"an experiment has no value of type {type(value).__name__}")
