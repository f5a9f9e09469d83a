#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
pyverbs_run.py TESTS DEVICE GID RESULTS - rdma-core's Python tests, one line each

TESTS is rdma-core's folder "tests".  RESULTS gets a line "start ID" before a
case and "ok ID", "skip ID REASON" or "fail ID REASON" after it.  Cases that
RESULTS names already are left out: after a crash of the interpreter the caller
starts us again, and only the case that killed it is lost.  A case that takes
longer than $PYVERBS_LIMIT seconds (30) fails.  $PYVERBS_ONLY is a pattern for
IDs, for trying out single cases; $PYVERBS_FILE a file with the IDs to run.
"""

import fnmatch
import importlib.machinery
import importlib.util
import os
import signal
import sys
import unittest

tests_dir, device, gid, results_path = sys.argv[1:5]
limit = int(os.environ.get('PYVERBS_LIMIT', '30'))
only = os.environ.get('PYVERBS_ONLY', '*')
only_file = os.environ.get('PYVERBS_FILE')


def short(test_id):
    """tests.test_cq.CQTest.test_create -> test_cq.CQTest.test_create"""
    return test_id[6:] if test_id.startswith('tests.') else test_id


def one_line(text):
    return ' '.join(str(text).split())[:200]


def wanted_ids():
    if not only_file:
        return None
    with open(only_file, encoding='utf-8') as ids:
        return {line.strip() for line in ids}


class TooLong(Exception):
    pass


def on_alarm(_signum, _frame):
    raise TooLong(f'no end after {limit} s')


class Lines(unittest.TestResult):
    """Writes each outcome at once: a crash loses nothing."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.outcome = None

    def write(self, *words):
        self.out.write(' '.join(words) + '\n')
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.outcome = ('ok',)
        self.write('start', short(test.id()))
        signal.alarm(limit)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)
        self.write(self.outcome[0], short(test.id()), *self.outcome[1:])

    def failed(self, err):
        # an error in tearDown must not hide the first one
        if self.outcome[0] != 'fail':
            self.outcome = ('fail', one_line(f'{err[0].__name__}: {err[1]}'))

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(err)
        print(self.errors[-1][1], flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(err)
        print(self.failures[-1][1], flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.outcome[0] == 'ok':
            self.outcome = ('skip', one_line(reason))


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def main():
    sys.argv[1:] = ['--dev', device, '--gid', gid]
    sys.path.insert(0, tests_dir)
    spec = importlib.util.spec_from_file_location(
        'tests', os.path.join(tests_dir, '__init__.py'),
        submodule_search_locations=[tests_dir])
    tests = importlib.util.module_from_spec(spec)
    sys.modules['tests'] = tests
    # the modules of the suite are imported by name from here
    from args_parser import parser
    parser.parse_args()
    spec.loader.exec_module(tests)

    done = set()
    if os.path.exists(results_path):
        with open(results_path, encoding='utf-8') as old:
            done = {line.split()[1] for line in old if ' ' in line}
    wanted = wanted_ids()
    loader = unittest.defaultTestLoader
    todo = unittest.TestSuite(
        case for case in cases(loader.loadTestsFromModule(tests))
        if short(case.id()) not in done and
        (wanted is None or short(case.id()) in wanted) and
        fnmatch.fnmatch(short(case.id()), only))
    signal.signal(signal.SIGALRM, on_alarm)
    with open(results_path, 'a', encoding='utf-8') as out:
        todo.run(Lines(out))
        out.write('end\n')


main()
