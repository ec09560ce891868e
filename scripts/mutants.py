#!/usr/bin/env python3
"""Which mistakes in the source do the tests find?

Makes mutants of the product: each is the source with one small mistake in it (a comparison turned, + for -, off by
one, a statement dropped, a condition negated), built and run against the tests of its folder at the top. Prints a line
for each mutant, with the test that caught it, and how many were caught. A seed gives the same mutants as
long as their lines stand, so that the lists before and after a change of tests can be compared.

    scripts/mutants.py --list                     the hundred mutants of seed 1, without building any
    scripts/mutants.py --count 10                 builds and tests the first ten
    scripts/mutants.py --seed 7 --only core data  of these folders only

Everything happens in a copy of the tree, build/mutants, which stays for the next time; its first build takes as long as
one of everything. A mutant takes from seconds to minutes. Mutants that do not compile are named and not counted.
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import time

import check_rooms

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = list(dict.fromkeys(room.split("/")[0] for room in check_rooms.ROOMS))
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/",
         "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "true": "false", "false": "true"}
OPERATORS = re.compile(r"(?<= )(?:" + "|".join(re.escape(o) for o in sorted(SWAPS, key=len, reverse=True)
                                              if not o.isalpha()) + r")(?= )|\b(?:true|false)\b")
ONE = re.compile(r"(?<= [+-] )1(?=[;,)\]} ])")
CONDITION = re.compile(r"^\s*(?:\} else )?if \((?!constexpr|const |auto )(.*)\)(?: \{| .*;)$")
STATEMENT = re.compile(r"^\s*(?!return|break|continue|using|throw|const|auto|static|for|if|else|while|case|default|delete)"
                       r"(?:[\w:.\[\]>()*-]+(?:\(.*\)| [+*|&-]?= .*)|\+\+\w.*);$")


def masked(text):
    """The source with comments, texts and characters blanked out, of the same length."""
    def blank(match):
        return re.sub(r"[^\n]", "~", match.group(0))
    return re.sub(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|^#[^\n]*',
                  blank, text, flags=re.S | re.M)


def sites(file):
    """The mistakes that can be made in a file: (line, begin, end, what stands there instead)."""
    lines = masked(file.read_text()).split("\n")
    source = file.read_text().split("\n")
    opened = "{"  # what the line before ends with
    for number, line in enumerate(lines):
        in_function = line.startswith("  ")
        if in_function and not line.lstrip().startswith(("template", "static_assert", ": ", "class ", "struct ")):
            for match in OPERATORS.finditer(line):
                yield number, match.start(), match.end(), SWAPS[match.group(0)]
            for match in ONE.finditer(line):
                yield number, match.start(), match.end(), "0"
            condition = CONDITION.match(line)
            if condition and balanced(condition.group(1)):
                begin, end = condition.span(1)
                yield number, begin, end, f"!({source[number][begin:end]})"
            if opened in ";{}" and STATEMENT.match(line) and balanced(line):
                yield number, len(line) - len(line.lstrip()), len(line), ";"
        if line.strip(" ~"):
            opened = line.rstrip(" ~")[-1]


def balanced(text):
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return depth == 0


def mutants(seed, count, rooms):
    """`count` mutants of all, in an order that seed and source line alone give: the others stay where a line goes."""
    keyed = []
    for file in [file for room in rooms for file in (ROOT / room).rglob("*.cpp")]:
        lines = file.read_text().split("\n")
        for site in sites(file):
            number, begin, end, text = site
            key = f"{seed}/{file.name}/{lines[number].strip()}/{lines[number][:begin].strip()}/{text}"
            keyed.append((hashlib.sha256(key.encode()).digest(), (str(file.relative_to(ROOT)), *site)))
    return [mutant for _, mutant in sorted(keyed)[:count]]


def describe(mutant):
    name, number, begin, end, text = mutant
    line = (ROOT / name).read_text().split("\n")[number]
    before = line[begin:end]
    if len(before) < 4:
        before, text = line[max(begin - 12, 0):end + 12].strip(), (line[max(begin - 12, 0):begin] + text +
                                                                 line[end:end + 12]).strip()
    return f"{name}:{number + 1}  {before}  ->  {text}"


class Copy:
    """A copy of the tree with a build of its own."""

    def __init__(self, folder):
        self.tree, self.build = folder / "tree", folder / "build"
        self.log = folder / "log"
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.splitlines()
        for name in names:
            source, target = ROOT / name, self.tree / name
            if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        for old in [file for file in self.tree.rglob("*") if file.is_file()]:
            if str(old.relative_to(self.tree)) not in set(names):
                old.unlink()
        self.run("cmake", "--preset", "dev", "-DTPUDIST_WERROR=OFF", "-DTPUDIST_BENCH=OFF", "-B", str(self.build))

    def run(self, *command, cwd=None, limit=None):
        with open(self.log, "a") as log:
            return subprocess.run(command, cwd=cwd or self.tree, stdout=log, stderr=log, timeout=limit).returncode

    def make(self, room):
        return self.run("cmake", "--build", str(self.build), "--target", f"tests_{room}") == 0

    def first_failure(self, room):
        """The first test of a folder that fails; None where all pass."""
        done = subprocess.run(["ctest", "--test-dir", str(self.build), "-L", f"^{room}$", "--stop-on-failure",
                               "--timeout", "300", "-j2"], capture_output=True, text=True)
        failed = re.findall(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.*\s*\**(?!.*Passed)", done.stdout, re.M)
        if done.returncode == 0:
            return None
        return failed[0] if failed else "ctest"

    def result(self, mutant):
        name, number, begin, end, text = mutant
        file, room = self.tree / name, name.split("/")[0]
        source = file.read_text()
        lines = source.split("\n")
        lines[number] = lines[number][:begin] + text + lines[number][end:]
        try:
            file.write_text("\n".join(lines))
            if not self.make(room):
                return "does not compile"
            failure = self.first_failure(room)
            return f"caught by {failure}" if failure else "SURVIVED"
        finally:
            file.write_text(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=ROOMS, default=ROOMS, metavar="FOLDER", help="folders at the top")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/mutants", help="where the copy goes")
    parser.add_argument("--list", action="store_true", help="build nothing")
    arguments = parser.parse_args()
    chosen = mutants(arguments.seed, arguments.count, arguments.only)
    if arguments.list:
        print("\n".join(describe(mutant) for mutant in chosen))
        return 0
    arguments.folder.mkdir(parents=True, exist_ok=True)
    copy = Copy(arguments.folder)
    for room in sorted({mutant[0].split("/")[0] for mutant in chosen}):
        failure = copy.first_failure(room) if copy.make(room) else "the build"
        if failure:
            print(f"without a mistake: {failure} fails; see {copy.log}", file=sys.stderr)
            return 1
    results = []
    for mutant in chosen:
        begin = time.monotonic()
        results.append(copy.result(mutant))
        print(f"{describe(mutant)}\n    {results[-1]}, {time.monotonic() - begin:.0f} s", flush=True)
    compiled = [result for result in results if result != "does not compile"]
    caught = sum(result.startswith("caught") for result in compiled)
    print(f"{caught} of {len(compiled)} caught; {len(results) - len(compiled)} do not compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
