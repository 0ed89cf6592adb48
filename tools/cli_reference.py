#!/usr/bin/env python3
"""Writes each verb's --help into docs/cli.md, between its `<!-- help VERB -->` (or `VERB SUBVERB`) and `<!-- end -->`.

usage: tools/cli_reference.py [--check] [TESSERA]
--check compares only (exit 1 when the page is old).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/cli.md"


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    tessera = arguments[0] if arguments else str(ROOT / "build/release/tessera")

    def help_of(match: re.Match[str]) -> str:
        words = [] if match.group(1) == "tessera" else match.group(1).split()
        text = subprocess.run([tessera, *words, "--help"], check=True, capture_output=True,
                              text=True).stdout
        lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
        return f"<!-- help {match.group(1)} -->\n```text\n{lines}\n```\n<!-- end -->"

    old = PAGE.read_text()
    new = re.sub(r"<!-- help ([\w -]+?) -->.*?<!-- end -->", help_of, old, flags=re.S)
    if "--check" in sys.argv:
        return 0 if new == old else 1
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
