"""sharktank's datasets through the command line: compiled, run, written again, inspected."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import SHARED, TINY, tessera, weights_of

SAMPLES = SHARED / "samples/shark/irpa_sharktank"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The samples with a tokenizer beside them, which makes them models."""
    for path in SAMPLES.glob("*.irpa"):
        shutil.copyfile(path, tmp_path / path.name)
    shutil.copyfile(TINY / "hf/tokenizer.json", tmp_path / "tokenizer.json")
    return tmp_path


def run(*args: str | Path) -> tuple[str, str]:
    done = tessera(*args)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def same(a: Path, b: Path) -> bool:
    return a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("name", ["toy_llama", "tiny2"])
def test_a_dataset_is_written_again_with_sharktanks_bytes(folder: Path, name: str) -> None:
    out = folder / "out"
    run("compile", folder / f"{name}.irpa", "--cache-dir", folder / "cache", "--emit-dataset", out)
    assert same(out / f"{name}.irpa", SAMPLES / f"{name}.irpa")
    assert same(out / "tokenizer.json", folder / "tokenizer.json")
    # What was written is a model again: the folder opens.
    run("compile", out, "--cache-dir", folder / "cache")


def test_a_dataset_whose_property_lies_about_its_pairs_is_read_as_the_exporter_read_it(folder: Path) -> None:
    toy, cache = folder / "toy_llama.irpa", folder / "cache"
    said, _ = run("compile", toy, "--cache-dir", cache)
    meant, _ = run("compile", toy, "--use-hf", "--cache-dir", cache, "--emit-dataset", folder / "mended.irpa")
    assert said != meant
    # Only the property differs, and without the flag the mended dataset is what the flag made of the other.
    assert b'"llama.rope.interleave_emb": false' in (folder / "mended.irpa").read_bytes()
    mended, _ = run("compile", folder / "mended.irpa", "--cache-dir", cache)
    weights = [weights_of(Path(bundle.strip())) for bundle in (said, meant, mended)]
    assert weights[0] != weights[1] and weights[1] == weights[2]
    for model in (TINY / "hf", said.strip()):
        refused = tessera("compile", model, "--use-hf", "--cache-dir", cache, "--output-artifacts-dir", folder / "x")
        assert refused.returncode == 1 and "--use-hf" in refused.stderr.decode()


# The bytes of ranks: EmitDataset.ShardsAsSharktankDoes.
def test_ranks_of_a_repository_make_a_model_again(folder: Path) -> None:
    out = folder / "sharded" / "tiny.irpa"
    out.parent.mkdir()
    run("compile", TINY / "hf", "--tp", "2", "--cache-dir", folder / "cache", "--emit-dataset", out)
    names = sorted(path.name for path in out.parent.iterdir())
    assert names == ["tiny.irpa", "tiny.rank0.irpa", "tiny.rank1.irpa"]
    shutil.copyfile(TINY / "hf/tokenizer.json", out.parent / "tokenizer.json")
    run("compile", out, "--cache-dir", folder / "cache")


def test_the_toy_answers(folder: Path) -> None:
    ids = folder / "ids.json"
    ids.write_text(json.dumps(list(range(1, 21))))
    out, _ = run("perplexity", folder / "toy_llama.irpa", ids, "--ids", "--json", "--cache-dir",
                 folder / "cache")
    assert json.loads(out)["mean_nll"] > 0


def test_inspect_shows_logical_tensors_and_properties(folder: Path) -> None:
    out, _ = run("inspect", folder / "tiny2_tp2.irpa", "--json")
    dataset = json.loads(out)["dataset"]
    assert dataset["ranks"] == 2
    assert dataset["properties"]["llama.block_count"] == 2
    tensors = {tensor["name"]: tensor for tensor in dataset["tensors"]}
    down = tensors["blk.1.ffn_down.weight"]
    assert (down["type_name"], down["shard_dim"], down["shape"]) == (
        "SplitPrimitiveTensor", 1, [32, 16])
    assert down["parts"]["1"]["entry"] == "blk.1.ffn_down.weight.shard.1"
    text, _ = run("inspect", folder / "tiny2_tp2.irpa")
    assert "dim 1 in 2" in text and "llama.rope.freq_base" in text
    # A logical tensor by its name, though no file has it in one piece.
    whole = tessera("inspect", folder / "tiny2.irpa", "--dump", "blk.1.ffn_down.weight").stdout
    ranks = tessera("inspect", folder / "tiny2_tp2.irpa", "--dump", "blk.1.ffn_down.weight").stdout
    assert len(whole) == 32 * 16 * 4 and whole == ranks


def fails(*args: str | Path) -> str:
    done = tessera(*args)
    assert done.returncode != 0
    return done.stderr.decode()


def test_what_cannot_be_is_said_in_one_sentence(folder: Path) -> None:
    cache = folder / "cache"
    (folder / "tiny2_tp2.rank1.irpa").unlink()
    assert "tiny2_tp2.rank1.irpa" in fails("compile", folder / "tiny2_tp2.irpa", "--cache-dir",
                                           cache)
    assert "tokenizer.json" in fails("compile", folder / "tiny2.irpa", "--cache-dir", cache,
                                     "--emit-dataset", folder / "tokenizer.json")
    (folder / "tokenizer.json").unlink()
    assert "put its tokenizer.json beside it" in fails("compile", folder / "tiny2.irpa",
                                                       "--cache-dir", folder / "other")
