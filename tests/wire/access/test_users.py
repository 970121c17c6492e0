"""The commands about users."""

import pytest
from pymongo.errors import OperationFailure

from logins import code


def test_users_are_created(users):
    users.command("createUser", "a", pwd="pw", roles=["read", {"role": "root", "db": "admin"}],
                  customData={"x": 1})
    [user] = users.command("usersInfo", "a")["users"]
    name = users.name
    assert user.pop("userId").subtype == 4
    assert user == {
        "_id": f"{name}.a", "user": "a", "db": name, "customData": {"x": 1},
        "roles": [{"role": "read", "db": name}, {"role": "root", "db": "admin"}],
        "mechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"],
    }
    assert code(users.command, "createUser", "a", pwd="pw", roles=[]) == 51003


@pytest.mark.parametrize("arguments, expected", [
    ({"roles": []}, 2),
    ({"pwd": "", "roles": []}, 2),
    ({"pwd": "x"}, 40414),
    ({"pwd": 1, "roles": []}, 14),
    ({"pwd": "x", "roles": "read"}, 14),
    ({"pwd": "x", "roles": [1]}, 2),
    ({"pwd": "x", "roles": ["nothing"]}, 31),
    ({"pwd": "x", "roles": ["root"]}, 31),
    ({"pwd": "x", "roles": [{"role": "read"}]}, 2),
    ({"pwd": "x", "roles": [], "mechanisms": []}, 2),
    ({"pwd": "x", "roles": [], "mechanisms": ["PLAIN"]}, 2),
    ({"pwd": "x", "roles": [], "customData": 1}, 14),
    ({"pwd": "x", "roles": [], "authenticationRestrictions": [{}]}, 2),
    ({"pwd": "x", "roles": [], "authenticationRestrictions": [{"clientSource": ["x"]}]}, 2),
    ({"pwd": "x", "roles": [], "other": 1}, 40415),
])
def test_invalid_users_are_refused(users, arguments, expected):
    assert code(users.command, "createUser", "a", **arguments) == expected
    assert users.command("usersInfo", 1)["users"] == []


def test_names_and_databases(root, users):
    assert code(users.command, "createUser", "", pwd="x", roles=[]) == 2
    assert code(users.command, "createUser", 1, pwd="x", roles=[]) == 14
    assert code(root.local.command, "createUser", "a", pwd="x", roles=[]) == 2
    external = root["$external"]
    assert code(external.command, "createUser", "CN=a", pwd="x", roles=[]) == 2
    external.command("createUser", "CN=a", roles=[{"role": "read", "db": "d"}])
    [user] = external.command("usersInfo", "CN=a")["users"]
    assert user["mechanisms"] == ["external"]
    external.command("dropUser", "CN=a")


def test_users_are_changed(users):
    users.command("createUser", "a", pwd="pw", roles=["read"], customData={"x": 1})
    assert code(users.command, "updateUser", "a") == 2
    assert code(users.command, "updateUser", "b", pwd="x") == 11
    users.command("updateUser", "a", customData={"y": 2}, roles=["dbAdmin"])
    [user] = users.command("usersInfo", "a")["users"]
    assert user["customData"] == {"y": 2}
    assert user["roles"] == [{"role": "dbAdmin", "db": users.name}]
    users.command("updateUser", "a", mechanisms=["SCRAM-SHA-256"])
    assert users.command("usersInfo", "a")["users"][0]["mechanisms"] == ["SCRAM-SHA-256"]
    assert code(users.command, "updateUser", "a", mechanisms=["SCRAM-SHA-1"]) == 2
    users.command("grantRolesToUser", "a", roles=["read", "dbAdmin"])
    roles = users.command("usersInfo", "a")["users"][0]["roles"]
    assert [role["role"] for role in roles] == ["dbAdmin", "read"]
    users.command("revokeRolesFromUser", "a", roles=["dbAdmin", "userAdmin"])
    assert users.command("usersInfo", "a")["users"][0]["roles"] == [
        {"role": "read", "db": users.name}]
    for command in ["grantRolesToUser", "revokeRolesFromUser"]:
        assert code(users.command, command, "a", roles=[]) == 2
        assert code(users.command, command, "b", roles=["read"]) == 11


def test_users_are_dropped(users):
    for name in ["a", "b", "c.d"]:
        users.command("createUser", name, pwd="pw", roles=[])
    users.command("dropUser", "c.d")
    assert code(users.command, "dropUser", "c.d") == 11
    assert users.command("dropAllUsersFromDatabase")["n"] == 2
    assert users.command("dropAllUsersFromDatabase")["n"] == 0


