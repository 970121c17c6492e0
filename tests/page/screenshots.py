#!/usr/bin/env python3
"""Creates the screenshots in docs/images: `make screenshots`.

The files that are searched are those of this repository: its documentation, its code, and the files of
other programs that its tests read.
"""

import datetime
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "page")]

import chromium  # noqa: E402
from indexed import MAIL, index  # noqa: E402
from page_client import PageServer  # noqa: E402

OUT = ROOT / "docs" / "images"
# The path is visible in the screenshots, so it is short.
HOME = Path("/tmp/ada")

PICTURES = [
    {"name": "page-search", "path": "/search?q=snapshot+reads"},
    {"name": "page-preview", "path": "/search?q=write+concern", "click": "a.open"},
    {"name": "page-facets", "path": "/search?q=index&kind=markdown&view=table", "scheme": "dark"},
    {"name": "page-source", "path": "/search?q=kind%3Asource+tombstone", "scheme": "dark", "click": "a.open"},
    {"name": "page-folders", "path": "/folders"},
    {"name": "page-narrow", "path": "/search?q=snapshot", "width": 390},
    {"name": "page-collections", "path": "/collections/shop/orders?filter=%7B+total%3A+%7B+%24gt%3A+900+%7D+%7D"},
    {"name": "page-indexes", "path": "/collections/shop/orders/indexes"},
    {"name": "page-state", "path": "/state", "scheme": "dark"},
]
ORDERS = 50_000
LOAD_SECONDS = 45
CITIES = ["Berlin", "Lyon", "Turin", "Porto", "Ghent"]


def write_orders(shop):
    """A collection with indexes, one of which is redundant."""
    start = datetime.datetime(2026, 1, 1)
    people = ["Ada Lovelace", "Grace Hopper", "Edith Clarke", "Mary Shaw"]
    shop.orders.insert_many([
        {"number": number, "at": start + datetime.timedelta(minutes=number * 7),
         "customer": {"name": people[number % 4], "city": CITIES[number * 7 % 5]},
         "items": [{"product": f"P-{number % 97}", "count": number % 3 + 1}], "total": number * 37 % 1000 + 0.5,
         "paid": number % 5 > 0}
        for number in range(ORDERS)])
    shop.orders.create_index("number", unique=True)
    shop.orders.create_index([("customer.city", 1), ("at", -1)])
    shop.orders.create_index("customer.city")
    shop.orders.create_search_index({"name": "default", "definition": {"mappings": {"dynamic": True}}})


def use_orders(shop):
    """Reads and writes for a while, so that the graphs have data."""
    list(shop.orders.find({"customer.city": "Lyon"}).sort("at", -1).limit(10))
    end = time.monotonic() + LOAD_SECONDS
    number = ORDERS
    while time.monotonic() < end:
        for _ in range(random.randrange(20, 200)):
            number += 1
            shop.orders.insert_one({"number": number, "total": 1.5})
            shop.orders.find_one({"number": random.randrange(ORDERS)})
            shop.orders.update_one({"number": random.randrange(ORDERS)}, {"$set": {"paid": True}})
        time.sleep(random.random())


def main():
    shutil.rmtree(HOME, ignore_errors=True)
    try:
        documents = HOME / "Documents"
        shutil.copytree(ROOT / "docs", documents / "windrow")
        for page in ROOT.glob("*.md"):
            shutil.copy2(page, documents / "windrow")
        shutil.copytree(ROOT / "crates" / "extract" / "tests" / "fixtures", documents / "formats")
        shutil.copytree(ROOT / "crates", HOME / "Projects",
                        ignore=lambda folder, names: [name for name in names if name in ("fixtures", "corpus")])
        (HOME / "Mail").mkdir()
        (HOME / "Mail" / "letter.eml").write_text(MAIL)
        with tempfile.TemporaryDirectory() as work:
            data = Path(work) / "data"
            data.mkdir()
            index(data, documents, HOME / "Projects", HOME / "Mail")
            with PageServer(work) as server:
                write_orders(server.client().shop)
                server.stop()
                # A restart clears the history, so the graphs begin here.
                server.start()
                use_orders(server.client().shop)
                chromium.run("screenshots", server, OUT, pictures=PICTURES)
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
