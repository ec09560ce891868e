"""Runs bench/step_bench, for the scripts beside it."""
import json
import pathlib
import subprocess


def step_seconds(build, *words):
    """The median seconds of a step; `build`: folder of bench/step_bench."""
    program = pathlib.Path(build) / "bench" / "step_bench"
    result = subprocess.run([str(program), *map(str, words)], check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["seconds_median"]
