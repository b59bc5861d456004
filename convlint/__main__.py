"""`python -m convlint` and the `convlint` script: runs the CLI and turns what goes wrong into exit codes."""

# What is imported before the current folder is out of the way has to be built into the interpreter; see __init__.
import sys

if __name__ == "__main__" and __spec__ is not None and not sys.flags.safe_path:
    import os

    try:
        if sys.path[:1] == [os.getcwd()]:  # put there by `python -m`
            del sys.path[0]
    except OSError:  # the folder is gone, and Python has put nothing there
        pass

import gc
import os


def main() -> None:
    """Runs the command line and exits by the contract (design: exit codes)."""
    # A run makes many small objects that live to its end and hardly any cycles: looking for those costs a fifth of it.
    gc.set_threshold(5_000_000, 50, 100)
    try:
        from convlint.cli.streams.gate import gate, stand_in_for_closed_streams

        stand_in_for_closed_streams()
        sys.stdout, sys.stderr = gate(sys.stdout), gate(sys.stderr, expendable=True)
        code = _run(sys.argv[1:])
        gc.freeze()  # the interpreter looks through all that is left for cycles before it ends: a fifth of a run
        sys.exit(code)
    except KeyboardInterrupt:  # while modules were still being loaded, or at the very end
        sys.exit(130)


def _run(arguments: list[str]) -> int:
    from convlint.cli.streams.gate import gates

    with gates():
        return _outcome(arguments)


def _outcome(arguments: list[str]) -> int:
    from convlint.cli.app import app
    from convlint.model.errors import ConvlintError, defect

    try:
        try:
            app(arguments, prog_name="convlint")  # Typer says what is wrong with arguments, and exits
        except SystemExit as leaving:
            code = leaving.code
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ConvlintError as error:
        _say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        gone = "" if _is_somewhere() else "the current folder no longer exists"
        _say(f"error: {gone or f'output failed: {error.strerror or error}'}")
        return 2
    except Exception as error:  # the last resort; inputs have one of their own, so that the others go on
        if "_CONVLINT_COMPLETE" in os.environ:  # a shell asks what comes next, in words that make no sense
            return 2
        _say(defect(error))
        return 4


def _is_somewhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _say(message: str) -> None:
    from convlint.files.safe import clean

    print(f"convlint: {clean(message)}", file=sys.stderr)


if __name__ == "__main__":
    main()
