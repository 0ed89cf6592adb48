#!/usr/bin/env python3
"""The style guide as a check: layers, banned calls, TODO form, dead files, blobs, documents.

Enforced (exit 1): includes and CMake dependencies agree with src/LAYERS, the graph has no cycle;
no banned call; SPDX line; TODOs name an issue; no tracked file over 2 MiB; links and quoted file
names in ARCHITECTURE.md exist; every source file is compiled; every fuzzer is built and has seeds.
Reported only: long files, functions and lines, for a reader to decide.

usage: tools/tidy.py [--root DIR]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

MAX_BLOB_BYTES = 2 << 20
LONG_FILE, LONG_LINE, LONG_FUNCTION = 600, 100, 70

# (pattern, where it is allowed, why)
BANNED = [
    (r"\bgetenv\s*\(", r"^src/cli/|^tests/|_test\.cc$", "the environment is read in cli/ only"),
    (r"\busing namespace\b", r"^$", "spell the namespace, or use a using-declaration"),
    (r"\bthrow\b(?!\s*\()", r"^$", "we do not throw: return Status"),
    (r"#include <regex>|#include <iostream>", r"^src/cli/main\.cc$", "heavy header"),
    (r"\bsystem\s*\(|\bpopen\s*\(", r"^$", "no shell"),
    (r"\b(strcpy|strcat|sprintf|gets|atoi|atof|rand)\s*\(", r"^$", "unsafe or imprecise call"),
    # MPI has no event that a process without a CPU could wait for.
    (r"\bsleep_for\b", r"_test\.cc$|^tests/|^src/runtime/mpi/", "no sleeping: wait for an event"),
]


@dataclass
class Report:
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checks: int = 0

    def check(self, ok: bool, message: str) -> None:
        self.checks += 1
        if not ok:
            self.errors.append(message)


def tracked(root: Path) -> list[str]:
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True,
                         capture_output=True, text=True).stdout
    return [p for p in out.splitlines() if (root / p).is_file()]


def read_layers(text: str) -> dict[str, set[str]]:
    layers: dict[str, set[str]] = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, deps = line.partition(":")
            layers[name.strip()] = set(deps.split())
    return layers


def without_comments(text: str) -> str:
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def check_layers(root: Path, files: list[str], report: Report) -> None:
    layers = read_layers((root / "src/LAYERS").read_text())
    seen: set[str] = set()
    for name, deps in layers.items():  # Lowest first: each may name only earlier ones.
        report.check(deps <= seen, f"src/LAYERS: {name} names a layer that is not above it: "
                                   f"{sorted(deps - seen)}")
        seen.add(name)
    for path in files:
        match = re.match(r"src/(\w+)/", path)
        if not match or not path.endswith((".h", ".cc")):
            continue
        layer = match.group(1)
        report.check(layer in layers, f"{path}: the folder {layer} is not in src/LAYERS")
        for line, included in includes(root / path):
            target = included.split("/")[0]
            if target in layers and target != layer:
                report.check(target in layers.get(layer, set()),
                             f"{path}:{line}: {layer} must not include {target} (src/LAYERS)")
    for name, deps in layers.items():
        cmake = root / "src" / name / "CMakeLists.txt"
        if not cmake.exists():
            continue
        used = cmake_list(cmake.read_text(), "DEPS")
        report.check(used <= deps, f"{cmake.relative_to(root)}: DEPS {sorted(used - deps)} are "
                                   f"not in src/LAYERS for {name}")


def includes(path: Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include "([^"]+)"', line)
        if match:
            found.append((number, match.group(1)))
    return found


def check_sources(root: Path, files: list[str], report: Report) -> None:
    for path in files:
        if not path.endswith((".h", ".cc", ".rs")):
            continue
        text = (root / path).read_text()
        report.check(text.startswith(("// SPDX-License-Identifier: ", "/* SPDX-License-Identifier: ")),
                     f"{path}:1: the first line must be the SPDX licence line")
        for number, line in enumerate(text.splitlines(), 1):
            for todo in re.finditer(r"\b(TODO|FIXME|XXX|HACK)\b(\(#\d+\): )?", line):
                report.check(todo.group(1) == "TODO" and bool(todo.group(2)),
                             f"{path}:{number}: write TODO(#issue): text")
            if len(line) > LONG_LINE and path.endswith((".h", ".cc")) and "http" not in line:
                report.notes.append(f"{path}:{number}: line of {len(line)} characters")
        if path.endswith(".h") and path.startswith(("src/", "tests/")):
            report.check("#pragma once" in text, f"{path}: needs #pragma once")
        count = text.count("\n")
        if count > LONG_FILE:
            report.notes.append(f"{path}: {count} lines")
        report.check(not re.search(r"(^|/)(utils?|common|misc|helpers?)\.", path),
                     f"{path}: name a file after what it holds")
        if path.endswith((".h", ".cc")):
            check_banned(path, without_comments(text), report)
            note_long_functions(path, text, report)


def check_banned(path: str, code: str, report: Report) -> None:
    for number, line in enumerate(code.splitlines(), 1):
        for pattern, allowed, why in BANNED:
            if re.search(pattern, line):
                report.check(bool(re.search(allowed, path)) if allowed != "^$" else False,
                             f"{path}:{number}: banned: {line.strip()[:60]} ({why})")


def note_long_functions(path: str, text: str, report: Report) -> None:
    """A function body in Google style opens with ') {' at the end of a line and closes with '}' at
    the indentation of the line it began on."""
    begin, indent = None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if begin is None:
            match = re.match(r"(\s{0,2})\S.*\)( const)?( noexcept)?( override)? \{$", line)
            if match and not re.match(r"\s*(if|for|while|switch|else|TEST)\b", line):
                begin, indent = number, match.group(1)
        elif line.startswith(indent + "}"):
            if number - begin > LONG_FUNCTION:
                report.notes.append(f"{path}:{begin}: function of {number - begin} lines")
            begin = None


def check_compiled(root: Path, files: list[str], report: Report) -> None:
    """A source file that no CMakeLists.txt names is dead."""
    cmake = "\n".join((root / p).read_text() for p in files if p.endswith("CMakeLists.txt") or
                      p.endswith(".cmake"))
    for path in files:
        if path.endswith(".cc") and path.startswith(("src/", "tests/", "bench/")):
            report.check(Path(path).name in cmake, f"{path}: no CMakeLists.txt names it")


def cmake_list(text: str, keyword: str) -> set[str]:
    """The words after `keyword`, up to the next all-capitals keyword or the closing bracket."""
    found: set[str] = set()
    inside = False
    for word in re.findall(r"[\w:.+/-]+|\)", re.sub(r"#[^\n]*", "", text)):
        if word == ")" or re.fullmatch(r"[A-Z_]+", word):
            inside = word == keyword
        elif inside:
            found.add(word)
    return found


def check_fuzzers(root: Path, files: list[str], report: Report) -> None:
    """tests/fuzz/run.sh runs every src/**/*_fuzz.cc: each must be built and have seeds."""
    for path in files:
        if not (path.startswith("src/") and path.endswith("_fuzz.cc")):
            continue
        fuzzer = Path(path).stem
        seeds = f"tests/fuzz/corpus/{fuzzer}/"
        report.check(any(f.startswith(seeds) for f in files), f"{path}: no seeds in {seeds}")
        layer = root / "src" / Path(path).parts[1]
        cmake = layer / "CMakeLists.txt"
        listed = cmake_list(cmake.read_text(), "FUZZ") if cmake.exists() else set()
        report.check((root / path).relative_to(layer).as_posix() in listed,
                     f"{path}: not in the FUZZ list of src/{layer.name}/CMakeLists.txt")


def check_documents(root: Path, files: list[str], report: Report) -> None:
    known = set(files) | {str(p) for f in files for p in Path(f).parents}
    report.check("ARCHITECTURE.md" in known, "ARCHITECTURE.md is missing")
    for path in files:
        if not path.endswith(".md"):
            continue
        text = (root / path).read_text()
        here = Path(path).parent
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            target = (root / here / link).resolve()
            report.check(target.exists(), f"{path}: the link {link} leads nowhere")
        if path == "ARCHITECTURE.md":
            for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text):
                # In full, or from src/; a folder or a file, with its suffix.
                clean = name.rstrip("/")
                report.check(clean in known or "src/" + clean in known,
                             f"ARCHITECTURE.md: `{name}` does not exist")


def check_blobs(root: Path, files: list[str], report: Report) -> None:
    for path in files:
        size = (root / path).stat().st_size
        report.check(size <= MAX_BLOB_BYTES, f"{path}: {size} bytes do not belong in the repository")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--notes", action="store_true", help="show what stands out but may stay")
    args = parser.parse_args()
    report = Report()
    files = tracked(args.root)
    check_layers(args.root, files, report)
    check_sources(args.root, files, report)
    check_compiled(args.root, files, report)
    check_fuzzers(args.root, files, report)
    check_documents(args.root, files, report)
    check_blobs(args.root, files, report)
    if args.notes:
        print("\n".join(report.notes))
    print("\n".join(report.errors))
    print(f"notes: {len(report.notes)} (--notes shows them)")
    print(f"checks: {report.checks - len(report.errors)} passed, {len(report.errors)} failed")
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
