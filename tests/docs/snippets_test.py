#!/usr/bin/env python3
"""Runs the code blocks of README.md, CONTRIBUTING.md and docs/*.md, and checks what else can be checked in them.

    tests/docs/snippets_test.py --tpudist build/release/tpudist --work FOLDER [DOCUMENT...]
    tests/docs/snippets_test.py --tpudist build/release/tpudist --work FOLDER --refresh docs/tutorial.md

Blocks of a document run in their order, each document in a folder of its own. It has small synthetic data (npz/,
tpudist-data/, module.npz), scripts/ without set-up, and the experiments of the repository with small networks and few
steps. mpirun starts at most two ranks; git, cmake and ctest are stand-ins that look at their arguments only.

A comment just above a block says what the block is, where that is not the usual:

    <!-- not run: REASON -->      it needs other data, a cluster or root: its syntax and options are checked
    <!-- output: COMMAND -->      what COMMAND prints. It must print something; --refresh takes its real output

A YAML block whose first line is a comment with a file's name is written into that file. The others are tried as parts
of an experiment. Every command of tpudist in a block, or in the text, must exist and know its options. Links lead
somewhere, sentences of README and tutorial have 40 words at most, and CHANGELOG begins with the version of the program.
"""
import argparse
import concurrent.futures
import functools
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST_MARKED = 15
MOST_WORDS = 40
RUNNING = set()  # sessions of commands
STAMP = ".snippets"  # in folders that may be emptied
NETWORK = "{model: {blocks: [{layer: sage, width: 8, aggregation: max}], readout: {scale: 0.03}}}"
SMALL = """include: full/%s
data: {include: {train: [], valid: []}, exclude: {train: [], valid: []}}
batch: {slates: 2, configs: 6}
model: {blocks: [{layer: sage, width: 8, aggregation: max}]}
train: {steps: 20, evaluate_every: 10, checkpoint_every: 10, log_every: 5}
dist: {threads: 1}
"""

# Runs and sweeps that a document takes for granted, made before its first block.
TRAIN = "tpudist train experiments/{0} --run-dir runs/{1} --quiet predictions.rows=all {2}"
NLP = [TRAIN.format("nlp.yaml", "nlp", "")]
NLP_1, NLP_2 = (TRAIN.format("nlp.yaml", f"nlp-{n}", f"seed.init={n} seed.order={n}") for n in (1, 2))
XLA = [TRAIN.format("xla.yaml", "xla", "")]
XLA_1, XLA_2 = (TRAIN.format("xla.yaml", f"xla-{n}", f"seed.init={n} seed.order={n}") for n in (1, 2))
FOLDS = ["tpudist sweep run experiments/sweeps/folds.yaml --quiet"]
RATE = ["printf 'name: rate\\nexperiments: experiments/demo_folds.yaml\\nset: {predictions.rows: all}\\n"
        "sweep: {seeds: 3, over: {optimizer.lr: [1e-3, 1e-2]}}\\n' > rate.yaml",
        "tpudist sweep run rate.yaml --quiet"]
# A module around layout assignment, named as XLA names its dumps.
DUMPS = {"layouts_before.pb": "after_flatten-call-graph.before_layout-assignment",
         "layouts_after.pb": "after_layout-assignment.before_sub-byte-size-setter"}
OWN_MODULE = ["mkdir dump", *(f"cp {SOURCE}/tests/data/hlo/modules/{name} dump/module_0001.jit_f.0000.passes.{stage}.hlo.pb"
                              for name, stage in DUMPS.items())]
# The two dumps by the names that documents give them.
MODULE = [f"cp {SOURCE}/tests/data/hlo/modules/layouts_{stage}.pb {stage}.hlo.pb" for stage in ("before", "after")]
NEEDS = {
    "README.md": MODULE,
    "docs/command-line.md": [XLA_1, XLA_2, "cp module.npz resnet.npz",
                             TRAIN.format("demo.yaml", "demo", "train.steps=200 train.checkpoint_every=0")],
    "docs/getting-tpugraphs.md": ["mkdir tpugraphs && ln -s ../npz tpugraphs/npz"],
    "docs/noise-ceiling.md": XLA + [XLA_1, XLA_2],
    "docs/own-module.md": [XLA_1, *OWN_MODULE],
    "docs/predictions.md": NLP,
    "docs/report.md": NLP + [NLP_1, NLP_2] + FOLDS,
    "docs/search.md": [XLA_1, XLA_2, *MODULE],
    "docs/statistics.md": NLP + XLA + FOLDS + RATE,
    "docs/weights.md": [NLP_1, "tpudist weights export runs/nlp-1 a.safetensors --member 0 --quiet",
                        "tpudist weights export runs/nlp-1 b.safetensors --member 1 --quiet"],
}

