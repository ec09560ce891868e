"""Mutates texts of HLO and compares how tpudist and jaxlib's own parser read them: what both accept must be equal
by instruction (opcode, shape, operands, called computations, features). Needs jaxlib; not a part of the tests.

    python tests/golden/hlo_text_mutations.py build/release/tests/data/hlo_compare_texts 1000000 tests/data/hlo/modules

Prints how many texts had which outcome, up to ten examples of each that matters, and exits with 1 where two readings
differ. Equal seeds give equal texts. jaxlib runs in processes of its own, since some texts end it.
"""
import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

TOKEN = re.compile(r"[A-Za-z_][\w.\-]*|%[\w.\-]+|-?\d+|\"[^\"\n]*\"|\s+|.", re.S)
BYTES = "{}[]()=,:%/*_->x?0123456789 \n\"#abfio"
WORDS = ["f32[]", "s32[2]{0}", "ROOT ", "/*index=5*/", "// note\n", "{1,0}", "{0,1:T(8,128)}", "-1", "0", "1", "7", "<=", "true",
         "(f32[2]{0}, s32[])", "u4[3]", "f8e4m3fn[2]", "pred[]", "token[]", "dimensions={0}", ", is_stable=true",
         ", metadata={op_name=\"a\"}", ", window={size=2}", ", window={}", ", dim_labels=bf_io->bf", ", padding=0_0",
         ", feature_group_count=2", "9223372036854775807", "9223372036854775808", "{}", "->", "%", ", iota_dimension=0",
         ", slice={[0:1]}", "_1", "x1", ", to_apply=a", ", calls={a, b}", "tile_assignment", "{:S(1)}", "*"]


def mutate(text, others, draw):
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        kind = draw.randrange(9)
        if kind < 2 and text:  # a byte
            at = draw.randrange(len(text))
            text = text[:at] + draw.choice(["", draw.choice(BYTES), text[at] + draw.choice(BYTES)]) + text[at + 1:]
        elif kind < 6:  # a token
            tokens = TOKEN.findall(text)
            if not tokens:
                continue
            at = draw.randrange(len(tokens))
            while tokens[at].isspace() and draw.random() < 0.9:
                at = draw.randrange(len(tokens))
            if kind == 2:
                del tokens[at]
            elif kind == 3:
                tokens[at] = draw.choice([draw.choice(tokens), draw.choice(WORDS), str(draw.randrange(-2, 12))])
            elif kind == 4:
                tokens.insert(at, draw.choice([draw.choice(tokens), draw.choice(WORDS), tokens[at]]))
            else:
                number = re.fullmatch(r"-?\d+", tokens[at])
                tokens[at] = str(int(number.group()) + draw.choice([-1, 1, 2])) if number else draw.choice(WORDS)
            text = "".join(tokens)
        elif kind == 6:  # lines
            lines = text.split("\n")
            a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
            choice = draw.randrange(4)
            if choice == 0:
                del lines[a]
            elif choice == 1:
                lines.insert(a, lines[b])
            elif choice == 2:
                lines[a], lines[b] = lines[b], lines[a]
            else:
                lines.insert(a, draw.choice(draw.choice(others).split("\n")))
            text = "\n".join(lines)
        elif kind == 7:  # an attribute, from here or from another text
            attributes = re.findall(r", [a-z_]+=(?:\{[^{}]*\}|[^\s,{}]+)", draw.choice(others))
            ends = [m.end() for m in re.finditer(r"\)(?=,| |\n)", text)]
            if attributes and ends:
                at = draw.choice(ends)
                text = text[:at] + draw.choice(attributes) + text[at:]
        else:  # without an attribute
            found = list(re.finditer(r", [a-z_]+=(?:\{[^{}]*\}|[^\s,{}]+)", text))
            if found:
                one = draw.choice(found)
                text = text[:one.start()] + text[one.end():]
    return text


def parse(pipe):
    """In a process of its own: texts in; protos out, or why a text is refused."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    from jaxlib import _hlo
    while True:
        text = pipe.recv()
        if text is None:
            return
        try:
            pipe.send(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
        except Exception as error:  # jaxlib's own types
            pipe.send(str(error))


def reason(message):
    """The kind of fault that jaxlib names: its text without names and numbers."""
    found = re.search(r"error: ([^\n]*)", message)
    text = found.group(1) if found else message.split("\n")[0]
    if text.startswith("unexpected attribute"):
        return "an unknown attribute " + ("of the module" if "input_output_alias" in text else
                                          "of an instruction" if "metadata" in text else "of a line on the sources")
    text = re.sub(r"expects opcode but sees.*", "an unknown opcode", text)
    return re.sub(r"-?\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"|%[\w.\-]+|\w+\[\S*|(?<=: ).*", "X", text))[:100]


class Parser:
    def __init__(self):
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=parse, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def __call__(self, text):
        """The proto, why the text is refused, or None where jaxlib ended."""
        try:
            self.pipe.send(text)
            if not self.pipe.poll(20):
                raise EOFError
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.kill()
            self.start()
            return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("program")
    arguments.add_argument("count", type=int)
    arguments.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--largest", type=int, default=20_000, help="bytes of a text; longer ones are cut at lines")
    arguments.add_argument("--examples", type=pathlib.Path, help="folder for texts that are read differently")
    arguments = arguments.parse_args()
    texts = [path.read_text() for folder in arguments.folders for path in sorted(folder.glob("*.txt"))
             if "HloModule" in path.read_text()[:1000]]
    texts = [text for text in texts if len(text) <= arguments.largest]
    draw, parser = random.Random(arguments.seed), Parser()
    outcomes, examples = collections.Counter(), collections.defaultdict(list)
    done = 0
    while done < arguments.count:
        cases, data = [], []
        for _ in range(min(5000, arguments.count - done)):
            text = mutate(draw.choice(texts), texts, draw)
            proto = parser(text)
            done += 1
            if proto is None:
                outcomes["jaxlib died"] += 1
                continue
            raw = text.encode("utf-8", "surrogatepass")
            refused = isinstance(proto, str)
            cases.append((text, reason(proto) if refused else ""))
            data.append(struct.pack("=qq", len(raw), -1 if refused else len(proto)) + raw + (b"" if refused else proto))
        lines = subprocess.run([arguments.program], input=b"".join(data), capture_output=True)
        verdicts = lines.stdout.decode(errors="replace").splitlines()
        if lines.returncode != 0 or len(verdicts) != len(cases):
            sys.exit(f"{arguments.program} ended with {lines.returncode} at this text:\n{cases[len(verdicts)][0]}")
        for (text, why), verdict in zip(cases, verdicts):
            kind = verdict.split(":")[0]
            outcomes[kind] += 1
            if kind == "we accept":
                verdict += ": " + why
            if kind in ("differ", "we refuse", "we accept"):
                examples[kind].append((verdict, text))
        print(done, dict(outcomes), flush=True)
    for kind, found in examples.items():
        print(f"\n{kind}: {len(found)}")
        kinds = collections.Counter(re.sub(r"\d+", "N", verdict.partition(": ")[2])[:160] for verdict, _ in found)
        for verdict, count in kinds.most_common(40):
            print(f"  {count:6}  {verdict}")
        if arguments.examples:
            arguments.examples.mkdir(parents=True, exist_ok=True)
            for i, (verdict, text) in enumerate(found[:3000]):
                (arguments.examples / f"{kind.replace(' ', '_')}-{i}.txt").write_text(verdict[:2000] + "\n" + text)
    sys.exit(1 if outcomes["differ"] else 0)


if __name__ == "__main__":
    main()
