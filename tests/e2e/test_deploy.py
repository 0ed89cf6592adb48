"""deploy/: the board and the alert rules name metrics and labels that a server exports."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from conftest import ROOT, Served

BOARD = json.loads((ROOT / "deploy/grafana/tessera.json").read_text())
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())


def expressions() -> Iterator[tuple[str, str]]:
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.fixture(scope="module")
def exported(served: Served) -> dict[str, set[str]]:
    """Label names of each sample name."""
    served.post("/v1/completions", {"model": "smollm2", "prompt": "Hi", "max_tokens": 2})
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(served.get("/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("where,expression", list(expressions()))
def test_an_expression_names_what_is_exported(exported: dict[str, set[str]], where: str,
                                              expression: str) -> None:
    used = re.findall(r"((?:tessera|process)_\w+)(?:\{([^}]*)\})?", expression)
    assert used or expression.startswith("up{")
    for name, selector in used:
        assert name in exported
        for label in re.findall(r"(\w+)\s*[=!]", selector):
            assert label in exported[name] | {"instance", "job"}
    for labels in re.findall(r"by \(([^)]*)\)", expression):
        known = set().union(*(exported[name] for name, _ in used)) | {"instance"}
        assert set(re.split(r",\s*", labels)) <= known
    assert expression.count("(") == expression.count(")")


def test_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not mine & cells
        cells |= mine
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_every_rule_says_what_to_do() -> None:
    rules: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
