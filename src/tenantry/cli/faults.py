"""What becomes of a fault of our own: one line for whoever is at the terminal, the trace in a file for us."""

import sys
import tempfile
import traceback

_WHERE = "Please report it in the issue tracker of the project"


def reported(error: Exception) -> str:
    """One line that says what it was, where its trace has been written and where to report it.

    Where no file can be written the trace goes to standard error, above the line.
    """
    what = " ".join(str(error).split()).encode("utf-8", "backslashreplace").decode()
    fault = f"a fault of Tenantry's own, {type(error).__name__}{f': {what}' if what else ''}"
    trace = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(prefix="tenantry-fault-", suffix=".txt", delete=False) as file:
            file.write(trace.encode("utf-8", "backslashreplace"))
    except OSError:
        print(trace, file=sys.stderr)
        return f"{fault}. {_WHERE}, with the trace above"
    return f"{fault}. {_WHERE}, with the trace in {file.name}"
