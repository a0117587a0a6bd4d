#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make a C header that holds text files as string constants: embed.py OUTPUT FILE..."""

import os
import sys


def c_lines(text):
    """One C string literal per line of text, none longer than compilers must accept."""
    for line in text.splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
        yield '\t"' + escaped.replace("\t", "\\t") + '\\n"'


def main(output, files):
    with open(output, "w", encoding="ascii") as out:
        for path in files:
            name = os.path.basename(path).replace(".", "_")
            with open(path, encoding="ascii") as f:
                lines = c_lines(f.read())
                out.write("static const char embedded_%s[] =\n%s;\n\n" % (name, "\n".join(lines)))


main(sys.argv[1], sys.argv[2:])