def test_users_are_listed(root, users):
    users.command("createUser", "a", pwd="pw", roles=["read"])
    users.command("createUser", "b", pwd="pw", roles=[], customData={"n": 1})
    def names(query, database=users, **options):
        return [user["user"] for user in database.command("usersInfo", query, **options)["users"]]

    name = users.name
    assert names(1) == ["a", "b"]
    assert names("a") == ["a"] and names("x") == []
    assert names({"user": "b", "db": name}, database=root.admin) == ["b"]
    assert names(["a", {"user": "b", "db": name}, "x"]) == ["a", "b"]
    assert {"a", "b", "root"} <= set(names({"forAllDBs": True}))
    assert names(1, filter={"roles.role": "read"}) == ["a"]
    assert names(1, filter={"customData.n": 1}) == ["b"]
    assert code(users.command, "usersInfo", 2) == 2
    assert code(users.command, "usersInfo", 1, showPrivileges=True) == 20
    [user] = users.command("usersInfo", "b", showCustomData=False)["users"]
    assert "customData" not in user and "credentials" not in user
    [user] = users.command("usersInfo", "a", showCredentials=True)["users"]
    assert set(user["credentials"]["SCRAM-SHA-256"]) == {
        "iterationCount", "salt", "storedKey", "serverKey"}
    [user] = users.command("usersInfo", "a", showPrivileges=True)["users"]
    assert user["inheritedRoles"] == [{"role": "read", "db": name}]
    assert user["inheritedPrivileges"][0]["resource"] == {"db": name, "collection": ""}
    assert "find" in user["inheritedPrivileges"][0]["actions"]
    assert user["authenticationRestrictions"] == []


def test_users_may_look_at_and_change_themselves(root, users, server):
    users.command("createRole", "self", roles=[], privileges=[
        {"resource": {"db": users.name, "collection": ""},
         "actions": ["changeOwnPassword", "changeOwnCustomData"]}])
    for name in ["a", "b"]:
        users.command("createUser", name, pwd="pw", roles=["self"])
    own = server.client(username="a", password="pw", authSource=users.name)[users.name]
    assert own.command("usersInfo", "a")["users"][0]["user"] == "a"
    assert code(own.command, "usersInfo", "b") == 13
    assert code(own.command, "usersInfo", 1) == 13
    assert own.command("rolesInfo", "self")["roles"][0]["role"] == "self"
    assert code(own.command, "rolesInfo", "read") == 13
    own.command("updateUser", "a", customData={"x": 1})
    own.command("updateUser", "a", pwd="new")
    assert code(own.command, "updateUser", "b", pwd="new") == 13
    assert code(own.command, "updateUser", "a", roles=["dbOwner"]) == 13
    assert code(own.command, "updateUser", "a", pwd="x", roles=["dbOwner"]) == 13


def test_administrators_grant_roles_of_their_database(root, users, login):
    client = login("userAdmin", database=users.name)[users.name]
    client.command("createUser", "a", pwd="pw", roles=["readWrite"])
    beyond = {"role": "read", "db": "other"}
    assert code(client.command, "createUser", "b", pwd="pw", roles=[beyond]) == 13
    assert code(client.command, "grantRolesToUser", "a", roles=[beyond]) == 13
    client.command("grantRolesToUser", "a", roles=["dbAdmin"])
    client.command("revokeRolesFromUser", "a", roles=["dbAdmin"])
    client.command("createUser", "c", pwd="pw", roles=[],
                   authenticationRestrictions=[{"clientSource": ["1.2.3.4"]}])
    assert code(client.client.admin.command, "createUser", "d", pwd="pw", roles=[]) == 13


def test_a_change_counts_at_once(root, login):
    client = login("read", name="promoted", database="d")
    with pytest.raises(OperationFailure):
        client.d.c.insert_one({})
    root.d.command("grantRolesToUser", "promoted", roles=["readWrite"])
    client.d.c.insert_one({})
    # The same counts if the document of the user is changed in another way.
    root.admin.command("createRole", "writer", roles=[], privileges=[
        {"resource": {"db": "admin", "collection": "system.users"},
         "actions": ["find", "update", "remove", "insert"]}])
    writer = login("writer")
    writer.admin["system.users"].update_one({"user": "promoted"}, {"$set": {"roles": []}})
    assert code(client.d.c.find_one) == 13
    writer.admin["system.users"].delete_one({"user": "promoted"})
    with pytest.raises(OperationFailure, match="requires authentication"):
        client.d.c.find_one()
    root.admin.command("dropRole", "writer")


def test_invalid_stored_users_cannot_log_in(root, server, login):
    root.admin.command("createRole", "editor", roles=[], privileges=[
        {"resource": {"db": "admin", "collection": "system.users"}, "actions": ["update"]}])
    editor = login("editor")
    client = login("read", name="broken", database="d")
    client.d.c.find_one()
    editor.admin["system.users"].update_one({"user": "broken"}, {"$set": {"roles": 5}})
    assert code(client.d.c.find_one) == 45
    again = server.client(username="broken", password="pw", authSource="d")
    assert code(again.d.c.find_one) == 18
    root.d.command("dropUser", "broken")
    root.admin.command("dropRole", "editor")
