"""`convlint config`: every setting, and where it comes from."""

import pytest
from command_line import convlint
from configured import prepared, write

from convlint.config.keys import KEYS

here = pytest.fixture(autouse=True)(prepared)


def test_every_setting_and_where_it_comes_from() -> None:
    write("base.toml", "min-loss = 0.5\n")
    write(
        "convlint.toml",
        'extend = "base.toml"\nselect = ["CL1", "CL5"]\n\n[severity]\nCL102 = "error"\nCL006 = "info"\n'
        '[per-file-ignores]\n"a/*" = ["CL1"]\n[[per-layer-ignores]]\nlayers = "x"\nrules = "CL102"\nreason = "why"\n',
    )
    ran = convlint("config", "bad.yaml", "--gpu", "t4")
    assert ran.code == 0
    rows = {line.split("  ")[0]: [part.strip() for part in line.split("  ") if part] for line in ran.out.splitlines()}
    assert rows["target"] == ["target", "t4", "command line"]
    assert rows["mode"] == ["mode", "training", "default"]
    assert rows["select"] == ["select", "CL1, CL5", "convlint.toml:2"]
    assert rows["min-loss"] == ["min-loss", "0.5", "base.toml:1"]
    assert rows["severity"] == ["severity", "CL102: error", "convlint.toml:5"]
    assert rows["per-layer-ignores"] == ["per-layer-ignores", "x: CL102 -- why", "convlint.toml:9"]
    assert "CL006: info" in ran.out
    assert all(f"\n{key} " in ran.out for key in KEYS)


def test_without_a_config_the_defaults_are_shown() -> None:
    assert convlint("config", "--isolated").out.startswith("no config\n")
