"""Aggregations stage by stage, and plans."""

import html
import re

import pytest

from page_client import PageServer

PATH = "/collections/shop/orders"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("queries")) as server:
        orders = server.client().shop.orders
        orders.insert_many([{"_id": number, "kind": "abc"[number % 3], "n": number} for number in range(5000)])
        orders.create_index("n")
        yield server
        assert "panicked" not in server.log()


@pytest.fixture
def browser(server):
    browser = server.browser()
    browser.get("/queries")
    return browser


def fields(*stages, **others):
    """The form of the builder, with all stages enabled."""
    pairs = []
    for number, (kind, text) in enumerate(stages):
        pairs += [("kind", kind), ("stage", text), ("enabled", str(number))]
    return pairs + list(others.items())


def stages_of(text):
    kinds = re.findall(r'<option value="(\$\w+)" selected>', text)
    texts = [html.unescape(it) for it in re.findall(r'<textarea name="stage"[^>]*>\n(.*?)</textarea>', text, re.S)]
    return list(zip(kinds, texts))


def test_stages_are_added_moved_and_removed(browser):
    stages = [("$match", "{n: 1}"), ("$limit", "5")]
    post = lambda **others: stages_of(browser.post(PATH + "/pipeline", fields(*stages, **others)).text)
    assert post(action="add", new="$count") == [*stages, ("$count", '"count"')]
    assert post(action="up 1") == post(action="down 0") == stages[::-1]
    assert post(action="remove 0") == stages[1:]
    for action in ["up 0", "down 1", "remove 7", "nothing", "up x"]:
        assert post(action=action) == stages, action
    assert post(action="text", text="[{$skip: 1}]") == [("$skip", "1")]
    answer = browser.post(PATH + "/pipeline", fields(*stages, action="text", text="[{$skip: 1"))
    assert answer.status == 400 and stages_of(answer.text) == stages


def test_each_stage_has_a_preview(browser):
    stages = [("$match", "{kind: 'a'}"), ("$group", "{_id: null, sum: {$sum: '$n'}}")]
    part = lambda upto: browser.post(PATH + "/pipeline/preview", fields(*stages, upto=upto)).text
    assert part("0").count('class="panel"') == 5 and "The first 5 documents" in part("0")
    assert str(sum(range(0, 5000, 3))) in part("1")
    stages[1] = ("$group", "{_id: ")
    assert "Stage 2: a value is missing" in part("1") and "The first 5" in part("0")
    stages[1] = ("$nothing", "{}")
    assert "role=\"alert\"" in part("1")


def test_a_stage_that_is_not_in_use_is_left_out(browser):
    sent = [("kind", "$limit"), ("stage", "1"), ("kind", "$count"), ("stage", "'all'"), ("enabled", "1")]
    assert "5000" in browser.post(PATH + "/pipeline/preview", [*sent, ("upto", "1")]).text


def test_results_are_shown(browser):
    stages = [("$match", "{n: {$lt: 3}}"), ("$set", "{html: '<b>'}")]
    text = browser.post(PATH + "/pipeline", fields(*stages, action="results")).text
    results = text.split('id="results"')[1]
    assert results.count('class="panel"') == 3 and "<b>" not in results
    answer = browser.post(PATH + "/pipeline", fields(("$match", "{$foo: 1}"), action="results"))
    assert "unknown top level operator" in answer.text


def test_writing_needs_its_own_button(server, browser):
    stages = [("$match", "{n: {$lt: 3}}"), ("$out", "'copy'")]
    preview = browser.post(PATH + "/pipeline/preview", fields(*stages, upto="1")).text
    browser.post(PATH + "/pipeline", fields(*stages, action="results"))
    assert "This stage writes" in preview
    assert "copy" not in server.client().shop.list_collection_names()
    assert browser.get(PATH + "/pipeline/run").status == 405
    assert browser.post(PATH + "/pipeline/run", fields(*stages)).status == 200
    assert server.client().shop.copy.count_documents({}) == 3


def test_plans_are_drawn(browser):
    text = browser.get(PATH + "/explain?filter=%7Bn%3A+%7B%24lt%3A+7%7D%7D").text
    assert "<strong>FETCH</strong>" in text and "<strong>IXSCAN</strong>" in text
    assert re.search(r"<dt>Rows</dt><dd>7</dd>", text) and "<strong>COLLSCAN" not in text
    text = browser.get(PATH + "/explain?filter=%7Bkind%3A+%22z%22%7D&sort=%7Bkind%3A+1%7D").text
    assert "<strong>COLLSCAN</strong>" in text and "an index on the fields of the filter" in text
    answer = browser.get(PATH + "/explain?filter=%7Bkind")
    assert answer.status == 400 and "column" in answer.text


def test_plans_of_aggregations_are_drawn(browser):
    stages = [("$match", "{n: {$gte: 4990}}"), ("$group", "{_id: '$kind', count: {$sum: 1}}")]
    text = browser.post(PATH + "/explain", fields(*stages)).text
    assert "<strong>$group</strong>" in text and "<strong>IXSCAN</strong>" in text
    back = re.search(r'name="text" value="([^"]*)"', text).group(1)
    answer = browser.post(PATH + "/pipeline", {"action": "text", "text": html.unescape(back)})
    assert [kind for kind, _ in stages_of(answer.text)] == ["$match", "$group"]
    assert browser.post(PATH + "/explain", fields(("$match", "{"))).status == 400


def test_queries_lead_to_all_collections(browser):
    text = browser.get("/queries").text
    assert f'href="{PATH}/pipeline"' in text and f'href="{PATH}/explain"' in text


def test_a_read_only_page_reads(tmp_path):
    with PageServer(tmp_path, options=["--web-read-only"]) as server:
        server.client().shop.orders.insert_one({"_id": 1})
        browser = server.browser()
        browser.get("/queries")
        stages = [("$match", "{}"), ("$out", "'copy'")]
        text = browser.post(PATH + "/pipeline", fields(*stages, action="results")).text
        assert "pipeline/run" not in text
        assert browser.post(PATH + "/pipeline/run", fields(*stages)).status == 403
        assert browser.post(PATH + "/explain", fields(*stages)).status == 200
        assert "copy" not in server.client().shop.list_collection_names()
