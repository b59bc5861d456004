"""`python -m convlint` and the `convlint` script: runs the CLI and turns what goes wrong into exit codes."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command line and exits by the contract (design: exit codes)."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    import typer

    from convlint.cli import app
    from convlint.errors import ConvlintError

    # Typer's own errors share click's base class, under whatever name the installed version keeps it.
    wrong_usage = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = app(arguments, prog_name="convlint", standalone_mode=False)
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


if __name__ == "__main__":
    main()
