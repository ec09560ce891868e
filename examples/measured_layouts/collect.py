#!/usr/bin/env python3
"""Measures the programs of programs.py. Stopped at any time, the same command goes on.

    taskset -c 0 examples/measured_layouts/collect.py WORK [--configs 200] [--rounds 3] [--part 0/2] [--alone COMMAND]

`--configs`: the default, neighbours of it (a quarter of the others), and random ones. A larger number later adds to
what there is. `--alone`: a command that makes the machine quiet before the rounds, writes a line when it is, and lets
the others go on when its input ends. `--part 1/2` takes every second network, so that two processes share the work.
Needs the jax and the tpudist of this Python.
"""
import argparse
import contextlib
import json
import pathlib
import random
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SHARE_OF_NEIGHBOURS = 4


@contextlib.contextmanager
def alone(command):
    if not command:
        yield
        return
    with subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if not child.stdout.readline():
            sys.exit(f"--alone {command}: ended before it said that the machine is quiet")
        try:
            yield
            if child.poll() is not None:
                sys.exit(f"--alone {command}: ended during the rounds, so others may have disturbed them")
        finally:
            child.stdin.close()


def configurations(space, name, count):
    """The default and others, always the same ones in the same order: every fourth differs from the default in one
    group, the rest in a random number of groups with random states."""
    groups = space.choices()
    rng = random.Random(name)

    def changes(choice):
        """{number of the group: number of a state}"""
        states = [(space.operations[number], state) for at, state in choice.items() for number in groups[at]]
        return {own.name: own.states[state] for own, state in states if own.states[state] != own.default}

    sizes = [len(space.operations[group[0]].states) for group in groups]
    neighbours = [changes({at: state}) for at, size in enumerate(sizes) for state in range(size)]
    rng.shuffle(neighbours)
    found, tries = [{}], 0
    while len(found) < count and tries < 20 * count:
        tries += 1
        if len(found) % SHARE_OF_NEIGHBOURS == 0 and neighbours:
            own = neighbours.pop()
        else:
            chosen = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
            own = changes({at: rng.randrange(sizes[at]) for at in chosen})
        if own not in found:
            found.append(own)
    return found


def measure(name, options):
    from tpudist.measure import Bench

    folder = options.work / name
    before, after = (options.work / "dumps" / f"{name}.{when}.pb" for when in ("before", "after"))
    bench = Bench(before, after, folder / "measured.pb", calls=options.calls)
    begin = time.monotonic()
    numbers = bench.take(configurations(bench.space, name, options.configs))
    compiled = time.monotonic() - begin
    with alone(options.alone):
        begin = time.monotonic()
        bench.run(numbers, rounds=options.rounds)
        measured = time.monotonic() - begin
    bench.write()
    programs = {one["program"] for one in bench.journal.configs if "program" in one}
    failed = sum("error" in one for one in bench.journal.configs)
    print(f"{name}: {len(bench.journal.configs)} configurations, {len(programs)} programs, {failed} failed, "
          f"{len(bench.journal.rounds)} rounds; "
          f"compiled for {compiled:.0f} s, measured for {measured:.0f} s", flush=True)
    (folder / f"done-{options.configs}-{options.rounds}").touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--configs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=60, help="of each program in a round; short ones need more")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--alone", default="")
    parser.add_argument("--missing", action="store_true", help="only programs that manifest.json lacks")
    parser.add_argument("--program", help="only this one, in this process")
    options = parser.parse_args()
    if options.program:
        measure(options.program, options)
        return
    dumps = options.work / "dumps"
    if not dumps.exists():
        part = options.work / f"dumps-{time.time_ns()}"
        subprocess.run([sys.executable, HERE / "programs.py", part], check=True)
        part.replace(dumps)
    packed = json.loads((HERE / "manifest.json").read_text())["programs"] if options.missing else []
    own, parts = map(int, options.part.split("/"))
    small = sorted(dumps.glob("*_inference.before.pb")), sorted(dumps.glob("*_train.before.pb"))  # small ones first
    failed = []
    for path in [path for paths in small for path in paths[own::parts]]:
        name = path.name.removesuffix(".before.pb")
        if name in {one["name"] for one in packed}:
            continue
        (options.work / name).mkdir(exist_ok=True)
        if not (options.work / name / f"done-{options.configs}-{options.rounds}").exists():
            # A process of its own frees all compiled programs.
            done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--program", name])
            if done.returncode:
                print(f"{name}: failed, exit code {done.returncode}", flush=True)
                failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