SHELL = re.compile(r"(?:[A-Z_]+=\S+ )*(?:tpudist|mpirun|srun|sudo|cmake|ctest|git|cd|conda|apptainer|python3|kaggle|"
                   r"mkdir|cp|export|for|scripts/\S+|bench/\S+|build/\S+|tests/\S+)\b(?!:)")
YAML = re.compile(r"^\s*(?:#|- |(?!tpudist:)[\w.'*-]+:(?: |$))")


class Block:
    """A code block: its lines without indent, its language, and the comment above it."""

    def __init__(self, document, line, language, lines, note):
        self.document, self.line, self.lines = document, line, lines
        self.text = "\n".join(lines) + "\n"
        kind, _, rest = note.partition(":")
        self.why = rest.strip() if kind == "not run" else ""
        self.output = rest.strip() if kind == "output" else ""
        self.kind = language or self.guess()

    def guess(self):
        first = next(line for line in self.lines if line.strip())
        if self.output:
            return "output"
        if re.match(r"(?:import|from) \w", first):
            return "python"
        if SHELL.match(first):
            return "usage" if re.search(r"\s\[-|\w\.\.\.(?:\s|$)", self.text) else "shell"
        if all(YAML.match(line) for line in self.lines if line.strip()):
            return "yaml"
        return "text"

    def place(self):
        return f"{self.document}:{self.line}"


def blocks_of(document, text):
    """The blocks of a document, and its lines outside of blocks."""
    blocks, prose, lines, note = [], [], text.split("\n"), ""
    at, after_blank = 0, True
    while at < len(lines):
        line = lines[at]
        fence = re.match(r"( *)```(\w*)", line)
        if fence or (line.startswith("    ") and after_blank and line.strip()):
            end = at + 1
            if fence:
                while end < len(lines) and lines[end].strip() != "```":
                    end += 1
                content = lines[at + 1:end]
                end += 1
            else:
                while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                    end += 1
                content = lines[at:end]
                while not content[-1].strip():
                    content.pop()
            indent = len(fence[1]) if fence else 4
            blocks.append(Block(document, at + 1, fence[2] if fence else "", [l[indent:] for l in content], note))
            at, after_blank, note = end, True, ""
            continue
        comment = re.fullmatch(r"<!-- ((?:not run|output):.*) -->", line.strip())
        if comment:
            note = comment[1]
        elif line.strip():
            note = ""
            prose.append(line)
        else:
            prose.append("")
        after_blank = not line.strip()
        at += 1
    return blocks, prose


def stop(*_):
    for session in RUNNING:
        os.killpg(session, signal.SIGKILL)
    os._exit(1)


