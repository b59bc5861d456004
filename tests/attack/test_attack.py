"""The short run of all attacks: a part of those made by hand, each a test, and some hundred mutations of each kind.

`make attack` runs all of them, and millions of mutations. CONVLINT_ATTACK=all runs all that are made by hand here,
CONVLINT_ATTACKS=models-onnx those of that name.
"""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import entry, mutated, seeds
from .block import run_block
from .contract import bare_run
from .groups import verdicts
from .selection import GENERATORS, grouped, short

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are measured through /proc")
EVERY = os.environ.get("CONVLINT_ATTACK") == "all"
ATTACKS = {f"{kind}-{attack.name}": attack for kind in GENERATORS for attack in short(kind, every=EVERY)}
CHOSEN = os.environ.get("CONVLINT_ATTACKS", "")  # a regular expression: only attacks of which it matches the name
MUTATIONS = 300


def test_the_contract_holds(tmp_path: Path) -> None:
    """All attacks in one item: those that can share a process do, and processes run on all processors."""
    wanted = {name: attack for name, attack in ATTACKS.items() if re.search(CHOSEN, name)}
    names = {id(attack): name for name, attack in wanted.items()}
    for kind in {attack.bare for attack in wanted.values()}:
        bare_run(kind)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda group: list(verdicts(group, tmp_path)), grouped(list(wanted.values())))
        results = {names[id(attack)]: breaches for results in found for attack, breaches in results}
    assert results.keys() == wanted.keys()
    assert {name: breaches for name, breaches in results.items() if breaches} == {}


@pytest.mark.contract
@pytest.mark.parametrize("kind", mutated.KINDS)
def test_mutated_inputs_end_in_documented_ways(kind: str, tmp_path: Path) -> None:
    tally = run_block(kind, 0, MUTATIONS, tmp_path)
    assert tally.breaches == []
    assert tally.counts.total() == MUTATIONS
    assert len(tally.counts) > 1, f"all end alike: {tally.counts}"  # else they die of one cause, before they are read


@pytest.mark.contract
@pytest.mark.parametrize("kind", mutated.KINDS)
def test_what_mutations_start_from_is_sound(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"valid{mutated.KINDS[kind][0]}"
    path.write_bytes(_valid(kind, tmp_path))
    assert entry.outcome(kind, path) == "read"


def _valid(kind: str, folder: Path) -> bytes:
    if kind in seeds.VALID:
        return bytes(seeds.VALID[kind][1]())
    if kind == "index":
        (folder / "x.safetensors").write_bytes(seeds.safetensors(seeds.HEADER))
        return b'{"weight_map": {"a.weight": "x.safetensors"}}'
    texts = {"rule": seeds.RULE, "config": seeds.TOML, "baseline": seeds.BASELINE, "expression": mutated.EXPRESSIONS[0],
             "comments": mutated.COMMENTS}  # fmt: skip
    return texts[kind].encode()


@pytest.mark.contract
def test_mutations_are_the_same_every_time() -> None:
    for kind in mutated.KINDS:
        assert mutated.content(kind, 7) == mutated.content(kind, 7)
        assert len({mutated.content(kind, seed) for seed in range(50)}) > 10
