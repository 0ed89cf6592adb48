#!/usr/bin/env python3
"""Tessera beside other servers: runs ../shared/peers/compare.py, or with `quality` its quality.py, with this
build as one of them.

usage: bench/peers.py --root DIR --model NAME --servers tessera,llama[,...] --out PREFIX [more of compare.py]
       bench/peers.py quality --root DIR --models NAME[,...] --servers tessera,llama[,...] [more of quality.py]

DIR is what ../shared/peers/setup.sh filled. Servers of our own: `tessera` (what the machine has),
`tessera-avx2` (capped with --isa, for peers built for AVX2), `tessera-plain` (no n-gram speculation). Everything else as `--help` of the two says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(os.environ.get("TESSERA_SHARED", ROOT.parent / "shared")) / "peers"
BINARY = ROOT / "build/release/tessera"


def entry(name: str, *flags: str) -> str:
    words = [str(BINARY), "serve", "{model}", "--host", "127.0.0.1", "--port", "{port}", "--threads",
             "{threads}", "--served-model-name", "m", "--max-batch", "{slots}", "--max-seq-len", "{ctx}",
             *flags]
    listed = ", ".join(f'"{word}"' for word in words)
    tool = ", ".join(f'"{word}"' for word in (sys.executable, str(ROOT / "bench/quality.py"), "--estimate", "{model}",
                                              "{text}", "{ctx}", "{threads}", *flags))
    return (f'\n[servers.{name}]\nquality = "tool"\nppl_cmd = [{tool}]\ncmd = [{listed}]\nbody = {{ ignore_eos = true }}\n'
            "body_nocache = { cache_prompt = false }\nbody_cache = { cache_prompt = true }\n")


def main() -> int:
    if len(sys.argv) < 2 or not BINARY.exists():
        print(__doc__ if BINARY.exists() else f"{BINARY} is not there: build the release preset",
              file=sys.stderr)
        return 2
    tool, arguments = "compare.py", sys.argv[1:]
    if arguments[0] == "quality":
        tool, arguments = "quality.py", arguments[1:]
    theirs = (PEERS / "peers.toml").read_text().partition("[servers.tessera]")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(theirs.replace("{here}", str(PEERS)))
        config.write(entry("tessera") + entry("tessera-avx2", "--isa", "avx2") +
                     entry("tessera-plain", "--speculate", "off"))
        config.flush()
        return subprocess.run([sys.executable, str(PEERS / tool), "--config", config.name,
                               *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main())
