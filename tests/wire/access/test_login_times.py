"""The time of a refused login does not reveal whether the user exists."""

import base64
import random
import statistics
import time

import pytest

from logins import Conversation
from raw import Raw

ROUNDS, TRIES = 150, 3
# The time of one message is about 0.1 ms. A difference that a client can tell apart over a network is larger
# than a quarter of that.
RATIO_MAX = 1.25


def seconds(conversation, user, mechanism):
    """The time of a login with a wrong proof, from its first message to the refusal."""
    digest = {"SCRAM-SHA-1": 20, "SCRAM-SHA-256": 32}[mechanism]
    proof = base64.b64encode(bytes(digest)).decode()
    began = time.perf_counter()
    first = conversation.start(user, mechanism)
    reply = conversation.command(
        saslContinue=1, conversationId=conversation.id,
        payload=f"c=biws,r={conversation.parts['r']},p={proof}".encode())
    took = time.perf_counter() - began
    assert first["ok"] == 1 and reply["code"] == 18
    return took


def ratio_of_medians(connection, users, mechanism, source):
    """Compares medians. The users are in random order in every round, so other load meets all of
    them alike."""
    conversation = Conversation(connection)
    times = {user: [] for user in users}
    for _ in range(ROUNDS):
        for user in source.sample(users, len(users)):
            times[user].append(seconds(conversation, user, mechanism))
    medians = [statistics.median(times[user]) for user in users]
    return max(medians) / min(medians)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_refusals_take_equal_times(server, root, mechanism):
    root.admin.command("createUser", f"known.{mechanism}", pwd="pw", roles=["root"])
    root.admin.command("setParameter", authFailedDelayMs=0)
    users = [f"known.{mechanism}", f"other.{mechanism}", "root", "nobody"]
    try:
        with Raw(server) as connection:
            source, ratios = random.Random(1), []
            # Passing load can move one median. A difference of the server remains in every attempt.
            while not ratios or (ratios[-1] > RATIO_MAX and len(ratios) < TRIES):
                ratios.append(ratio_of_medians(connection, users, mechanism, source))
        assert ratios[-1] <= RATIO_MAX, ratios
    finally:
        root.admin.command("setParameter", authFailedDelayMs=50)
