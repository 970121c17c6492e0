"""User-defined roles, and how they inherit."""

import pytest

from logins import code


def privilege(actions, **resource):
    return {"resource": resource, "actions": actions.split()}


def test_roles_are_created(users):
    name = users.name
    own = privilege("insert find", db=name, collection="c")
    users.command("createRole", "r", privileges=[own], roles=["read"])
    assert code(users.command, "createRole", "r", privileges=[], roles=[]) == 51002
    [role] = users.command("rolesInfo", "r")["roles"]
    assert role == {
        "_id": f"{name}.r", "role": "r", "db": name, "roles": [{"role": "read", "db": name}],
        "inheritedRoles": [{"role": "read", "db": name}], "isBuiltin": False,
    }
    [role] = users.command("rolesInfo", "r", showPrivileges=True)["roles"]
    # Actions are sorted, as in MongoDB.
    assert role["privileges"] == [privilege("find insert", db=name, collection="c")]
    assert own["resource"] in [one["resource"] for one in role["inheritedPrivileges"]]
    stored = users.client.admin["system.roles"].find_one({"_id": f"{name}.r"})
    assert list(stored) == ["_id", "role", "db", "privileges", "roles"]


@pytest.mark.parametrize("arguments, expected", [
    ({"roles": []}, 40414),
    ({"privileges": []}, 40414),
    ({"privileges": [], "roles": ["nothing"]}, 31),
    ({"privileges": [privilege("fly", db="", collection="")], "roles": []}, 2),
    ({"privileges": [privilege("find", db="other", collection="")], "roles": []}, 49),
    ({"privileges": [privilege("find", cluster=True)], "roles": []}, 49),
    ({"privileges": [privilege("find", anyResource=True)], "roles": []}, 49),
    ({"privileges": [], "roles": [{"role": "read", "db": "other"}]}, 49),
    ({"privileges": [{}], "roles": []}, 2),
    ({"privileges": [{"resource": {}, "actions": []}], "roles": []}, 2),
    ({"privileges": 1, "roles": []}, 14),
])
def test_invalid_roles_are_refused(users, arguments, expected):
    assert code(users.command, "createRole", "x", **arguments) == expected
    assert users.command("rolesInfo", 1)["roles"] == []


def test_names_of_roles(root, users):
    for database, name in [(users, "read"), (root.local, "r"), (root["$external"], "r"),
                           (users, "")]:
        assert code(database.command, "createRole", name, privileges=[], roles=[]) == 2


def test_roles_are_changed(users):
    name = users.name
    users.command("createRole", "r", privileges=[], roles=[])
    on_c = lambda actions: privilege(actions, db=name, collection="c")
    users.command("grantPrivilegesToRole", "r", privileges=[on_c("find"), on_c("insert")])
    users.command("grantRolesToRole", "r", roles=["read"])
    get = lambda: users.command("rolesInfo", "r", showPrivileges=True)["roles"][0]
    assert get()["privileges"] == [on_c("find insert")]
    assert get()["roles"] == [{"role": "read", "db": name}]
    users.command("revokePrivilegesFromRole", "r", privileges=[on_c("find")])
    users.command("revokeRolesFromRole", "r", roles=["read"])
    assert get()["privileges"] == [on_c("insert")] and get()["roles"] == []
    users.command("updateRole", "r", privileges=[on_c("remove")], roles=["dbAdmin"])
    assert get()["privileges"] == [on_c("remove")]
    assert get()["roles"] == [{"role": "dbAdmin", "db": name}]
    assert code(users.command, "updateRole", "r") == 2
    for command, arguments in [
            ("grantPrivilegesToRole", {"privileges": [on_c("find")]}),
            ("revokePrivilegesFromRole", {"privileges": [on_c("find")]}),
            ("grantRolesToRole", {"roles": ["read"]}), ("revokeRolesFromRole", {"roles": ["read"]}),
            ("updateRole", {"roles": []}), ("dropRole", {})]:
        assert code(users.command, command, "x", **arguments) == 31, command
        assert code(users.command, command, "read", **arguments) == 49, command
        for empty in arguments:
            if command.startswith(("grant", "revoke")):
                assert code(users.command, command, "r", **{empty: []}) == 2, command


