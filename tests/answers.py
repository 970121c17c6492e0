"""What tests over the wire ask of answers."""

import pytest
from pymongo.errors import OperationFailure


def ids(documents):
    return [one["_id"] for one in documents]


def refused(run, code):
    """The details of the error of that code."""
    with pytest.raises(OperationFailure) as error:
        run()
    assert error.value.code == code, error.value
    return error.value.details
