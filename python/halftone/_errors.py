"""Errors that Python code raises as the C++ library does."""

from halftone import _C


def make_error(code: str, message: str) -> _C.Error:
    """A halftone.Error with a code.

    >>> make_error("unsupported", "no").code
    'unsupported'
    """
    error = _C.Error(message)
    error.code = code
    return error
