#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far the distributions of Tessera and of llama.cpp are from those of the same weights in float64.

    bench/quality.py MODEL.gguf TEXT --peer llama=DIR/llama.cpp/bin/llama-perplexity [--peer ...] [--record]
    bench/quality.py --estimate MODEL.gguf TEXT CTX THREADS [FLAGS]     what llama-perplexity prints, by Tessera

Definition of llama-perplexity: windows of --ctx tokens that do not overlap, the second half of each scored.
Per engine: mean NLL of the text, and the mean over all scored positions of the Kullback-Leibler divergence
KL(reference || engine) with its standard error, the share of positions where both find the same token most
likely, and the difference of KL to Tessera's, position by position.

The reference is neither engine: the Llama architecture in NumPy, float64 throughout, over the weights of the
file as `tessera inspect --dump` decodes them. Peers' distributions come from --kl-divergence-base, which keeps
logarithms of probabilities in steps of about 0.0003, cut off 16 below the largest; Tessera's and the
reference's are rounded the same way before they are compared (--exact: are not). NLLs are from before that.

Needs NumPy and a release build. Models: GGUF of the Llama family whose rows of q and k are interleaved for
rope (as its converter writes them).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from provenance import ROOT, provenance

TESSERA = ROOT / "build/release/tessera"


def run(*command: object, folder: Path | None = None, notes: bool = False) -> str:
    """Stdout; with `notes` what it says on stderr after it."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout + (done.stderr if notes else "")


class Windows:
    """The tokens that are fed, [windows, ctx], and which of each window's rows are scored."""

    def __init__(self, ids, ctx: int) -> None:
        import numpy as np
        self.ids = np.asarray(ids).reshape(-1, ctx)
        self.first, self.last = ctx // 2, ctx - 1  # Row i predicts token i + 1.

    def targets(self):
        return self.ids[:, self.first + 1:self.last + 1].ravel()


