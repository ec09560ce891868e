"""tpudist in Python: the data as arrays, trainings as objects (docs/python.md)."""

from . import losses
from ._extension import version as __version__
from .data import Graph, Graphs, Slate, collections, open
from .errors import ConfigError, DataError, Error, HangError, Stopped
from .experiment import Experiment
from .run import Checkpoint, Comparison, Member, Report, Run, Sweep, compare, convert, report, synth, train
from .slates import SlateDataset

__all__ = [
    "Checkpoint",
    "Comparison",
    "ConfigError",
    "DataError",
    "Error",
    "Experiment",
    "Graph",
    "Graphs",
    "HangError",
    "Member",
    "Report",
    "Run",
    "Slate",
    "SlateDataset",
    "Stopped",
    "Sweep",
    "__version__",
    "collections",
    "compare",
    "convert",
    "losses",
    "open",
    "report",
    "synth",
    "train",
]
