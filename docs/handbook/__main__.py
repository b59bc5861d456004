"""`python -m handbook FOLDER`: the pages of the site and its settings, for MkDocs to build."""

from __future__ import annotations

import sys
from pathlib import Path

from handbook.site import build

if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs"))
