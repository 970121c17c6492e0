#!/usr/bin/env python3
"""W9's queries on the same documents in a database for SQL, as JSON in a table of two columns: for
orientation. Called `sqlite` or `duckdb`, it is that one.

    sqlite DOCUMENTS SKIP USER:AGE...     documents on standard input, one JSON object a line

It prints for each query, by its number in the table of W9, the best time of all turns in milliseconds;
what a database cannot do it leaves out.
"""

import json
import os
import sys
import tempfile
import time

BATCH = 10_000


class Sqlite:
    name = "sqlite"

    def __init__(self, folder):
        import sqlite3
        self.connection = sqlite3.connect(os.path.join(folder, "documents.sqlite"),
                                          isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -1000000"):
            self.connection.execute(f"PRAGMA {setting}")

    def load(self, lines):
        rows = []

        def put():
            self.connection.execute("BEGIN")
            self.connection.executemany("INSERT INTO documents VALUES (?, ?)", rows)
            self.connection.execute("COMMIT")
            rows.clear()

        for line in lines:
            rows.append((json.loads(line)["_id"], line.rstrip("\n")))
            if len(rows) == BATCH:
                put()
        put()

    def number(self, name, of="d.body"):
        return f"json_extract({of}, '$.{name}')"

    matching = "json_extract(d.body, '$.pad') GLOB '*zq[a-d]x*'"
    with_seen = "json_set(body, '$.seen', json('true'))"
    with_more = "json_set(body, '$.x', json_extract(body, '$.x') + 1)"


class Duckdb:
    name = "duckdb"

    def __init__(self, folder):
        import duckdb
        self.folder = folder
        self.connection = duckdb.connect(os.path.join(folder, "documents.duckdb"))

    def load(self, lines):
        """Row by row, loading would take longer than all queries."""
        path = os.path.join(self.folder, "documents.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
        self.connection.execute(
            "INSERT INTO documents SELECT CAST(json_extract_string(json, '$._id') AS INTEGER), json"
            " FROM read_json_objects(?, format = 'newline_delimited')", [path])

    def number(self, name, of="d.body"):
        kind = "DOUBLE" if name == "x" else "INTEGER"
        return f"CAST(json_extract_string({of}, '$.{name}') AS {kind})"

    matching = "regexp_matches(json_extract_string(d.body, '$.pad'), 'zq[a-d]x')"
    with_seen = "json_merge_patch(body, '{\"seen\": true}')"
    with_more = ("json_merge_patch(body, json_object('x',"
                 " CAST(json_extract_string(body, '$.x') AS DOUBLE) + 1))")


def queries(db, skip):
    """Returns, in the order of W9: the preparation of each turn, the statement, and whether it
    reads."""
    user, age, x = (db.number(name) for name in ("user", "age", "x"))
    own = {name: db.number(name, "body") for name in ("user", "age", "x")}
    drop_user, drop_age = "DROP INDEX IF EXISTS by_user", "DROP INDEX IF EXISTS by_age"
    return [
        ((), f"SELECT {user}, sum({x}), avg({age}) FROM documents d GROUP BY 1"),
        ((), f"SELECT count(*) FROM documents d WHERE {x} >= 0.25 AND {x} < 0.75"),
        ((), f"SELECT d.body FROM documents d ORDER BY {x} DESC LIMIT 10"),
        ((), f"SELECT count(*) FROM documents d WHERE {db.matching}"),
        ((), f"SELECT sum({x} * {age}), count(*) FROM documents d WHERE {age} < 50"),
        ((), f"SELECT {user}, {x} FROM documents d"),
        ((drop_user,), f"CREATE INDEX by_user ON documents (({own['user']}))"),
        ((drop_age,), f"CREATE INDEX by_age ON documents (({own['age']}), ({own['x']}))"),
        ((), f"SELECT d.body FROM documents d WHERE {user} = <user>"),
        ((), f"SELECT count(*) FROM documents d WHERE {age} >= <age> AND {age} < <age+10>"),
        ((), f"SELECT {age}, {x} FROM documents d WHERE {age} >= <age> AND {age} <= <age>"),
        ((), f"SELECT d.body FROM documents d ORDER BY {age}, {x} LIMIT 10 OFFSET {skip}"),
        ((), f"SELECT DISTINCT {user} FROM documents d"),
        ((), "SELECT count(*) FROM documents d JOIN documents e ON e.id = d.id"
             f" WHERE {age} = <age>"),
        ((), f"UPDATE documents SET body = {db.with_seen} WHERE {own['age']} = <age>"),
        ((), f"UPDATE documents SET body = {db.with_more} WHERE {own['age']} = <age+1>"),
        ((), f"DELETE FROM documents WHERE {own['age']} = <age+2>"),
    ]


def filled(statement, user, age):
    for place, value in (("<user>", user), ("<age>", age), ("<age+10>", age + 10),
                         ("<age+1>", age + 1), ("<age+2>", age + 2)):
        statement = statement.replace(place, str(value))
    return statement


def best(db, before, statement, turns):
    times = []
    for user, age in turns:
        for one in before:
            db.connection.execute(one)
        began = time.perf_counter()
        found = db.connection.execute(filled(statement, user, age))
        if statement.startswith("SELECT"):
            found.fetchall()
        times.append(time.perf_counter() - began)
    return min(times) * 1e3


def main():
    kind = Duckdb if "duckdb" in os.path.basename(sys.argv[0]) else Sqlite
    skip = int(sys.argv[2])
    turns = [tuple(int(number) for number in one.split(":")) for one in sys.argv[3:]]
    with tempfile.TemporaryDirectory() as folder:
        db = kind(folder)
        db.connection.execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, body JSON)")
        db.load(sys.stdin)
        for number, (before, statement) in enumerate(queries(db, skip)):
            try:
                print(f"q{number} {best(db, before, statement, turns)}", flush=True)
            except Exception as error:  # a query that the database cannot run is left out and reported
                print(f"{db.name} q{number}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
