"""Reads the event file of a run with the tensorboard package and compares it with metrics.jsonl.

    pip install tensorboard
    python tests/golden/tensorboard_events.py runs/demo

Without an argument it prints the record of tests/train/events/event_record_test.cpp, in hexadecimal.
"""
import io
import json
import math
import sys

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_ndarray


def golden():
    event = Event(wall_time=1234.5, step=300, summary=Summary(value=[
        Summary.Value(tag="loss/member_0", simple_value=0.25),
        Summary.Value(tag="rate", simple_value=-1e-3)]))
    for record in (Event(wall_time=1234.5, step=0, file_version="brain.Event:2"), event):
        out = io.BytesIO()
        RecordWriter(out).write(record.SerializeToString())
        print(out.getvalue().hex())


def wanted(line):
    """The scalars of a line of metrics.jsonl."""
    split = line.get("split", "valid")
    scalars = {}
    for name, value in line.items():
        if name in ("kind", "step", "rows", "split"):
            continue
        if line["kind"] == "evaluation" and name in ("members", "ensemble"):
            if name == "ensemble":
                scalars[f"{split}/ensemble"] = value
            else:
                scalars |= {f"{split}/member_{m}": v for m, v in enumerate(value)}
        elif isinstance(value, list):
            scalars |= {f"{name}/member_{m}": v for m, v in enumerate(value)}
            numbers = [v for v in value if v is not None]
            scalars[f"{name}/mean"] = sum(numbers) / len(numbers) if numbers else None
        else:
            scalars[name] = value
    return {tag: v for tag, v in scalars.items() if v is not None}


def found(path):
    """(step, scalars) of each event, as TensorBoard reads it."""
    for event in EventFileLoader(path).Load():
        if event.summary.value:
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
            assert math.isclose(scalars[tag], value, rel_tol=1e-6, abs_tol=1e-12), (step, tag)
            count += 1
    print(f"{len(events)} events with {count} scalars are those of metrics.jsonl")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else golden()
