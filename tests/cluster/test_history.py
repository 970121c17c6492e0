"""The checker of histories finds each kind of anomaly, and none in correct histories."""

import random

from history import FAILED, OK, UNKNOWN, Transaction, check


def transaction(*operations, outcome=OK, begin=0, end=1000):
    return Transaction(list(operations), outcome, begin, end)


def append(key, value):
    return ("append", key, value)


def read(key, *elements):
    return ("read", key, list(elements))


def assert_found(text, transactions, **final):
    found = check(transactions, final)
    assert len(found) >= 1 and text in found[0], found


def test_lost_and_aborted_elements():
    assert_found("is lost", [transaction(append("a", 1))], a=[])
    assert check([transaction(append("a", 1), outcome=UNKNOWN)], {"a": []}) == []
    assert check([transaction(append("a", 1), outcome=UNKNOWN)], {"a": [1]}) == []
    assert_found("aborted", [transaction(append("a", 1), outcome=FAILED)], a=[1])
    assert_found("twice", [transaction(append("a", 1))], a=[1, 1])
    aborted = [transaction(append("a", 1), outcome=FAILED), transaction(read("a", 1))]
    assert_found("aborted", aborted, a=[])
    assert_found("its own", [transaction(append("a", 1), read("a"))], a=[1])
    assert check([transaction(append("a", 1), read("a", 1))], {"a": [1]}) == []


def test_lists_only_grow():
    one, two = transaction(append("a", 1)), transaction(append("a", 2))
    assert_found("no beginning", [one, two, transaction(read("a", 2))], a=[1, 2])
    both = transaction(append("a", 1), append("a", 2))
    assert_found("between two", [both, transaction(read("a", 1))], a=[1, 2])


def test_forbidden_cycles():
    # Each has read the write of the other.
    assert_found("cycle", [transaction(append("a", 1), read("b", 2)),
                           transaction(append("b", 2), read("a", 1))], a=[1], b=[2])
    # The writes are in different orders.
    assert_found("cycle", [transaction(append("a", 1), append("b", 1.5)),
                           transaction(append("a", 2), append("b", 2.5))], a=[1, 2], b=[2.5, 1.5])
    # A fractured read: one write of a transaction is visible, the other is not.
    assert_found("cycle", [transaction(append("a", 1), append("b", 2)),
                           transaction(read("a", 1), read("b"))], a=[1], b=[2])
    # A lost update: both have read the same list before their append.
    assert_found("cycle", [transaction(read("a"), append("a", 1)),
                           transaction(read("a"), append("a", 2))], a=[1, 2])
    # Two readers read two writes in different orders.
    assert_found("cycle", [transaction(append("a", 1)), transaction(append("b", 2)),
                           transaction(read("a", 1), read("b")),
                           transaction(read("a"), read("b", 2))], a=[1], b=[2])


def test_time():
    # The second one begins after the first has ended, and does not read its write.
    late = transaction(read("a"), append("b", 2), begin=20, end=30)
    assert_found("cycle", [transaction(append("a", 1), begin=0, end=10), late], a=[1], b=[2])
    at_once = transaction(append("a", 1), begin=0, end=25)
    assert check([at_once, late], {"a": [1], "b": [2]}) == []
    # A transaction that only reads can have an older snapshot.
    old = transaction(read("a"), begin=20, end=30)
    assert check([transaction(append("a", 1), begin=0, end=10), old], {"a": [1]}) == []


def test_write_skew_is_permitted():
    history = [transaction(read("a"), append("b", 1)), transaction(read("b"), append("a", 2))]
    assert check(history, {"a": [2], "b": [1]}) == []


def test_random_snapshots():
    """Histories of a simple store with snapshots have no anomalies. Without its check of conflicts
    they have some."""
    assert all(check(*random_history(seed, True)) == [] for seed in range(30))
    assert sum(check(*random_history(seed, False)) != [] for seed in range(30)) > 20


def random_history(seed, checks_conflicts):
    source, lists, versions = random.Random(seed), {}, {}
    running, history, value = [], [], 0
    for now in range(400):
        while len(running) < 4:
            running.append((now, {key: list(it) for key, it in lists.items()}, dict(versions)))
        begin, snapshot, seen = running.pop(source.randrange(len(running)))
        operations, written = [], set()
        for _ in range(source.randint(1, 4)):
            key = source.randrange(4)
            mine = snapshot.setdefault(key, [])
            if source.random() < 0.5:
                operations.append(("read", key, list(mine)))
            else:
                value += 1
                mine.append(value)
                written.add(key)
                operations.append(("append", key, value))
        has_conflict = any(versions.get(key) != seen.get(key) for key in written)
        if has_conflict and checks_conflicts:
            history.append(Transaction(operations, FAILED, begin, now))
            continue
        for kind, key, element in operations:
            if kind == "append":
                lists.setdefault(key, []).append(element)
                versions[key] = now
        history.append(Transaction(operations, OK, begin, now))
    return history, lists