def run(command, folder, environment, seconds=200):
    """Runs a command in a session of its own, so that all of its processes end when its time is over."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
        RUNNING.add(process.pid)
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            RUNNING.discard(process.pid)
        return subprocess.CompletedProcess(command, process.returncode, text)


class Checks:
    def __init__(self, arguments):
        self.work = pathlib.Path(arguments.work).resolve()
        self.program = pathlib.Path(arguments.tpudist).resolve()
        self.real = bool(arguments.refresh)
        self.faults, self.report = [], []
        mpirun = arguments.mpirun or shutil.which("mpirun")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("TPUDIST", "SLURM"))} | {
            "PATH": os.pathsep.join([str(self.work / "bin"), str(self.program.parent), os.environ["PATH"]]),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "MPLBACKEND": "Agg"}
        package = self.program.parent / "python"  # of the build
        if (package / "tpudist").is_dir():
            sys.path.append(str(package))
            self.environment |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
        (self.work / "bin").mkdir()
        ranks = "a+=(\"$1\")" if self.real else "[[ $1 =~ ^[0-9]+$ && $1 -gt 2 && ${a[-1]:-} == -np ]] && set -- 2 \"${@:2}\"; a+=(\"$1\")"
        self.stand_in("mpirun", f"a=()\nwhile (( $# )); do {ranks}; shift; done\n"
                                f'exec {shlex.quote(mpirun)} --bind-to none --oversubscribe "${{a[@]}}"')
        presets = "|".join(re.findall(r'"name": "([\w-]+)"', (SOURCE / "CMakePresets.json").read_text()))
        targets = "|".join(["tpudist", *(f"tests_{p.name}" for p in (SOURCE / "tests").iterdir() if p.is_dir())])
        preset = (f'while (( $# )); do case "$1" in --preset) [[ $2 =~ ^({presets})$ ]] || exit 2;; '
                  f'--target) [[ $2 =~ ^({targets})$ ]] || exit 2;; esac; shift; done')
        self.stand_in("cmake", preset)
        self.stand_in("ctest", preset)
        self.stand_in("git", "ln -sfn . tpudist")
        for name in ("sudo", "conda", "apptainer", "srun", "sbatch", "kaggle"):
            self.stand_in(name, f"echo 'a block with {name} must be marked as not run'; exit 1")

    def stand_in(self, name, text):
        file = self.work / "bin" / name
        file.write_text("#!/bin/bash\n" + text + "\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def fault(self, place, text):
        self.faults.append(f"{place}: {text}")

    def prepare_base(self):
        """What every document's folder holds at first."""
        base = self.work / "base"
        (base / "build").mkdir(parents=True)
        (base / "build" / "release").symlink_to(self.program.parent)
        for name in ("scripts", "experiments", "slurm"):
            shutil.copytree(SOURCE / name, base / name)
        shutil.copy(SOURCE / "CMakePresets.json", base)
        (base / "scripts" / "setup.sh").write_text("#!/bin/sh\n")
        if self.real:
            return
        full = base / "experiments" / "full"
        full.mkdir()
        for file in (base / "experiments").glob("*.yaml"):
            if re.search(r"^data:|^include:", file.read_text(), re.MULTILINE):
                file.rename(full / file.name)
                file.write_text(SMALL % file.name)
        for file in (base / "experiments" / "sweeps").glob("*.yaml"):
            file.write_text(re.sub(r"train\.steps: \d+", "train.steps: 8", file.read_text()))
        for command in ("tpudist synth npz --preset tiny --graphs 8,2,2 --quiet", "tpudist convert npz tpudist-data --quiet",
                        "cp npz/layout/nlp/random/valid/$(ls npz/layout/nlp/random/valid | head -n 1) module.npz"):
            done = run(["bash", "-c", command], base, self.environment)
            if done.returncode != 0:
                sys.exit(f"cannot prepare the data: {command}\n{done.stdout}")

    # One document: its blocks in order, in a folder of its own.
    def run_document(self, document, blocks):
        folder = self.work / re.sub(r"\W", "_", document)
        shutil.copytree(self.work / "base", folder, symlinks=True)
        for command in [] if self.real else NEEDS.get(document, []):
            done = run(["bash", "-c", command], folder, self.environment)
            if done.returncode != 0:
                self.fault(document, f"what it needs cannot be made: {command}\n{done.stdout}")
                return
        for block in blocks:
            begin = time.monotonic()
            try:
                said = self.run_block(block, folder)
            except subprocess.TimeoutExpired:
                said = ""
                self.fault(block.place(), f"does not end\n{block.text}")
            seconds = time.monotonic() - begin
            if any(fault.startswith(f"{block.place()}: ") for fault in self.faults):
                said = "FAILED"
            self.report.append(f"{block.place():<32} {block.kind:<7} {said}{f' ({seconds:.1f} s)' if seconds > 1 else ''}")

    def run_block(self, block, folder):
        if block.why:
            if block.kind in ("shell", "usage"):
                self.expect(block, ["bash", "-nc", block.text], folder)
            return f"marked: {block.why}"
        if block.kind == "shell":
            self.expect(block, ["bash", "-euo", "pipefail", "-c", block.text], folder)
            return "ran"
        if block.kind == "python":
            return self.run_python(block, folder)
        if block.kind == "yaml":
            return self.run_yaml(block, folder)
        if block.kind == "output":
            done = self.expect(block, ["bash", "-o", "pipefail", "-c", block.output], folder)
            block.fresh = done.stdout.rstrip("\n").split("\n")
            if not done.stdout.strip():
                self.fault(block.place(), f"`{block.output}` prints nothing")
            return f"ran: {block.output}"
        return "options checked" if block.kind == "usage" else "shown"

    def run_python(self, block, folder):
        code = compile(block.text, block.place(), "exec")
        names = re.findall(r"^\s*(?:import|from) +([\w., ]+)", block.text, re.MULTILINE)
        modules = {part.split()[0].split(".")[0] for line in names for part in line.split(" import ")[0].split(",")}
        missing = sorted(m for m in modules if importlib.util.find_spec(m) is None)
        if missing:
            return f"compiled only: no module {', '.join(missing)}"
        self.expect(block, [sys.executable, "-c", block.text], folder)
        return "ran" if code else ""

    def run_yaml(self, block, folder):
        named = re.match(r"# ([\w./-]+\.yaml)\s*$", block.lines[0])
        if named:
            (folder / named[1]).write_text(block.text)
            if "\nsweep:" in block.text:
                self.expect(block, ["tpudist", "config", "show", named[1]], folder)
            return f"written to {named[1]}"
        if re.search(r"^(?:folds|graphs|families):", block.text, re.MULTILINE):
            (folder / "folds.yaml").write_text(block.text)
            done = run(["tpudist", "inspect", "tpudist-data", "--fold-file", "folds.yaml"], folder, self.environment)
            # Its graphs are not those of the small data: that is found once the file was read without a fault.
            if done.returncode != 0 and "no line covers" not in done.stdout:
                self.fault(block.place(), done.stdout)
            return "parsed as a fold file"
        parts = [block.text]
        if re.search(r"^sweep:", block.text, re.MULTILINE):
            file = folder / "experiments" / "sweeps" / "snippet.yaml"
        else:
            # Lines that begin with the same key are several examples.
            keys = re.findall(r"^([\w.]+):", block.text, re.MULTILINE)
            if len(set(keys)) < len(keys):
                parts = block.lines
            file = folder / "experiments" / "snippet.yaml"
        for part in parts:
            file.write_text(part if file.parent.name == "sweeps" else f"include: full/demo.yaml\n{part}\n")
            self.expect(block, ["tpudist", "config", "show", str(file)], folder)
        return "parsed"

    def expect(self, block, command, folder):
        done = run(command, folder, self.environment, 3600 if self.real else 200)
        if done.returncode != 0:
            self.fault(block.place(), f"exit code {done.returncode}\n{block.output or block.text}--- prints\n{done.stdout}")
        return done

    # Commands and their options.
    @functools.lru_cache(maxsize=None)
    def help_of(self, *command):
        done = run([str(self.program), *command, "--help"], self.work, self.environment)
        return done.stdout if done.returncode == 0 else ""

    def check_command(self, place, words):
        """`words` follow the word tpudist in a document."""
        if not words or not re.match(r"[a-z]", words[0]):
            return  # --version, or a placeholder
        command, text = [], self.help_of()
        for word in words[:2]:
            known = re.match(r"[a-z]", word) and self.help_of(*command, word)
            if not known or known == text:
                break
            command, text = [*command, word], known
        if not command:
            self.fault(place, f"tpudist has no command {words[0]}")
            return
        if re.search(r"^Subcommands:|SUBCOMMAND", text, re.MULTILINE) and len(words) > 1 and re.match(r"[a-z]+$", words[1]) \
                and len(command) == 1:
            self.fault(place, f"tpudist {words[0]} has no command {words[1]}")
        for word in words[1:]:
            option = re.match(r"--[a-z][\w-]*", word)
            if option and not re.search(rf"(?<![\w-]){option[0]}(?![\w-])", text + self.help_of()):
                self.fault(place, f"tpudist {' '.join(command)} has no option {option[0]}")

    def check_commands(self, place, text):
        for line in re.sub(r"\\\n", " ", text).split("\n"):
            try:
                lexer = shlex.shlex(line.replace("'s ", " "), posix=True, punctuation_chars="|&;()<>")
                lexer.whitespace_split, lexer.commenters = True, "#"
                words = list(lexer)
            except ValueError:
                continue  # an apostrophe or a quote of the text
            for at, word in enumerate(words):
                if word == "tpudist":
                    end = next((i for i in range(at, len(words)) if re.fullmatch(r"[|&;()<>]+", words[i])), len(words))
                    self.check_command(place, [w.strip("[]`") for w in words[at + 1:end]])

    # What stands outside of blocks.
    def check_links(self, document, prose):
        for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (SOURCE / document).parent / path if path else SOURCE / document
            if not file.exists():
                self.fault(document, f"no file for the link {target}")
            elif anchor and anchor not in anchors_of(file):
                self.fault(document, f"no heading for the link {target}")

    def check_sentences(self, document, prose):
        text = re.sub(r"\]\([^)]*\)", "]", "\n".join(prose))
        text = re.sub(r"\n(?=[-|#>]|\d+\. |\s*\n)", "\n\n", re.sub(r"`[^`]*`", "code", text))
        for paragraph in re.split(r"\n\s*\n|\|", text):
            for sentence in re.split(r"[.?!:](?:\*\*)?\s", paragraph + " "):
                words = [word for word in sentence.split() if re.search(r"\w", word)]
                if len(words) > MOST_WORDS:
                    self.fault(document, f"a sentence of {len(words)} words: {' '.join(words[:8])} ...")

    def check_version(self):
        release = re.search(r"^## (\d+\.\d+\.\d+)", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)
        version = run([str(self.program), "--version"], self.work, self.environment).stdout.split()
        if not release or release[1] not in version:
            self.fault("CHANGELOG.md", f"its newest release is not the program's version, {' '.join(version[:2])}")


