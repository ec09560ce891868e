"""The parts of scripts/systems_table.py and scripts/find_best.py that can be tried without training."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import find_best  # noqa: E402
import systems_table as st  # noqa: E402

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


class Numbers(unittest.TestCase):
    def test_holm_multiplies_and_never_decreases(self):
        # By hand: 3 x 0.01, 2 x 0.02, max with 1 x 0.03; None takes no part.
        found = st.holm_adjusted([0.02, None, 0.01, 0.03])
        self.assertIsNone(found[1])
        np.testing.assert_allclose([found[2], found[0], found[3]], [0.03, 0.04, 0.04])
        self.assertEqual(st.holm_adjusted([0.9, 0.8]), [1, 1])

    def test_random_order_is_the_mean_over_all_orders(self):
        runtime = np.array([3.0, 1.0, 7.0, 2.0, 2.0, 9.0])
        expected = st.expected_measures(runtime)
        orders = list(itertools.permutations(range(6)))
        for k in (1, 10):
            mean = np.mean([runtime[list(o[:k])].min() for o in orders]) - 1
            self.assertAlmostEqual(expected[f"slowdown_{k}"], mean, places=12)
        score = np.mean([2 - runtime[list(o[:5])].min() for o in orders])
        self.assertAlmostEqual(expected["tile_score"], score, places=12)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, **words):
        return st.Tool(self.folder / "work", PROGRAM.parent, out=self.folder / "page.md", **words)

    def test_a_part_of_the_page_is_replaced_in_its_place(self):
        tool = self.tool()
        for name, text in (("published", "P"), ("a", "1"), ("b", "2"), ("a", "3")):
            tool.put(name, text)
        words = [line for line in tool.out.read_text().splitlines() if re.fullmatch(r"\w", line)]
        self.assertEqual(words, ["3", "2", "P"])

    def test_one_family_has_an_interval_and_no_p(self):
        tool = self.tool()
        tool.work.mkdir(exist_ok=True)
        only_runs = {"difference": 0.1, "other_families": None,
                     "these_graphs": {"interval": {"low": 0.05, "high": 0.15}, "p": 1.8e-07}}
        tool.run = lambda *_, **__: (tool.work / "compare.json").write_text(json.dumps([only_runs]))
        row = {"mean": {"kendall_tau": 0.7}, "runs": ["a"]}
        found = tool.compared({"own": row}, row | {"runs": ["b"]})["own"]
        self.assertEqual(found, (0.1, {"low": 0.05, "high": 0.15}, None, None))

    def test_what_is_included_is_part_of_a_system(self):
        (self.folder / "base.yaml").write_text("a: 1\n")
        (self.folder / "own.yaml").write_text("# said\ninclude: base.yaml\nb: 2\n")
        system = st.System("own", self.folder / "own.yaml", (), "", "")
        first = st.Tool.content(system)
        (self.folder / "own.yaml").write_text("# said otherwise\ninclude: base.yaml\nb: 2\n")
        self.assertEqual(st.Tool.content(system), first)
        (self.folder / "base.yaml").write_text("a: 2\n")
        self.assertNotEqual(st.Tool.content(system), first)

    def test_the_shipped_tables_are_those_of_the_systems_as_they_are(self):
        tool = self.tool()
        for table in tool.tables:
            for system in (s for s in tool.systems() if s.wanted(table)):
                facts = tool.timed[tool.timed_name(system, table)]
                self.assertEqual(facts["file"], tool.content(system), system.name)
                if table.seconds:
                    steps = tool.steps_of(table, [system])[system.name]
                    self.assertEqual(tool.steps_in(table)[system.name]["train.steps"], str(steps), system.name)

    def test_tuned_tables_have_the_steps_and_systems_of_the_others(self):
        tool = self.tool()
        tuned = [t for t in tool.tables if tool.steps_in(t, "_tuned")]
        self.assertTrue(tuned)
        for table in tuned:
            own, other = tool.steps_in(table, "_tuned"), tool.steps_in(table)
            self.assertEqual({n: v["train.steps"] for n, v in own.items()},
                             {n: other[n]["train.steps"] for n in own})

    def test_the_program_reads_every_candidate_of_a_search(self):
        for source in ("xla", "tile"):  # nlp has candidates of xla
            tables, _, base, networks, changes, _ = find_best.SOURCES[source]
            collection = next(t.collection for t in st.TABLES if t.name == tables[0])
            first = next(iter(networks.values()))
            tries = [*networks.values(), *(first | change for change in changes)]
            for i, values in enumerate(tries):
                file = self.folder / f"{source}_{i}.yaml"
                file.write_text(find_best.file_text("try", collection, base | {"optimizer.lr": "1e-3"} | values))
            names = ", ".join(f"{source}_{i}.yaml" for i in range(len(tries)))
            sweep = self.folder / f"{source}_sweep.yaml"
            sweep.write_text(f"name: all\nexperiments: [{names}]\n")
            found = subprocess.run([PROGRAM, "config", "show", sweep], capture_output=True, text=True)
            self.assertEqual(found.returncode, 0, found.stderr)
            self.assertIn(f"{source}_{len(tries) - 1}", found.stdout)


if __name__ == "__main__":
    unittest.main()
