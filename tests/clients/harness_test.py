"""The harness must fail when it should: python3 -m unittest harness_test"""
import unittest

from harness import gateway, judge, matrix, start, suite


def leg(units, expected, complete=True):
    made = judge.Leg("none", complete)
    made.expected = expected
    for words, passed in units:
        made.add(*words.split(), passed=passed)
    return [unit.verdict for unit in made.judge().units]


class Judging(unittest.TestCase):
    def test_a_failure_that_is_not_listed_fails(self):
        self.assertEqual(leg([("a b", False), ("a c", True)], []), ["failed", "passed"])

    def test_a_listed_failure_is_expected(self):
        self.assertEqual(leg([("a b", False)], [(("a", "[bc]"), "why")]), ["expected"])

    def test_a_listed_unit_that_passes_fails(self):
        self.assertEqual(leg([("a b", True)], [(("*", "b"), "why")]), ["failed"])

    def test_a_line_that_matches_nothing_fails_a_complete_leg_only(self):
        self.assertEqual(leg([("a b", True)], [(("x", "y"), "why")]), ["passed", "failed"])
        self.assertEqual(leg([("a b", True)], [(("x", "y"), "why")], complete=False), ["passed"])


class Comparing(unittest.TestCase):
    def verdicts(self, direct, through):
        made = judge.Leg("none", False)
        suite.compare(made, (), direct, through, "")
        return {unit.words[-1]: unit.verdict for unit in made.judge().units}

    def test_checks_of_the_suite(self):
        direct = {"s": {"kept": "SUCCESS", "lost": "SUCCESS", "gone": "SUCCESS", "bad": "FAILURE", "warned": "WARNING"}}
        through = {"s": {"kept": "SUCCESS", "lost": "WARNING", "bad": "FAILURE", "warned": "WARNING", "new": "FAILURE"}}
        self.assertEqual(self.verdicts(direct, through), {
            "kept": "passed", "lost": "failed", "gone": "failed", "bad": "not judged", "warned": "not judged", "new": "failed"})

    def test_a_scenario_that_did_not_run_is_lost(self):
        self.assertEqual(self.verdicts({"s": {"c": "SUCCESS"}}, {}), {"c": "failed"})


class Cells(unittest.TestCase):
    def verdicts(self, name, baseline, now):
        client = next(client for client in matrix.CLIENTS if client.name == name)
        made = judge.Leg("none", False)
        matrix.judge_cell(made, "server", client, baseline, now, 0)
        return {unit.words[-1]: unit.verdict for unit in made.judge().units}

    def test_what_is_said_must_be_the_same(self):
        direct = {"initialize": "ok legacy 2025-11-25", "list": "ok 2 a b", "progress": "ok"}
        now = {"initialize": "ok legacy 2025-11-25", "list": "ok 1 a", "progress": "FAIL no progress"}
        self.assertEqual(self.verdicts("ts2-legacy", {"ts2-legacy": direct}, now), {"initialize": "passed", "list": "failed", "progress": "failed"})

    def test_where_no_revision_is_shared_the_other_era_is_the_measure(self):
        baseline = {"ts2-modern": {"initialize": "FAIL"}, "ts2-legacy": {"initialize": "ok legacy 2025-11-25", "call": "ok x", "end_session": "ok"}}
        now = {"initialize": "ok modern 2026-07-28", "call": "FAIL", "end_session": "n/a"}
        self.assertEqual(self.verdicts("ts2-modern", baseline, now), {"initialize": "passed", "call": "failed", "end_session": "not judged"})


class Reading(unittest.TestCase):
    def test_what_a_gateway_prints(self):
        text = 'ready {at} last\n  {"mcpServers": {"a": {"url": "http://127.0.0.1:8080/mcp"}}}\n  curl -s \\\n    -d 1\nbye'
        self.assertEqual(start.snippet(text), {"mcpServers": {"a": {"url": "http://127.0.0.1:8080/mcp"}}})
        self.assertEqual(start.curl_line(text), "curl -s \\\n    -d 1")

    def test_a_configuration_is_yaml_in_flow_style(self):
        self.assertIn('  a:\n    command: "x"\n    args: ["y"]\n', gateway.configuration(1, {"a": {"command": "x", "args": ["y"]}}))


if __name__ == "__main__":
    unittest.main()
