# SPDX-License-Identifier: Apache-2.0
"""Where a measurement comes from: the members that every line of bench/results begins with."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True,
                          check=False).stdout.strip()


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def provenance() -> dict:
    """`load` before the measurement: quote figures of a quiet machine only."""
    commit = git("rev-parse", "--short", "HEAD")
    if git("status", "--porcelain", "--untracked-files=no"):
        commit += "+changes"
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit, "cpu": cpu_name(),
            "cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
