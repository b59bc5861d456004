"""convlint: linter and advisor for convolution layers on NVIDIA GPUs."""

# No import here but that of `__getattr__`: under `python -m convlint` the current folder still comes first, and a file
# in it called typing.py or __future__.py would be run. `__main__` takes the folder out.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from convlint.model.errors import UsageError
    from convlint.model.layer import ConvLayer
    from convlint.model.report import Finding, Report
    from convlint.run.api import lint

__version__ = "0.4.0"  # the one place: packages and reports take it from here
__all__ = ["ConvLayer", "Finding", "Report", "UsageError", "__version__", "lint"]

_HOMES = {
    "ConvLayer": "model.layer", "Finding": "model.report", "Report": "model.report", "UsageError": "model.errors",
    "lint": "run.api",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Loads what is asked for, so that `import convlint` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'convlint' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"convlint.{_HOMES[name]}"), name)
