# SPDX-License-Identifier: Apache-2.0
"""A hub on 127.0.0.1 that speaks the real protocol, with faults on demand.

As a program: `python3 -m fake_hub --repository org/name=FOLDER` (with tests/support in PYTHONPATH);
as a module:

    with FakeHub() as hub:
        hub.add_repository("org/name", folder)
        hub.fault("store", "*.safetensors", "truncate", after=1000)
        run(env={"HF_ENDPOINT": hub.url})
        hub.served  # What was sent of which file, range by range.
"""

from .content import Content, bytes_content, file_content, sparse_content
from .faults import Fault
from .proxy import Proxy
from .server import FakeHub, Served

__all__ = ["Content", "FakeHub", "Fault", "Proxy", "Served", "bytes_content",
           "file_content", "sparse_content"]
