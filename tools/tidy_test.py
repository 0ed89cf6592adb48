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
LOW_CMAKE = "tessera_layer(low SOURCES a.cc FUZZ a_fuzz.cc)\n"
CLEAN = {
    "src/LAYERS": "low:\nhigh: low\n",
    "src/low/CMakeLists.txt": LOW_CMAKE,
    "src/low/a.h": SPDX + "#pragma once\n",
    "src/low/a.cc": SPDX + '#include "low/a.h"\n// TODO(#12): faster.\n',
    "src/low/a_fuzz.cc": SPDX + '#include "low/a.h"\n',
    "tests/fuzz/corpus/a_fuzz/seed": "x",
    "src/high/CMakeLists.txt": "tessera_layer(high SOURCES b.cc DEPS low LIBS fmt::fmt)\n",
    "src/high/b.cc": SPDX + '#include "low/a.h"\n',
    "ARCHITECTURE.md": "See `low/a.h` and [the layers](src/LAYERS).\n",
}


class Tidy(unittest.TestCase):
    def run_on(self, changes: dict[str, str | None]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            for name, text in {**CLEAN, **changes}.items():
                if text is None:
                    continue  # A file of the clean tree that this tree lacks.
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, TIDY, "--root", root], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout + done.stderr

    def test_clean_tree_passes(self) -> None:
        code, out = self.run_on({})
        self.assertEqual(code, 0, out)

    def assert_caught(self, changes: dict[str, str | None], words: str) -> None:
        code, out = self.run_on(changes)
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def test_upward_include(self) -> None:
        self.assert_caught({"src/low/a.cc": SPDX + '#include "high/b.h"\n'},
                           "low must not include high")

    def test_cycle_in_layers(self) -> None:
        self.assert_caught({"src/LAYERS": "low: high\nhigh: low\n"}, "not above it")

    def test_cmake_dependency(self) -> None:
        self.assert_caught({"src/low/CMakeLists.txt": LOW_CMAKE.replace(")", " DEPS high)")},
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

    def test_fuzzer_without_seeds_or_target(self) -> None:
        self.assert_caught({"tests/fuzz/corpus/a_fuzz/seed": None}, "no seeds in")
        # Named, but compiled as something else: run.sh would look for a binary that is not built.
        self.assert_caught({"src/low/CMakeLists.txt": LOW_CMAKE.replace("FUZZ", "TESTS")},
                           "not in the FUZZ list of src/low/CMakeLists.txt")

    def test_documents(self) -> None:
        for gone in ("`low/gone.h`", "`src/low/gone.h`", "`gone/`", "`low/a`"):
            self.assert_caught({"ARCHITECTURE.md": gone + "\n"}, "does not exist")
        code, out = self.run_on({"ARCHITECTURE.md": "`low/`, `src/low/a.h`, `low/a.h`\n"})
        self.assertEqual(code, 0, out)
        self.assert_caught({"ARCHITECTURE.md": None}, "ARCHITECTURE.md is missing")
        self.assert_caught({"docs/x.md": "[a](missing.md)\n"}, "leads nowhere")


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"checks: {result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
