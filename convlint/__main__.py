"""`python -m convlint` and the `convlint` script: runs the CLI and turns what goes wrong into exit codes."""

from __future__ import annotations

import gc
import os
import sys
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer


def main() -> None:
    """Runs the command line and exits by the contract (design: exit codes)."""
    # A run makes many small objects that live to its end and hardly any cycles: looking for those costs a tenth of it.
    gc.set_threshold(100_000, 50, 100)
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    import typer

    from convlint.cli import app
    from convlint.errors import ConvlintError

    # Typer's own errors share click's base class, under whatever name the installed version keeps it.
    wrong_usage = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = _narrowed(app, arguments)(arguments, prog_name="convlint", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ConvlintError as error:
        print(f"convlint: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output went away, which is its right; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except wrong_usage as error:
        error.show()  # type: ignore[attr-defined]
        return 2
    except OSError as error:
        print(f"convlint: error: output failed: {error.strerror or error}", file=sys.stderr)
        return 2


def _narrowed(app: Typer, arguments: list[str]) -> Typer:
    """The app with only the command that is asked for: Typer builds the options of every command that it holds."""
    asked = [
        command
        for command in app.registered_commands
        if command.callback is not None and (command.name or command.callback.__name__) in arguments[:1]
    ]
    if not asked:
        return app
    narrowed = copy(app)
    narrowed.registered_commands = asked
    return narrowed


if __name__ == "__main__":
    main()
