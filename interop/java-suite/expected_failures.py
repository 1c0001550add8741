"""Compares the reports of Surefire with a list of the tests that must fail.

expected_failures.py FILE REPORT...   A line of FILE is a pattern of names, "Class.method" with its parameters (* stands for any text), two
spaces or more, and why these tests fail; lines that begin with # are comments. A test that fails and is not listed fails the run, as do one that
is listed by its whole name and passes, and a line that belongs to no test.
"""

import re
import sys
import xml.etree.ElementTree as ET


def listed(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.strip()
            if line and not line.startswith("#"):
                pattern, reason = re.split(r"\s{2,}", line, maxsplit=1)
                yield pattern, re.compile(".*".join(map(re.escape, pattern.split("*"))))


def main(path, reports):
    patterns = list(listed(path))
    met, passed, failed, skipped, wrong = set(), 0, 0, 0, 0
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):
            name = case.get("classname").rpartition(".")[2] + "." + case.get("name")
            matching = {pattern for pattern, regex in patterns if regex.fullmatch(name)}
            met |= matching
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            if case.find("skipped") is not None:
                skipped += 1
            elif problem is None:
                passed += 1
                if any("*" not in pattern for pattern in matching):
                    wrong += 1
                    print("passes though it is listed:", name)
            elif matching:
                failed += 1
            else:
                wrong += 1
                print("FAIL", name, (problem.get("message") or problem.text or "")[:500])
    for pattern, _ in patterns:
        if pattern not in met:
            wrong += 1
            print("no test is named", pattern)
    print(f"{passed} passed, {failed} failed as listed, {skipped} skipped, {wrong} not as expected")
    return 1 if wrong or not passed else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
