"""The unmodified openai package for Node against the real model: openai_client.test.cjs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conftest import TESTDATA, Served

CLIENTS = TESTDATA / "clients/node_modules"
SCRIPT = Path(__file__).with_name("openai_client.test.cjs")


def test_the_openai_package_of_node_is_served(served: Served) -> None:
    assert (CLIENTS / "openai").is_dir(), "run tools/fetch_test_data.sh"
    environment = {**os.environ, "TESSERA_URL": served.url, "NODE_PATH": str(CLIENTS),
                   "NO_PROXY": "*"}
    done = subprocess.run(["node", "--test", "--test-reporter=tap", str(SCRIPT)], timeout=300,
                          capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "# pass 6" in done.stdout and "# fail 0" in done.stdout, done.stdout[-2000:]