def test_circles_are_refused(users):
    for name, inherits in [("a", []), ("b", ["a"]), ("c", ["b"])]:
        users.command("createRole", name, privileges=[], roles=inherits)
    assert code(users.command, "grantRolesToRole", "a", roles=["c"]) == 49
    assert code(users.command, "grantRolesToRole", "a", roles=["a"]) == 49
    assert code(users.command, "updateRole", "a", roles=["b"]) == 49
    [role] = users.command("rolesInfo", "c")["roles"]
    assert [one["role"] for one in role["inheritedRoles"]] == ["a", "b"]


def test_roles_are_dropped_from_users_and_roles(users):
    users.command("createRole", "a", privileges=[], roles=[])
    users.command("createRole", "b", privileges=[], roles=["a"])
    users.command("createUser", "u", pwd="pw", roles=["a", "b"])
    users.command("dropRole", "a")
    assert users.command("rolesInfo", "b")["roles"][0]["roles"] == []
    roles = users.command("usersInfo", "u")["users"][0]["roles"]
    assert [role["role"] for role in roles] == ["b"]
    assert users.command("dropAllRolesFromDatabase")["n"] == 1
    assert users.command("usersInfo", "u")["users"][0]["roles"] == []


def test_built_in_roles_are_listed(root, users):
    names = lambda database: [one["role"] for one in database.command(
        "rolesInfo", 1, showBuiltinRoles=True)["roles"]]
    assert names(users) == ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite",
                            "userAdmin"]
    assert {"__system", "backup", "clusterAdmin", "clusterManager", "clusterMonitor", "dbAdmin",
            "dbAdminAnyDatabase", "dbOwner", "directShardOperations", "enableSharding",
            "hostManager", "read", "readAnyDatabase", "readWrite", "readWriteAnyDatabase",
            "restore", "root", "userAdmin", "userAdminAnyDatabase"} == set(names(root.admin))
    [role] = users.command("rolesInfo", "readWrite", showPrivileges=True)["roles"]
    assert role["isBuiltin"] and role["roles"] == []
    assert [one["resource"]["collection"] for one in role["privileges"]] == ["", "system.js"]
    fragment = users.command("rolesInfo", ["read"], showPrivileges="asUserFragment")
    fragment = fragment["userFragment"]
    assert fragment["roles"] == fragment["inheritedRoles"] == [{"role": "read", "db": users.name}]
    assert fragment["inheritedPrivileges"]


def test_privileges_are_inherited(root, users, login):
    name = users.name
    users.command("createRole", "low", privileges=[
        privilege("find", db=name, collection="a")], roles=[])
    users.command("createRole", "high", privileges=[
        privilege("insert", db=name, collection="b")], roles=["low"])
    client = login("high", database=name)
    client[name].a.find_one()
    client[name].b.insert_one({})
    assert code(client[name].b.find_one) == 13
    assert code(client[name].a.insert_one, {}) == 13
    users.command("revokePrivilegesFromRole", "low", privileges=[
        privilege("find", db=name, collection="a")])
    assert code(client[name].a.find_one) == 13
    status = client.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
    assert [one["role"] for one in status["authenticatedUserRoles"]] == ["high", "low"]
    assert status["authenticatedUserPrivileges"] == [privilege("insert", db=name, collection="b")]


def test_resources(root, login):
    """Each form of a resource, with the namespaces that it includes."""
    root.admin.command("createRole", "forms", roles=[], privileges=[
        privilege("find", db="one", collection=""),
        privilege("insert", db="", collection="everywhere"),
        privilege("remove", db="", collection=""),
        privilege("serverStatus", cluster=True),
    ])
    client = login("forms")
    client.one.c.find_one()
    assert code(client.two.c.find_one) == 13
    assert code(client.one["system.users"].find_one) == 13
    client.one.everywhere.insert_one({})
    assert code(client.one.c.insert_one, {}) == 13
    client.two.c.delete_one({})
    for special in ["local", "config"]:
        assert code(client[special].c.delete_one, {}) == 13
    client.admin.command("serverStatus")
    root.admin.command("updateRole", "forms", privileges=[privilege("anyAction", anyResource=True)])
    client.two["system.js"].find_one()
    client.admin.command("getParameter", "*")
    root.admin.command("dropRole", "forms")


