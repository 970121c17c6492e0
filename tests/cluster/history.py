"""Checks histories of transactions that append to lists and read them (list-append), for snapshot
isolation.

Each appended value is unique, so a list tells which transactions wrote its elements and in which
order. From that follow the dependencies between transactions:

    ww  the next element of a list after that of a transaction
    wr  a transaction read the element that another one has appended
    rw  a transaction read a list without the element that another one has appended next
    rt  a transaction ended before one began that has written something

Snapshot isolation permits only cycles in which two rw dependencies follow each other (Cerone and
Gotsman, Analysing Snapshot Isolation, 2018). The ordering of ended transactions (rt) makes it strong
snapshot isolation for those that write.
"""

import bisect
import collections
import dataclasses

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


@dataclasses.dataclass
class Transaction:
    """A transaction. The operations are ("append", key, value) and ("read", key, list)."""

    operations: list
    outcome: str
    begin: float
    end: float

    def appends(self):
        return [(key, value) for kind, key, value in self.operations if kind == "append"]

    def reads(self):
        """The lists that were read, without the transaction's own elements."""
        own = collections.defaultdict(list)
        for kind, key, value in self.operations:
            if kind == "append":
                own[key].append(value)
                continue
            count = len(own[key])
            if count and value[-count:] != own[key]:
                yield key, None
            else:
                yield key, value[:len(value) - count]


def check(transactions, final):
    """Returns the anomalies of a history. `final` has the lists after its end, by key."""
    found = [*lost_and_invented(transactions, final), *disorder(transactions, final)]
    # With such anomalies, the dependencies would have no meaning.
    return found or cycles(transactions, final)


def lost_and_invented(transactions, final):
    """Checks that acknowledged elements are there once, and those of failed transactions are not.
    """
    for key, elements in final.items():
        if len(set(elements)) != len(elements):
            yield f"list {key} has an element twice"
    outcomes = {value: it.outcome for it in transactions for _, value in it.appends()}
    for transaction in transactions:
        for key, value in transaction.appends():
            if transaction.outcome == OK and value not in final.get(key, []):
                yield f"the acknowledged element {value} of list {key} is lost"
        if transaction.outcome != OK:
            continue
        for key, elements in transaction.reads():
            if elements is None:
                yield f"a transaction does not see its own elements of list {key}"
                continue
            for value in elements:
                if outcomes.get(value, FAILED) == FAILED:
                    yield f"list {key} was read with {value} of an aborted transaction"
    for key, elements in final.items():
        for value in elements:
            if outcomes.get(value, FAILED) == FAILED:
                yield f"list {key} has {value} of an aborted transaction"


def reads_of_ended(transactions):
    """Each read of a committed transaction, with the number of the transaction."""
    for number, transaction in enumerate(transactions):
        if transaction.outcome == OK:
            for key, elements in transaction.reads():
                yield number, key, elements


def writers_of(transactions):
    """The number of the transaction that appended each element."""
    return {value: number for number, it in enumerate(transactions)
            for _, value in it.appends()}


def disorder(transactions, final):
    """Returns lists that are no prefix of the final list, or that end within a transaction."""
    writers = writers_of(transactions)
    last = {(number, key): value for number, it in enumerate(transactions)
            for key, value in it.appends()}
    for _, key, elements in reads_of_ended(transactions):
        if not elements:
            continue
        if final.get(key, [])[:len(elements)] != elements:
            yield f"list {key} was read as {elements[-5:]}, which is no beginning of what it became"
        elif last[(writers[elements[-1]], key)] != elements[-1]:
            yield f"list {key} was read between two elements of one transaction"


def cycles(transactions, final):
    """Returns a cycle without two rw dependencies in succession, if there is one."""
    writers = writers_of(transactions)
    depends = collections.defaultdict(set)
    overtakes = collections.defaultdict(set)
    for elements in final.values():
        for one, following in zip(elements, elements[1:]):
            add(depends, writers[one], writers[following])
    for number, key, elements in reads_of_ended(transactions):
        if elements:
            add(depends, writers[elements[-1]], number)
        order = final.get(key, [])
        if len(elements) < len(order):
            add(overtakes, number, writers[order[len(elements)]])
    add_times(transactions, depends)
    # A step is a dependency, and perhaps one rw dependency behind it.
    graph = {node: successors.union(*(overtakes[it] for it in successors))
             for node, successors in list(depends.items())}
    cycle = find_cycle(graph)
    if cycle is None:
        return []
    names = [transactions[node].operations for node in cycle if isinstance(node, int)]
    return [f"a cycle that snapshot isolation forbids: {names}"]


def add(graph, node, successor):
    if node != successor:
        graph[node].add(successor)


def add_times(transactions, depends):
    """Adds rt: a chain of points in time, each after the transactions that ended before it."""
    ended = sorted((it.end, number) for number, it in enumerate(transactions) if it.outcome == OK)
    ends = [end for end, _ in ended]
    for place, (_, number) in enumerate(ended):
        depends[number].add(("time", place))
        depends[("time", place)].add(("time", place + 1))
    for number, transaction in enumerate(transactions):
        if transaction.outcome != OK or not transaction.appends():
            continue
        place = bisect.bisect_left(ends, transaction.begin) - 1
        if place >= 0:
            depends[("time", place)].add(number)


def find_cycle(graph):
    """Returns the nodes of a cycle, or None. Without recursion, since paths are long."""
    done, path, on_path = set(), [], set()
    for root in graph:
        if root in done:
            continue
        stack = [(root, iter(graph.get(root, ())))]
        path.append(root)
        on_path.add(root)
        while stack:
            node, successors = stack[-1]
            successor = next(successors, None)
            if successor is None:
                stack.pop()
                path.pop()
                on_path.discard(node)
                done.add(node)
            elif successor in on_path:
                return path[path.index(successor):]
            elif successor not in done:
                stack.append((successor, iter(graph.get(successor, ()))))
                path.append(successor)
                on_path.add(successor)
    return None
