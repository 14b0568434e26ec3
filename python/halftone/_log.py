"""Messages of the C++ library go to the logger "halftone" of Python's logging, instead of stderr."""

import atexit
import logging

from halftone import _C

_logger = logging.getLogger("halftone")


def install() -> None:
    """Sends messages to the logger until the interpreter ends."""
    _C.set_log_sink(_logger.log)
    atexit.register(_C.set_log_sink, None)  # no message may look for an interpreter that is gone
