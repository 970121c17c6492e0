"""Shared checks of replies."""

import threading
import time

import pytest
from pymongo.errors import OperationFailure


def ids(documents):
    return [one["_id"] for one in documents]


def refused(run, code):
    """Returns the details of the error with this code."""
    with pytest.raises(OperationFailure) as error:
        run()
    assert error.value.code == code, error.value
    return error.value.details


# The longest wait of a `getMore` by itself, and the longest time until it returns a write.
WAIT_MILLIS = 600_000
ANSWER_SECONDS = 60


def answer_of_waiting(collection, read, write):
    """Returns the result of `read`, whose `getMore` waits for up to WAIT_MILLIS and is woken by
    `write`."""
    found = []
    reader = threading.Thread(target=lambda: found.append(read()), daemon=True)
    reader.start()
    waiting = {"currentOp": 1, "ns": collection.full_name, "op": "getmore"}
    while not collection.database.client.admin.command(waiting)["inprog"]:
        assert reader.is_alive()
        time.sleep(0.01)
    assert found == []
    write()
    reader.join(ANSWER_SECONDS)
    assert found, "the write woke nobody"
    return found[0]
