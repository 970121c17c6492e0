"""mongosh connects and works."""

import pathlib
import subprocess
import sys
import urllib.parse

import pytest

from windrow_server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests" / "wire"))
import certificates  # noqa: E402

MONGOSH = ROOT / ".cache" / "mongosh" / "node_modules" / ".bin" / "mongosh"
SCRIPT = pathlib.Path(__file__).with_name("shell.js")

EXPECTED = """\
insertOne: true
insertMany: 2
find: [{"_id":2,"name":"Burger Buns"},{"_id":1,"name":"Java Hut"}]
findOne: 1
countDocuments: 2
createIndex: "tags_1"
text index: "text_text"
getIndexes: ["_id_","tags_1","text_text"]
$text: [{"_id":1},{"_id":3}]
update: 1
updated: {"_id":1,"name":"Tea Hut","text":"Coffee and cakes","tags":["a","b","c"]}
aggregate: [{"_id":"b","n":2},{"_id":"a","n":1},{"_id":"c","n":1}]
explain: "FETCH"
distinct: ["a","b","c"]
delete: 2
validate: true
duplicate: 11000
cursor: 501
show collections: ["c"]
dropDatabase: 1
"""


@pytest.fixture
def mongosh():
    if not MONGOSH.exists():
        pytest.fail(f"{MONGOSH} is not there; `make .cache/mongosh/ready` installs it")

    def run(server, *arguments, uri=None):
        uri = uri or f"mongodb://127.0.0.1:{server.port}/test"
        command = [str(MONGOSH), uri, "--quiet", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


def test_a_first_evening(server, mongosh):
    ended = mongosh(server, "--file", str(SCRIPT))
    assert ended.stdout == EXPECTED, ended.stderr
    assert ended.returncode == 0


def test_it_greets_without_a_complaint(server, mongosh):
    ended = mongosh(server, "--eval", "print(db.version().split('.').length)")
    assert (ended.stdout, ended.returncode) == ("3\n", 0), ended.stderr


USERS = """
const admin = db.getSiblingDB("admin");
const say = (what, value) => print(what + ": " + JSON.stringify(value));
say("users", admin.getUsers().users.map(user => user.user));
admin.createRole({role: "ours", privileges: [
    {resource: {db: "d", collection: "c"}, actions: ["find"]}], roles: []});
admin.createUser({user: "you", pwd: "pw", roles: ["ours"]});
say("roles", admin.getUser("you").roles.map(role => role.role));
say("role", admin.getRole("ours", {showPrivileges: true}).privileges[0].actions);
admin.grantRolesToUser("you", [{role: "readWrite", db: "e"}]);
admin.changeUserPassword("you", "new");
admin.logout();
say("auth", admin.auth("you", "new").ok);
say("find", db.getSiblingDB("d").c.countDocuments());
say("insert", db.getSiblingDB("e").c.insertOne({}).acknowledged);
try { db.getSiblingDB("d").c.insertOne({}); } catch (error) { say("refused", error.code); }
say("status", db.runCommand({connectionStatus: 1}).authInfo.authenticatedUsers[0].user);
"""


def test_users(tmp_path, mongosh):
    with Server(tmp_path, options=["--auth"]) as server:
        create = "db.getSiblingDB('admin').createUser({user: 'me', pwd: 'pw', roles: ['root']}).ok"
        assert mongosh(server, "--eval", create).stdout == "1\n"
        login = ["--username", "me", "--password", "pw", "--authenticationDatabase", "admin"]
        ended = mongosh(server, *login, "--eval", USERS)
        assert ended.stdout == """\
users: ["me"]
roles: ["ours"]
role: ["find"]
auth: 1
find: 0
insert: true
refused: 13
status: "you"
""", ended.stdout + ended.stderr
        wrong = mongosh(server, *login[:2], "--password", "x", *login[4:], "--eval", "1")
        assert wrong.returncode != 0 and "Authentication failed" in wrong.stderr


def test_it_connects_with_tls_and_by_a_unix_socket(mongosh, tmp_path):
    folder = certificates.make(tmp_path / "tls", "alice")
    options = certificates.server_options(folder, "require", "--tls-ca-file", str(folder / "ca.pem"))
    with Server(tmp_path / "server", options=options,
                connection=certificates.client_options(folder, "alice")) as server:
        files = {"tlsCAFile": folder / "ca.pem", "tlsCertificateKeyFile": folder / "alice.pem"}
        tls = urllib.parse.urlencode({"tls": "true", **files})
        unix = urllib.parse.quote_plus(f"/tmp/mongodb-{server.port}.sock")
        for uri in (f"mongodb://localhost:{server.port}/?{tls}", f"mongodb://{unix}"):
            ended = mongosh(server, "--eval", "print(db.adminCommand({ping: 1}).ok)", uri=uri)
            assert (ended.stdout, ended.returncode) == ("1\n", 0), ended.stderr
