"""The support table says what its tests ran."""

from __future__ import annotations

import json
import os
import re

import pytest
from conftest import ROOT, tessera


def test_the_page_has_the_table() -> None:
    page = ROOT / "docs/models.md"
    table = tessera("models", "--markdown").stdout.decode().strip()
    made = re.sub(r"(<!-- models -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{table}\n{m[2]}",
                  page.read_text(), flags=re.S)
    if os.environ.get("UPDATE"):
        page.write_text(made)
    assert page.read_text() == made, "UPDATE=1 pytest tests/e2e/test_models.py writes it"


def test_every_row_names_a_test_or_program_that_exists() -> None:
    facts = json.loads(tessera("models", "--json").stdout)
    families = {row["family"] for row in facts["families"]}
    assert {row["family"] for row in facts["models"]} == families
    for row in facts["models"]:
        file, _, name = row["evidence"].partition(":")
        text = (ROOT / file).read_text()
        assert row["family"] in families
        assert re.fullmatch(r"tp[1-8](, tp[1-8])*", row["sharding"]), row
        assert row["in_ci"] == bool(name), row
        if name:
            assert re.search(rf"(def {name}\(|TEST(_F|_P)?\(\w+, {name}\))", text), row


@pytest.mark.parametrize("size", ["8B", "70B", "405B"])
def test_the_sizes_of_llama_are_told_apart(size: str) -> None:
    said = tessera("models").stdout.decode()
    assert f"Llama 3.1 {size}" in said
