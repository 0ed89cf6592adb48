# SPDX-License-Identifier: Apache-2.0
"""The hub by hand. Prints its address, then a line for each body that was sent.

usage: python3 -m fake_hub [--port N] [--rate BYTES] [--repository org/name=FOLDER]...
                           [--fault PLACE:NAME:KIND[:key=value,...]]...
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from . import FakeHub
from .faults import KINDS


def add_fault(hub: FakeHub, text: str) -> None:
    place, name, kind, *rest = text.split(":", 3)
    options: dict[str, str | int] = {}
    for pair in filter(None, rest[0].split(",") if rest else []):
        key, _, value = pair.partition("=")
        options[key] = int(value) if value.lstrip("-").isdigit() and key != "value" else value
    hub.fault(place, name, kind, **options)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="fake_hub", description=__doc__,
        epilog="faults: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=int, default=0, help="bytes a second of every body")
    parser.add_argument("--token", default="hf_good")
    parser.add_argument("--repository", action="append", default=[], metavar="org/name=FOLDER")
    parser.add_argument("--fault", action="append", default=[])
    options = parser.parse_args()
    with FakeHub(options.port, options.token) as hub:
        hub.rate = options.rate
        for row in options.repository:
            name, _, folder = row.partition("=")
            hub.add_repository(name, Path(folder))
        for row in options.fault:
            add_fault(hub, row)
        print(f"HF_ENDPOINT={hub.url}", flush=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: hub.stopping.set())
        shown = 0
        while not hub.stopping.wait(0.5):
            with hub.lock:
                rows, shown = hub.served[shown:], len(hub.served)
            for row in rows:
                print(f"{row.place} {row.name} {row.begin}+{row.sent}", file=sys.stderr)


if __name__ == "__main__":
    main()
