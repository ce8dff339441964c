"""What a user can fix: shown as one line without a traceback, with an exit code that scripts can rely on."""

import errno
import os
import sys
import traceback
from collections.abc import Callable

OK = 0
USAGE = 2  # usage or options; a run folder of other options
BAD_DATA = 65  # line counts differ, gzip or binary given as text, nothing left, a run folder of other data
MISSING = 66  # a named path does not exist
BUG = 70
DISK = 74  # a folder cannot be made or written, or the disk is full
TRY_AGAIN = 75  # locked, port in use, peer lost
DAMAGED = 76  # a model or checkpoint that is damaged, or a folder that is no complete model
DIVERGED = 79
INTERRUPTED = 130  # Ctrl-C
TERMINATED = 143  # SIGTERM, state saved

# What is never our bug, wherever it happens.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class UserError(Exception):
    """Says what was found, what was expected and what to do next. `code` is the E_… of the message."""

    def __init__(self, code: str, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code

    def line(self) -> str:
        """The one line that goes to stderr; text from files never breaks it in two."""
        message = " ".join(str(self).split())
        return f"clearhead: error[E_{self.code}]: {message}"


class Interrupted(BaseException):
    """A signal has ended the work; says what is kept of it and what goes on with it, in one line on stderr.

    No KeyboardInterrupt, of which a parser of command lines makes an exit code without a word.
    """

    def __init__(self, message: str, exit_code: int = INTERRUPTED) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def line(self) -> str:
        return f"clearhead: interrupted: {' '.join(str(self).split())}"


def warning_line(code: str, message: str) -> str:
    """The same shape for what does not stop the work."""
    return f"clearhead: warning[E_{code}]: {' '.join(message.split())}"


def exit_code_of(call: Callable[[], int]) -> int:
    """Run a command; what goes wrong becomes one line on stderr and an exit code."""
    try:
        return call()
    except UserError as error:
        if os.environ.get("CLEARHEAD_DEBUG"):
            traceback.print_exc()
        print(error.line(), file=sys.stderr, flush=True)
        return error.exit_code
    except Interrupted as interrupted:
        print(interrupted.line(), file=sys.stderr, flush=True)
        return interrupted.exit_code
    except KeyboardInterrupt:
        print("clearhead: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # what Typer makes of it
            return _reader_left()
        raise
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            return _bug(error)
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror}; expected to read and write there. Free some space or check permissions"
        print(UserError("DISK", message, DISK).line(), file=sys.stderr, flush=True)
        return DISK
    except Exception as error:  # the last line of defence: whatever else happens is our bug
        return _bug(error)


def _reader_left() -> int:
    """Whoever reads our output has enough of it, as `| head` does: nothing is wrong, and nothing more is written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.close(nowhere)
    return OK


def _bug(error: Exception) -> int:
    traceback.print_exc()
    bug = f"{type(error).__name__}: {error}. This is a bug; please report it with the lines above"
    print(UserError("BUG", bug, BUG).line(), file=sys.stderr, flush=True)
    return BUG
