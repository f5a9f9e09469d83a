#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""inject_doc.py RST DIRECTORY - run the examples of a page

".. file: NAME" names the block behind it, which is compiled to DIRECTORY.  ".. example"
is one whose lines with "# " and a command are run in DIRECTORY; what they print must be
the lines behind them.  A title that a command prints begins with "# id".  KTAP.
"""

import os
import subprocess
import sys


def blocks(path):
    """(marker, [line, ...]) of each marked block"""
    marker, lines = None, []
    with open(path, encoding="utf-8") as page:
        for line in page.read().splitlines():
            if line.startswith((".. file:", ".. example")):
                marker, lines = line, []
            elif marker and line.startswith("    "):
                lines.append(line[4:])
            elif marker and lines and line:
                while lines and not lines[-1]:
                    lines.pop()
                yield marker, lines
                marker, lines = None, []
            elif marker and lines:
                lines.append("")


def build(name, lines, where):
    """the complaint, or None"""
    with open(os.path.join(where, name), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    done = subprocess.run(["cc", "-Wall", "-Werror", "-D_GNU_SOURCE", "-o", name[:-2], name, "-libverbs"],
                          cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    return done.stdout if done.returncode else None


def is_command(line):
    return line.startswith("# ") and not line.startswith("# id ")


def example(lines, where):
    """the complaint, or None"""
    got = []
    for line in filter(is_command, lines):
        got.append(line)
        done = subprocess.run(line[2:], shell=True, cwd=where, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              universal_newlines=True, timeout=60, check=False)
        got += done.stdout.splitlines()
        if done.returncode:
            got.append(f"exit status {done.returncode}")
    return None if got == lines else "\n".join(got)


def main():
    page, where = sys.argv[1:]
    number, bad = 0, 0
    for marker, lines in blocks(page):
        number += 1
        if marker.startswith(".. file:"):
            name = marker.split()[2]
            wrong = build(name, lines, where)
        else:
            name = next(filter(is_command, lines))[2:].replace("mrsoftctl inject ", "").replace("#", "")
            wrong = example(lines, where)
        if wrong is not None:
            bad += 1
            print("".join(f"# {line}\n" for line in wrong.splitlines()), end="")
        print(f"{'ok' if wrong is None else 'not ok'} {number} - {name.replace(' ', '_')}", flush=True)
    print(f"1..{number}")
    return bool(bad) or number < 10


if __name__ == "__main__":
    sys.exit(main())
