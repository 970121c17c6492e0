"""A browser without scripts: raw HTTP to the page of a server."""

import gzip
import http.client
import re
import secrets
import urllib.parse

from windrow_server import Server, free_port


class PageServer(Server):
    """A server with a page."""

    def __init__(self, folder, options=(), **arguments):
        self.web_port = free_port()
        web = ["--web", f"127.0.0.1:{self.web_port}"]
        super().__init__(folder, options=[*web, *options], **arguments)

    def browser(self):
        return Browser(self.web_port)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.web_port}"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        body = response.read()
        if response.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.body = body

    @property
    def text(self):
        return self.body.decode()


class Browser:
    """Keeps a cookie and the token of the last page."""

    def __init__(self, port, host=None):
        self.port = port
        self.host = host or f"127.0.0.1:{port}"
        self.cookie = None
        self.token = ""
        self.scheme = "http"
        # The trusted certificates, for https.
        self.context = None

    def request(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if self.context:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            sent = {"Host": self.host, "Accept-Encoding": "gzip", **dict(headers)}
            if self.cookie:
                sent.setdefault("Cookie", self.cookie)
            if body is not None:
                sent.setdefault("Content-Length", str(len(body)))
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = Answer(connection.getresponse())
        finally:
            connection.close()
        for cookie in answer.headers.get_all("set-cookie", []):
            pair = cookie.split(";")[0]
            self.cookie = pair if "Max-Age=0" not in cookie else None
        found = re.search(r'name="form-token" content="(\w*)"', answer.body.decode(errors="replace"))
        if found:
            self.token = found.group(1)
        return answer

    def get(self, path, headers=()):
        return self.request("GET", path, headers=headers)

    def post(self, path, fields=None, headers=(), token=True):
        fields = list((fields or {}).items() if isinstance(fields, dict) else fields or [])
        if token:
            fields.append(("token", self.token))
        body = urllib.parse.urlencode(fields).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"{self.scheme}://{self.host}"}
        return self.request("POST", path, body, {**form, **dict(headers)})

    def log_in(self, user, password, database="admin", **fields):
        self.get("/login")
        fields = {"user": user, "password": password, "database": database, **fields}
        return self.post("/login", fields)


def import_address(collection, number, kind="json"):
    return f"{collection}/import/file?import={number}&format={kind}"


def import_headers(browser, **others):
    return {"X-Form-Token": browser.token, "Content-Type": "application/octet-stream",
            "Origin": f"http://{browser.host}", "X-Part": "1", **others}


def import_progress(browser, collection, number, total=0):
    return browser.get(f"{collection}/import/progress?import={number}&total={total}", {"X-Part": "1"})


def import_file(browser, collection, content, kind="json"):
    """Uploads a file as the script of the page does. Returns its last progress."""
    browser.get(collection)
    number = secrets.token_hex(16)
    browser.request("POST", import_address(collection, number, kind), content, import_headers(browser))
    return import_progress(browser, collection, number, len(content))
