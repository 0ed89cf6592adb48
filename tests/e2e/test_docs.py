"""Every command that the documents print is run: each ```sh block, as one script."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import GGUF, ROOT, TESSERA, free_port, tessera

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SETUP = ("./quickstart.sh", "./check.sh")  # Run by test_setup.py and by check.sh itself.
VERBS = [line.split()[0] for line in
         tessera("--help").stdout.decode().split("Subcommands:\n")[1].split("\n\n")[0].splitlines()]


def blocks() -> list[tuple[str, str]]:
    found = []
    for document in DOCUMENTS:
        for match in re.finditer(r"^```sh\n(.*?)^```", document.read_text(), re.S | re.M):
            line = document.read_text()[:match.start()].count("\n") + 1
            found.append((f"{document.relative_to(ROOT)}:{line}", match.group(1)))
    return found


@pytest.mark.parametrize("place,script", blocks(), ids=[place for place, _ in blocks()])
def test_block_runs(place: str, script: str, tmp_path: Path, cache: Path) -> None:
    lines = [line for line in script.splitlines() if not line.startswith(SETUP)]
    if not any(line.strip() for line in lines):
        return
    port = free_port()
    (tmp_path / "model.gguf").symlink_to(GGUF)
    script = "\n".join(lines).replace("8000", str(port)).replace("5000", str(free_port()))
    env = {**os.environ, "PATH": f"{TESSERA.parent}:{os.environ['PATH']}",
           "TESSERA_CACHE": str(cache), "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=env,
                          text=True, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, f"{place}\n{done.stdout}\n{done.stderr}"


def test_readme_begins_with_the_two_commands() -> None:
    (_, first), *_ = blocks()
    assert [line.split()[0] for line in first.splitlines() if line] == list(SETUP)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_a_section(verb: str) -> None:
    assert len(VERBS) > 10
    done = tessera(verb, "--help")
    assert done.returncode == 0 and verb.encode() in done.stdout
    assert f"\n## {verb}\n" in (ROOT / "docs/cli.md").read_text()


def test_the_command_line_page_is_the_help() -> None:
    done = subprocess.run([str(ROOT / "tools/cli_reference.py"), "--check", str(TESSERA)],
                          check=False)
    assert done.returncode == 0, "docs/cli.md is old: run tools/cli_reference.py"
