#!/usr/bin/env python3
"""Tests of tidy.py: each rule must catch its offence and let the clean tree pass."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TIDY = Path(__file__).resolve().parent / "tidy.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
CLEAN = {
    "src/LAYERS": "low:\nhigh: low\n",
    "src/low/CMakeLists.txt": "tessera_layer(low SOURCES a.cc)\n",
    "src/low/a.h": SPDX + "#pragma once\n",
    "src/low/a.cc": SPDX + '#include "low/a.h"\n// TODO(#12): faster.\n',
    "src/high/CMakeLists.txt": "tessera_layer(high SOURCES b.cc DEPS low LIBS fmt::fmt)\n",
    "src/high/b.cc": SPDX + '#include "low/a.h"\n',
    "ARCHITECTURE.md": "See `low/a.h` and [the layers](src/LAYERS).\n",
}


class Tidy(unittest.TestCase):
    def run_on(self, changes: dict[str, str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            for name, text in {**CLEAN, **changes}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, TIDY, "--root", root], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout + done.stderr

    def test_clean_tree_passes(self) -> None:
        code, out = self.run_on({})
        self.assertEqual(code, 0, out)

    def assert_caught(self, changes: dict[str, str], words: str) -> None:
        code, out = self.run_on(changes)
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def test_upward_include(self) -> None:
        self.assert_caught({"src/low/a.cc": SPDX + '#include "high/b.h"\n'},
                           "low must not include high")

    def test_cycle_in_layers(self) -> None:
        self.assert_caught({"src/LAYERS": "low: high\nhigh: low\n"}, "not above it")

    def test_cmake_dependency(self) -> None:
        self.assert_caught({"src/low/CMakeLists.txt": "tessera_layer(low SOURCES a.cc DEPS high)\n"},
                           "are not in src/LAYERS for low")

    def test_banned_call(self) -> None:
        self.assert_caught({"src/low/a.cc": SPDX + 'auto x = getenv("A");\n'}, "banned")
        code, out = self.run_on({"src/low/a.cc": SPDX + '// getenv("A")\nauto s = "getenv(";\n'})
        self.assertEqual(code, 0, out)

    def test_licence_pragma_todo(self) -> None:
        self.assert_caught({"src/low/a.cc": "int x;\n"}, "SPDX")
        self.assert_caught({"src/low/a.h": SPDX}, "#pragma once")
        self.assert_caught({"src/low/a.cc": SPDX + "// TODO: later\n"}, "TODO(#issue)")

    def test_dead_file_and_blob(self) -> None:
        self.assert_caught({"src/low/dead.cc": SPDX}, "no CMakeLists.txt names it")
        self.assert_caught({"big.bin": "x" * (3 << 20)}, "do not belong")

    def test_documents(self) -> None:
        self.assert_caught({"ARCHITECTURE.md": "`low/gone.h`\n"}, "does not exist")
        self.assert_caught({"docs/x.md": "[a](missing.md)\n"}, "leads nowhere")


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"checks: {result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
