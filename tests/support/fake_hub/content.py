# SPDX-License-Identifier: Apache-2.0
"""Bytes of a file: from memory, from disk, or a header with a hole behind it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Content:
    size: int
    sha256: str
    git_oid: str
    head: bytes = field(default=b"", repr=False)  # The rest of `size` is zeros, unless `path`.
    path: Path | None = None

    def read(self, begin: int, end: int) -> bytes:
        if self.path is not None:
            with self.path.open("rb") as file:
                file.seek(begin)
                return file.read(end - begin)
        return self.head[begin:end].ljust(end - begin, b"\0")

    @property
    def pointer(self) -> bytes:
        """What git itself stores of a large file."""
        return (f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\n"
                f"size {self.size}\n").encode()


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def bytes_content(data: bytes) -> Content:
    return Content(len(data), hashlib.sha256(data).hexdigest(), git_oid(data), head=data)


def file_content(path: Path) -> Content:
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            sha256.update(piece)
            sha1.update(piece)
    return Content(path.stat().st_size, sha256.hexdigest(), sha1.hexdigest(), path=path)


def sparse_content(head: bytes, size: int) -> Content:
    """A huge file of which only the beginning matters; its announced hash is not its own."""
    name = hashlib.sha256(head + str(size).encode())
    return Content(size, name.hexdigest(), name.hexdigest()[:40], head=head)
