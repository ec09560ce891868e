"""What the scripts share that measure a training under mpirun."""
import argparse
import json
import os
import pathlib

# As root, in a container say, Open MPI wants to be asked twice, and one of its copying methods is not allowed.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def parser(description):
    """A parser of the options that all of them have."""
    made = argparse.ArgumentParser(description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("experiment")
    made.add_argument("overrides", nargs="*", metavar="key=value")
    made.add_argument("--build", required=True, help="folder of tpudist")
    return made


def command(arguments, ranks, run_folder, *words, bind="none"):
    """The command of a training on this many ranks; the user's overrides replace those in `words`."""
    settings = {word.split("=")[0]: word for word in [*words, *arguments.overrides]}
    made = ["mpirun", "--bind-to", bind, "--oversubscribe", "-np", ranks,
            pathlib.Path(arguments.build) / "tpudist", "train", arguments.experiment,
            *settings.values(), "--run-dir", run_folder]
    return [str(word) for word in made]


def logged(run_folder, kind):
    """The whole lines of metrics.jsonl of that kind; none where there is no such file yet."""
    try:
        text = (pathlib.Path(run_folder) / "metrics.jsonl").read_text()
    except FileNotFoundError:
        return []
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["kind"] == kind]