@functools.lru_cache(maxsize=None)
def anchors_of(file):
    headings = re.findall(r"^#+ +(.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def refresh(document, text, blocks):
    lines = text.split("\n")
    for block in reversed(blocks):
        if block.kind == "output":
            begin = block.line - 1
            lines[begin:begin + len(block.lines)] = [("    " + line).rstrip() for line in block.fresh]
    (SOURCE / document).write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tpudist", required=True, help="the program")
    parser.add_argument("--work", required=True, help="folder to work in; it is emptied first")
    parser.add_argument("--mpirun", help="default: that of the path")
    parser.add_argument("--refresh", action="store_true", help="run a document for real, and take its outputs")
    parser.add_argument("documents", nargs="*", help="default: all")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if arguments.refresh and not arguments.documents:
        parser.error("--refresh needs a document, e.g. docs/tutorial.md")
    work = pathlib.Path(arguments.work)
    if work.exists() and any(work.iterdir()) and not (work / STAMP).exists():
        parser.error(f"--work {work}: this folder holds something else; give one that may be emptied")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / STAMP).touch()

    run_here = ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(SOURCE)) for p in SOURCE.glob("docs/*.md"))]
    checks = Checks(arguments)
    checks.prepare_base()
    parsed, marked = {}, []
    for document in arguments.documents or [*run_here, "CHANGELOG.md", "bench/README.md"]:
        text = (SOURCE / document).read_text()
        blocks, prose = blocks_of(document, text)
        parsed[document] = blocks
        for block in blocks:
            if block.kind in ("shell", "usage", "output"):
                checks.check_commands(block.place(), block.output or block.text)
            elif block.kind == "text" and re.search(r"^(?:mpirun|tpudist [a-z]+)\b(?!:)", block.text, re.MULTILINE):
                checks.fault(block.place(), "commands in a block that begins as none; put them into one of their own")
        for code in re.findall(r"`([^`\n]*\btpudist [^`\n]*)`", "\n".join(prose)):
            checks.check_commands(document, code)
        checks.check_links(document, prose)
        if document in ("README.md", "docs/tutorial.md"):
            checks.check_sentences(document, prose)
        marked += [block for block in blocks if block.why]
    if len(marked) > MOST_MARKED:
        checks.fault("documents", f"{len(marked)} blocks are marked as not run, more than {MOST_MARKED}")
    if not arguments.documents:
        checks.check_version()
    running = [d for d in parsed if d in run_here]
    with concurrent.futures.ThreadPoolExecutor(max_workers=1 if checks.real else 2) as pool:
        list(pool.map(lambda d: checks.run_document(d, parsed[d]), sorted(running, key=lambda d: d != "README.md")))

    print("\n".join(sorted(checks.report)))
    ran = sum(" ran" in line or "parsed" in line or "taken" in line or "written" in line for line in checks.report)
    print(f"{ran} blocks ran, {len(marked)} are marked, {len(checks.faults)} faults")
    for fault in checks.faults:
        print(f"FAULT {fault}")
    if arguments.refresh and not checks.faults:
        for document in running:
            refresh(document, (SOURCE / document).read_text(), parsed[document])
    return 1 if checks.faults else 0


if __name__ == "__main__":
    sys.exit(main())
