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

import atexit
import gc
import os
import threading
from contextlib import suppress


def main() -> None:
    """Runs the command line and exits by the contract (design: exit codes)."""
    # A run makes many small objects that live to its end and hardly any cycles: looking for those costs a fifth of it.
    gc.set_threshold(5_000_000, 50, 100)
    try:
        from convlint.cli.streams.gate import gate, stand_in_for_closed_streams

        stand_in_for_closed_streams()
        sys.stdout, sys.stderr = gate(sys.stdout), gate(sys.stderr, expendable=True)
        code = _run(sys.argv[1:])
        if not _is_awaited():
            _end_at_once(code)
        gc.freeze()  # the interpreter looks through all that is left for cycles before it ends: a fifth of a run
        sys.exit(code)
    except KeyboardInterrupt:  # while modules were still being loaded, or at the very end
        sys.exit(130)


def _is_awaited() -> bool:
    """Whether something waits for the end of the interpreter: a thread, a function for it, a profiler or debugger."""
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    tools = monitoring is not None and any(map(monitoring.get_tool, range(6)))
    return threading.active_count() > 1 or atexit._ncallbacks() > 0 or bool(sys.getprofile() or sys.gettrace() or tools)


def _end_at_once(code: int) -> None:
    """Ends the process and leaves its memory to the system: to free each object takes a tenth of a run."""
    with suppress(OSError):  # what could not be written; the interpreter has its own exit code for that
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(arguments: list[str]) -> int:
    from convlint.cli.streams.gate import gates

    with gates():
        return _outcome(arguments)


def _outcome(arguments: list[str]) -> int:
    from convlint.cli.arguments import call
    from convlint.model.errors import ConvlintError, defect

    try:
        code = call(arguments)
        if code is None:
            from convlint.cli.app import run

            code = run(arguments)
        sys.stdout.flush()
        return code
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
