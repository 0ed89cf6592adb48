# SPDX-License-Identifier: Apache-2.0
"""What may go wrong between a hub and its client."""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass, field

KINDS = {
    "truncate": "sends `after` bytes of the body and closes",
    "corrupt": "flips the byte at `after` of the body",
    "stall": "sends `after` bytes of the body and then nothing until the client gives up",
    "slow": "sends `rate` bytes a second",
    "status": "answers `code` with `headers`",
    "etag": "sends `value` as ETag",
    "loop": "redirects to itself",
    "no_range": "ignores Range",
    "total": "says in Content-Range (or Content-Length) that the file has `value` bytes",
    "drop": "closes without an answer",
    "downgrade": "redirects to `value`",
}


@dataclass
class Fault:
    place: str  # "api", "resolve", "store", "file", "s3"
    name: str  # Pattern of the file's name; of an API answer the repository's.
    kind: str
    times: int = 1  # Negative: always.
    skip: int = 0  # Requests that pass before it begins.
    after: int = 0
    rate: int = 1 << 20
    code: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    value: str = ""


class FaultPlan:
    """Thread-safe: each request takes the first fault that fits it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        assert fault.kind in KINDS, f"{fault.kind}: one of {', '.join(KINDS)}"
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, place: str, name: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.place != place or not fnmatch.fnmatch(name, fault.name) or not fault.times:
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                return fault
        return None
