"""Reads the event file of a run with the tensorboard package and compares it with metrics.jsonl.

    pip install tensorboard
    python tests/golden/tensorboard_events.py runs/demo

Without an argument it prints the record of tests/results/records/tensorboard_file_test.cpp, in hexadecimal.
"""
import io
import json
import math
import sys

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_ndarray

SETTINGS = "_hparams_/session_start_info"


def settings_value():
    """Settings as TensorBoard's own plugin for hyper-parameters keeps them."""
    info = plugin_data_pb2.SessionStartInfo()
    info.hparams["data.cache"].bool_value = True
    info.hparams["loss"].string_value = "list_mle"
    info.hparams["optimizer.lr"].number_value = 1e-3
    content = plugin_data_pb2.HParamsPluginData(session_start_info=info)
    data = SummaryMetadata.PluginData(plugin_name="hparams",
                                      content=content.SerializeToString(deterministic=True))
    return Summary.Value(tag=SETTINGS, metadata=SummaryMetadata(plugin_data=data))


def golden():
    event = Event(wall_time=1234.5, step=300, summary=Summary(value=[
        Summary.Value(tag="loss/member_0", simple_value=0.25),
        Summary.Value(tag="rate", simple_value=-1e-3)]))
    settings = Event(wall_time=1234.5, step=300, summary=Summary(value=[settings_value()]))
    version = Event(wall_time=1234.5, step=0, file_version="brain.Event:2")
    for record in (version, event, settings):
        out = io.BytesIO()
        RecordWriter(out).write(record.SerializeToString())
        print(out.getvalue().hex())


def wanted(line):
    """The scalars of a line of metrics.jsonl."""
    split = line.get("split", "valid")
    scalars = {}
    if line["kind"] == "start":
        return {key: setting(value) for key, value in line["settings"].items()}
    for name, value in line.items():
        if isinstance(value, bool) or name in ("kind", "step", "rows", "split", "first_member"):
            continue
        if line["kind"] == "evaluation" and name in ("members", "ensemble"):
            if name == "ensemble":
                scalars[f"{split}/ensemble"] = value
            else:
                scalars |= {f"{split}/member_{m}": v for m, v in enumerate(value)}
                numbers = [v for v in value if v is not None]
                scalars[f"{split}/mean"] = sum(numbers) / len(numbers) if numbers else None
        elif name == "rank_seconds":
            scalars |= {f"{name}/{part}/rank_{r}": v
                        for part, ranks in value.items() for r, v in enumerate(ranks)}
        elif isinstance(value, list):
            scalars |= {f"{name}/member_{m}": v for m, v in enumerate(value)}
            numbers = [v for v in value if v is not None]
            scalars[f"{name}/mean"] = sum(numbers) / len(numbers) if numbers else None
        else:
            scalars[name] = value
    return {tag: v for tag, v in scalars.items() if v is not None}


def setting(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text.replace(".inf", "inf"))
    except ValueError:
        return text


def settings_in(value):
    content = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
    hparams = content.session_start_info.hparams
    return {key: getattr(v, v.WhichOneof("kind")) for key, v in hparams.items()}


def found(path):
    """(step, scalars or settings) of each event, as TensorBoard reads it."""
    for event in EventFileLoader(path).Load():
        if event.summary.value and event.summary.value[0].tag == SETTINGS:
            yield event.step, settings_in(event.summary.value[0])
        elif event.summary.value:
            yield event.step, {v.tag: float(make_ndarray(v.tensor)) for v in event.summary.value}


def main(run):
    events = list(found(f"{run}/events.out.tfevents.tpudist"))
    with open(f"{run}/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    assert len(events) == len(lines), f"{len(events)} events, {len(lines)} lines"
    count = 0
    for (step, scalars), line in zip(events, lines):
        expected = wanted(line)
        assert step == line["step"], (step, line)
        assert scalars.keys() == expected.keys(), (scalars.keys() ^ expected.keys(), line)
        for tag, value in expected.items():
            same = scalars[tag] == value or (
                not isinstance(value, (str, bool)) and
                math.isclose(scalars[tag], value, rel_tol=1e-6, abs_tol=1e-12))
            assert same, (step, tag)
            count += 1
    print(f"{len(events)} events with {count} numbers and settings are those of metrics.jsonl")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else golden()
