"""A plugin of pytest: the tests that a file lists must fail, and all others must not.

pytest -p expected_failures --expected-failures FILE. A line of FILE is the end of a test's name (its class and function, with its
parameters), two spaces or more, and why it fails; lines that begin with # are comments. A test that is listed and passes fails the run, as
does a name that belongs to no test.
"""

import re

import pytest


def pytest_addoption(parser):
    parser.addoption("--expected-failures", metavar="FILE", help="tests that must fail, a name and a reason a line")


def listed(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.strip()
            if line and not line.startswith("#"):
                name, reason = re.split(r"\s{2,}", line, maxsplit=1)
                yield name, reason


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    path = config.getoption("--expected-failures")
    if not path:
        return
    for name, reason in listed(path):
        found = [item for item in items if item.nodeid.endswith("::" + name)]
        if not found and not config.option.keyword and not any("::" in argument for argument in config.args):
            raise pytest.UsageError(f"{path}: no test is named {name}")
        for item in found:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