def test_administrators_of_a_database_cannot_reach_beyond(login):
    client = login("userAdmin", database="bounded").bounded
    reach = privilege("find", db="other", collection="")
    assert code(client.command, "createRole", "r", privileges=[reach], roles=[]) == 13
    client.command("createRole", "r", roles=[],
                   privileges=[privilege("find", db="bounded", collection="")])
    assert code(client.command, "grantPrivilegesToRole", "r",
                privileges=[privilege("shutdown", cluster=True)]) == 13
    client.command("dropAllRolesFromDatabase")


def test_restrictions_of_roles(root, server, login):
    root.admin.command("createRole", "far", privileges=[], roles=[],
                       authenticationRestrictions=[{"clientSource": ["10.0.0.0/8"]}])
    root.admin.command("createUser", "far", pwd="pw", roles=["far"])
    far = server.client(username="far", password="pw")
    assert code(far.admin.command, "connectionStatus") == 18
    root.admin.command("updateRole", "far", authenticationRestrictions=[
        {"clientSource": ["10.0.0.0/8"]}, {"clientSource": ["127.0.0.1"],
                                           "serverAddress": ["127.0.0.0/8"]}])
    server.client(username="far", password="pw").admin.command("connectionStatus")
    [role] = root.admin.command("rolesInfo", "far", showAuthenticationRestrictions=True)["roles"]
    assert len(role["authenticationRestrictions"]) == 2
    root.admin.command("updateUser", "far",
                       authenticationRestrictions=[{"clientSource": ["127.0.0.2"]}])
    assert code(server.client(username="far", password="pw").admin.command,
                "connectionStatus") == 18
    [user] = root.admin.command("usersInfo", "far", showAuthenticationRestrictions=True)["users"]
    assert user["authenticationRestrictions"] == [{"clientSource": ["127.0.0.2"]}]
    root.admin.command("updateUser", "far", authenticationRestrictions=[])
    server.client(username="far", password="pw").admin.command("connectionStatus")


def test_expressions_read_the_roles_of_the_user(root, users, login):
    """Expressions read the current roles, also in views, sub-pipelines and updates."""
    name = users.name
    root[name].notes.insert_many([
        {"_id": 1, "for": ["readers"]}, {"_id": 2, "for": ["writers"]}, {"_id": 3, "for": ["readers", "writers"]}])
    users.command("createRole", "writers", privileges=[], roles=[])
    users.command("createRole", "readers", privileges=[], roles=["readWrite"])
    users.command("createRole", "chief", privileges=[], roles=["readers"])
    mine = {"$expr": {"$ne": [{"$setIntersection": ["$for", "$$USER_ROLES.role"]}, []]}}
    root[name].command("create", "mine", viewOn="notes", pipeline=[{"$match": mine}])
    client = login("chief", database=name, name="u")[name]

    def found(collection, *arguments):
        return [note["_id"] for note in collection.find(*arguments).sort("_id")]

    assert found(client.mine) == found(client.notes, mine) == [1, 3]
    roles = [{"_id": f"{name}.{role}", "role": role, "db": name} for role in ["chief", "readWrite", "readers"]]
    project = {"$project": {"_id": 0, "roles": {"$sortArray": {"input": "$$USER_ROLES", "sortBy": 1}}}}
    first = [{"$limit": 1}]
    assert list(client.notes.aggregate([*first, project])) == [{"roles": roles}]
    [joined] = client.notes.aggregate([*first, {"$lookup": {
        "from": "notes", "as": "x", "let": {"n": 1}, "pipeline": [*first, project]}}])
    assert joined["x"] == [{"roles": roles}]
    client.notes.update_one({"_id": 2}, [{"$set": {"by": "$$USER_ROLES.role"}}])
    assert sorted(client.notes.find_one({"_id": 2})["by"]) == ["chief", "readWrite", "readers"]
    users.command("grantRolesToUser", "u", roles=["writers"])
    assert found(client.mine) == [1, 2, 3]
    assert found(root[name].mine) == []
    assert [row["r"] for row in root[name].aggregate([{"$documents": [{}]}, {"$project": {"r": "$$USER_ROLES"}}])] == [
        [{"_id": "admin.root", "role": "root", "db": "admin"}]]