def read_base(path: Path):
    """A file of --kl-divergence-base: (ctx, token ids, log-probabilities [positions, vocabulary])."""
    import numpy as np
    with path.open("rb") as file:
        if file.read(8) != b"_logits_":
            sys.exit(f"{path}: no base file of llama-perplexity")
        ctx, vocabulary, chunks = struct.unpack("<iii", file.read(12))
        ids = np.frombuffer(file.read(4 * ctx * chunks), np.int32)
        scored = ctx - 1 - ctx // 2
        width = 2 * ((vocabulary + 1) // 2) + 4  # Of uint16: scale and minimum as float32, values.
        rows = np.frombuffer(file.read(), np.uint16).reshape(chunks * scored, width)
    head = np.ascontiguousarray(rows[:, :4]).view(np.float32).astype(np.float64)
    return ctx, ids, head[:, 1:] + head[:, :1] * rows[:, 4:4 + vocabulary]


def log_softmax(logits):
    import numpy as np
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def as_stored(log_p):
    """What --kl-divergence-base leaves of log-probabilities."""
    import numpy as np
    top = log_p.max(axis=1, keepdims=True)
    low = np.maximum(log_p.min(axis=1, keepdims=True), top - 16)
    scale = (top - low) / 65535
    return low + scale * np.rint((np.maximum(log_p, low) - low) / scale)


def of_peer(binary: str, arguments: argparse.Namespace, base: Path):
    """As read_base, and the tool's own estimate of the NLL, from before its log-probabilities were cut off."""
    out = run(Path(binary).absolute(), "-m", Path(arguments.model).absolute(), "-f", Path(arguments.text).absolute(),
              "-c", arguments.ctx, "-t", arguments.threads, "--kl-divergence-base", base,
              folder=base.parent, notes=True)  # Some leave logs where they stand.
    estimate_of_tool = re.search(r"Final estimate: PPL.*?= *([0-9.]+) *\+/-", out)
    if estimate_of_tool is None:
        sys.exit(f"{binary}: no estimate in its output")
    return *read_base(base), math.log(float(estimate_of_tool[1]))


def of_tessera(arguments: argparse.Namespace, ids, folder: Path):
    import numpy as np
    (folder / "ids.json").write_text(json.dumps([int(i) for i in ids]))
    run(TESSERA, "perplexity", arguments.model, folder / "ids.json", "--ids", "--disjoint", "--window",
        arguments.ctx, "--save", folder / "rows.f32", "--json", "--threads", arguments.threads, *arguments.flag)
    scored = len(ids) // arguments.ctx * (arguments.ctx - 1 - arguments.ctx // 2)
    rows = np.fromfile(folder / "rows.f32", np.float32).reshape(scored, -1)
    return log_softmax(rows.astype(np.float64))


class Reference:
    """Llama in float64, one layer's weights in memory at a time."""

    def __init__(self, model: str) -> None:
        facts = json.loads(run(TESSERA, "inspect", model, "--json"))
        self.model = model
        self.metadata = facts["files"][0]["metadata"]
        self.names = {tensor["name"]: tensor["shape"] for tensor in facts["tensors"]}

    def value(self, key: str):
        return self.metadata[f"llama.{key}"]

    def weight(self, name: str):
        import numpy as np
        done = subprocess.run([str(TESSERA), "inspect", self.model, "--dump", name], capture_output=True, check=True)
        return np.frombuffer(done.stdout, np.float32).astype(np.float64).reshape(self.names[name])

    def norm(self, x, name: str):
        import numpy as np
        scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.value("attention.layer_norm_rms_epsilon"))
        return x * scale * self.weight(name)

    def rope(self, x):
        """x: [windows, ctx, heads, dim], interleaved pairs."""
        import numpy as np
        dim = x.shape[-1]
        angle = np.arange(x.shape[1])[:, None] * self.value("rope.freq_base") ** (-np.arange(0, dim, 2) / dim)
        cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
        even, odd = x[..., ::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., ::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return out

    def attention(self, x, layer: str):
        import numpy as np
        heads, kv_heads = self.value("attention.head_count"), self.value("attention.head_count_kv")
        split = lambda y, n: y.reshape(*y.shape[:2], n, -1)
        q = self.rope(split(x @ self.weight(layer + "attn_q.weight").T, heads))
        k = self.rope(split(x @ self.weight(layer + "attn_k.weight").T, kv_heads)).repeat(heads // kv_heads, 2)
        v = split(x @ self.weight(layer + "attn_v.weight").T, kv_heads).repeat(heads // kv_heads, 2)
        scores = np.einsum("wqhd,wkhd->whqk", q, k) / math.sqrt(q.shape[-1])
        scores += np.triu(np.full(scores.shape[-2:], -np.inf), 1)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("whqk,wkhd->wqhd", scores, v).reshape(x.shape[0], x.shape[1], -1)
        return mixed @ self.weight(layer + "attn_output.weight").T

    def feed_forward(self, x, layer: str):
        import numpy as np
        gate = x @ self.weight(layer + "ffn_gate.weight").T
        up = x @ self.weight(layer + "ffn_up.weight").T
        return (gate / (1 + np.exp(-gate)) * up) @ self.weight(layer + "ffn_down.weight").T

    def log_probabilities(self, windows: Windows):
        x = self.weight("token_embd.weight")[windows.ids]
        for index in range(self.value("block_count")):
            layer = f"blk.{index}."
            x = x + self.attention(self.norm(x, layer + "attn_norm.weight"), layer)
            x = x + self.feed_forward(self.norm(x, layer + "ffn_norm.weight"), layer)
        x = self.norm(x, "output_norm.weight")[:, windows.first:windows.last]
        head = "output.weight" if "output.weight" in self.names else "token_embd.weight"
        return log_softmax(x.reshape(-1, x.shape[-1]) @ self.weight(head).T)


def mean_and_error(values) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def nll_of(log_p, targets) -> float:
    import numpy as np
    return float(-log_p[np.arange(targets.size), targets].mean())


def figures(nll: float, log_p, log_q, ours_kl) -> tuple[dict, object]:
    import numpy as np
    kl = (np.exp(log_p) * (log_p - log_q)).sum(axis=1)
    row = {"nll": nll,
           "same_top": float((log_p.argmax(axis=1) == log_q.argmax(axis=1)).mean())}
    row["kl"], row["kl_se"] = mean_and_error(kl)
    if ours_kl is not None:
        row["kl_minus_tessera"], row["kl_minus_tessera_se"] = mean_and_error(kl - ours_kl)
    return row, kl


def measure(arguments: argparse.Namespace) -> dict:
    peers = dict(peer.split("=", 1) for peer in arguments.peer)
    distributions, estimates = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for peer, binary in peers.items():
            ctx, ids, distributions[peer], estimates[peer] = of_peer(binary, arguments, folder / "base")
            assert ctx == arguments.ctx, f"{peer} took windows of {ctx}"
        ours = of_tessera(arguments, ids, folder)
    windows = Windows(ids, arguments.ctx)
    exact = Reference(arguments.model).log_probabilities(windows)
    targets = windows.targets()
    stored = (lambda log_p: log_p) if arguments.exact else as_stored
    reference = stored(exact)
    rows = {"reference": figures(nll_of(exact, targets), reference, reference, None)[0]}
    rows["tessera"], ours_kl = figures(nll_of(ours, targets), reference, stored(ours), None)
    for peer in peers:
        rows[peer], _ = figures(estimates[peer], reference, distributions[peer], ours_kl)
    return {"model": Path(arguments.model).name, "ctx": arguments.ctx, "positions": int(targets.size), "engines": rows}


def estimate(model: str, text: str, ctx: str, threads: str, *flags: str) -> int:
    """For quality.py of the peers: Tessera's figures in the words of llama-perplexity."""
    facts = json.loads(run(TESSERA, "perplexity", model, text, "--disjoint", "--window", ctx, "--threads", threads,
                           "--json", *flags))
    nll, error = facts["mean_nll"], facts["nll_standard_error"]
    print(f"Final estimate: PPL = {math.exp(nll):.6f} +/- {math.exp(nll) * error:.6f}")
    return 0


def main() -> int:
    if sys.argv[1:2] == ["--estimate"] and len(sys.argv) >= 6:
        return estimate(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--peer", action="append", required=True, metavar="NAME=LLAMA_PERPLEXITY")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flag", action="append", default=[], help="one more word for tessera, e.g. --flag=--isa=ref")
    parser.add_argument("--exact", action="store_true",
                        help="do not round Tessera and the reference as the peers' files are")
    parser.add_argument("--record", action="store_true", help="append a line to bench/results/quality.jsonl")
    arguments = parser.parse_args()
    found = measure(arguments)
    for engine, row in found["engines"].items():
        print(f"{engine:<12}", "  ".join(f"{key} {value:.7g}" for key, value in row.items()))
    if arguments.record:
        line = {**provenance(), "command": f"bench/quality.py {found['model']} {Path(arguments.text).name} "
                                           + " ".join(f"--peer {peer.split('=')[0]}" for peer in arguments.peer), **found}
        with (ROOT / "bench/results/quality.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
