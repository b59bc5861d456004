"""The page of `--output html`: what it shows, worked out here, and how it looks, in the templates beside."""

from __future__ import annotations

from importlib.util import find_spec

from convlint.model.errors import UsageError

if find_spec("jinja2") is None:
    raise UsageError("--output html needs Jinja2: pip install 'convlint[html]'")
