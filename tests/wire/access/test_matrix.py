"""Each command with each built-in role, compared with MongoDB's documentation.

ROLES has the actions of each role on some resources, and COMMANDS the actions that each command
needs, both written from the manual ("Built-In Roles", "Privilege Actions", and the pages of the
commands), independently of the tables of the server.
"""

import pytest
from pymongo.errors import OperationFailure

# Resources: the cluster, the database d with the collection d.c, d.system.profile, the database
# admin with a collection, admin.system.users, and all normal collections together.
CLUSTER, D, PROFILE, ADMIN, USERS, NORMAL = "cluster", "d", "profile", "admin", "users", "normal"

READ = ("changeStream collStats dbHash dbStats find killCursors listCollections listIndexes "
        "listSearchIndexes planCacheRead")
READ_WRITE = READ + (" cleanupStructuredEncryptionData compactStructuredEncryptionData "
                     "convertToCapped createCollection createIndex createSearchIndexes "
                     "dropCollection dropIndex dropSearchIndex insert remove "
                     "renameCollectionSameDB update updateSearchIndex")
DB_ADMIN = ("bypassDocumentValidation collMod collStats compact convertToCapped createCollection "
            "createIndex createSearchIndexes dbStats dropCollection dropDatabase dropIndex "
            "dropSearchIndex enableProfiler listCollections listIndexes listSearchIndexes "
            "planCacheIndexFilter planCacheRead planCacheWrite reIndex renameCollectionSameDB "
            "updateSearchIndex validate")
DB_ADMIN_PROFILE = READ + " convertToCapped createCollection dropCollection"
USER_ADMIN = ("changeCustomData changePassword createRole createUser dropRole dropUser grantRole "
              "revokeRole setAuthenticationRestriction viewRole viewUser")
MANAGER = ("appendOplogNote applicationMessage flushRouterConfig getClusterParameter "
           "getDefaultRWConcern listSessions querySettings replSetConfigure replSetGetConfig "
           "replSetGetStatus replSetStateChange setClusterParameter setDefaultRWConcern "
           "setFeatureCompatibilityVersion")
MONITOR = ("connPoolStats getCmdLineOpts getDefaultRWConcern getLog getParameter hostInfo inprog "
           "listClusterCatalog listDatabases listSessions replSetGetConfig replSetGetStatus "
           "serverStatus top useUUID")
MONITOR_DB = "collStats dbStats indexStats"
HOST = ("applicationMessage compact dropConnections flushRouterConfig fsync invalidateUserCache "
        "killAnyCursor killAnySession killop logRotate oidReset rotateCertificates setParameter "
        "shutdown unlock")
READ_USERS = ("collStats createIndex createSearchIndexes dbHash dbStats dropIndex dropSearchIndex "
              "find killCursors planCacheRead")
BACKUP = "appendOplogNote getParameter listDatabases serverStatus setUserWriteBlockMode"
BACKUP_ANY = "listDatabases listCollections listIndexes listSearchIndexes"
RESTORE = ("bypassDocumentValidation collMod convertToCapped createCollection createIndex "
           "createSearchIndexes dropCollection insert updateSearchIndex listCollections "
           + USER_ADMIN)
RESTORE_USERS = ("bypassDocumentValidation collMod createCollection createIndex dropCollection "
                 "find insert remove update updateSearchIndex listCollections")


def everywhere(actions):
    return {D: actions, ADMIN: actions, NORMAL: actions}


def union(*roles):
    return {resource: " ".join(role.get(resource, "") for role in roles)
            for resource in {name for role in roles for name in role}}


READ_ANY = union(everywhere(READ), {CLUSTER: "listDatabases"})
READ_WRITE_ANY = union(everywhere(READ_WRITE), {CLUSTER: "listDatabases"})
USER_ADMIN_ANY = union(everywhere(USER_ADMIN), {
    CLUSTER: "authSchemaUpgrade invalidateUserCache listDatabases viewUser", USERS: READ_USERS
    + " changeStream listCollections listIndexes listSearchIndexes"})
DB_ADMIN_ANY = union(everywhere(DB_ADMIN), {CLUSTER: "applyOps listDatabases",
                                            PROFILE: DB_ADMIN_PROFILE})
CLUSTER_MONITOR = union(everywhere(MONITOR_DB), {CLUSTER: MONITOR, PROFILE: "find"})
CLUSTER_MANAGER = {CLUSTER: MANAGER}
HOST_MANAGER = union(everywhere("killCursors"), {CLUSTER: HOST})
CLUSTER_ADMIN = union(CLUSTER_MONITOR, CLUSTER_MANAGER, HOST_MANAGER, everywhere("dropDatabase"))
BACKUP_ROLE = union(everywhere("find"), {
    resource: BACKUP_ANY for resource in [CLUSTER, D, PROFILE, ADMIN, USERS, NORMAL]},
    {CLUSTER: BACKUP, PROFILE: "find", USERS: "find"})
RESTORE_ROLE = union(everywhere(RESTORE), {
    resource: "listCollections" for resource in [CLUSTER, PROFILE]},
    {CLUSTER: "getParameter bypassWriteBlockingMode setUserWriteBlockMode", USERS: RESTORE_USERS})

ROLES = {
    ("d", "read"): {D: READ},
    ("d", "readWrite"): {D: READ_WRITE},
    ("d", "dbAdmin"): {D: DB_ADMIN, PROFILE: DB_ADMIN_PROFILE},
    ("d", "userAdmin"): {D: USER_ADMIN},
    ("d", "dbOwner"): {D: " ".join([READ_WRITE, DB_ADMIN, USER_ADMIN]), PROFILE: DB_ADMIN_PROFILE},
    ("d", "enableSharding"): {},
    ("admin", "readAnyDatabase"): READ_ANY,
    ("admin", "readWriteAnyDatabase"): READ_WRITE_ANY,
    ("admin", "userAdminAnyDatabase"): USER_ADMIN_ANY,
    ("admin", "dbAdminAnyDatabase"): DB_ADMIN_ANY,
    ("admin", "clusterMonitor"): CLUSTER_MONITOR,
    ("admin", "clusterManager"): CLUSTER_MANAGER,
    ("admin", "hostManager"): HOST_MANAGER,
    ("admin", "clusterAdmin"): CLUSTER_ADMIN,
    ("admin", "backup"): BACKUP_ROLE,
    ("admin", "restore"): RESTORE_ROLE,
    ("admin", "directShardOperations"): {},
    ("admin", "root"): union(READ_WRITE_ANY, USER_ADMIN_ANY, DB_ADMIN_ANY, CLUSTER_ADMIN,
                             BACKUP_ROLE, RESTORE_ROLE, {
        resource: "validate" for resource in [CLUSTER, D, PROFILE, ADMIN, USERS, NORMAL]}),
    ("admin", "__system"): {resource: "anyAction" for resource in [
        CLUSTER, D, PROFILE, ADMIN, USERS, NORMAL]},
}

ROLE = {"role": "read", "db": "d"}
PRIVILEGE = {"resource": {"db": "d", "collection": "c"}, "actions": ["find"]}
COMMANDS = [
    # The database, the command, and the actions that it needs. It needs all of them, or the one
    # that begins with a bar.
    ("d", {"aggregate": "c", "pipeline": [], "cursor": {}}, {D: "find"}),
    ("d", {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}}, {D: "find insert remove"}),
    ("d", {"aggregate": "c", "pipeline": [{"$merge": "o"}], "cursor": {}},
     {D: "find insert update"}),
    ("d", {"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}}, {D: "indexStats"}),
    ("d", {"aggregate": "c", "pipeline": [{"$collStats": {}}], "cursor": {}}, {D: "collStats"}),
    ("d", {"aggregate": "c", "pipeline": [{"$planCacheStats": {}}], "cursor": {}},
     {D: "planCacheRead"}),
    ("admin", {"aggregate": "system.users", "pipeline": [], "cursor": {}}, {USERS: "find"}),
    ("admin", {"autoCompact": True}, {CLUSTER: "compact"}),
    ("admin", {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "d.c"}]},
     {D: "insert"}),
    ("d", {"cleanupStructuredEncryptionData": "c"}, {D: "cleanupStructuredEncryptionData"}),
    ("d", {"cloneCollectionAsCapped": "c", "toCollection": "e", "size": 1},
     {D: "find insert createIndex convertToCapped"}),
    ("d", {"collMod": "c"}, {D: "collMod"}),
    ("d", {"collStats": "c"}, {D: "collStats"}),
    ("d", {"compact": "c"}, {D: "compact"}),
    ("d", {"compactStructuredEncryptionData": "c"}, {D: "compactStructuredEncryptionData"}),
    ("admin", {"connPoolStats": 1}, {CLUSTER: "connPoolStats"}),
    ("d", {"convertToCapped": "e", "size": 1000}, {D: "convertToCapped"}),
    ("d", {"count": "c"}, {D: "find"}),
    ("d", {"create": "e", "capped": True}, {D: "createCollection convertToCapped"}),
    ("d", {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}, {D: "createIndex"}),
    ("d", {"createRole": "", "privileges": [PRIVILEGE], "roles": ["read"]},
     {D: "createRole grantRole"}),
    ("d", {"createSearchIndexes": "c", "indexes": []}, {D: "createSearchIndexes"}),
    ("d", {"createUser": "", "pwd": "x", "roles": ["read"]}, {D: "createUser grantRole"}),
    ("admin", {"createUser": "", "pwd": "x", "roles": [ROLE]},
     {ADMIN: "createUser", D: "grantRole"}),
    ("admin", {"currentOp": 1}, {CLUSTER: "inprog"}),
    ("d", {"dataSize": "d.c"}, {D: "find"}),
    ("d", {"dbHash": 1}, {D: "dbHash"}),
    ("d", {"dbStats": 1}, {D: "dbStats"}),
    ("d", {"delete": "c", "deletes": [{"q": {"x": 1}, "limit": 1}]}, {D: "remove"}),
    ("d", {"distinct": "c", "key": "a"}, {D: "find"}),
    ("d", {"drop": "e"}, {D: "dropCollection"}),
    ("d", {"dropAllRolesFromDatabase": 1}, {D: "dropRole"}),
    ("d2", {"dropAllUsersFromDatabase": 1}, {NORMAL: "dropUser"}),
    ("admin", {"dropConnections": 1, "hostAndPort": []}, {CLUSTER: "dropConnections"}),
    ("d2", {"dropDatabase": 1}, {NORMAL: "dropDatabase"}),
    ("d", {"dropIndexes": "c", "index": "x"}, {D: "dropIndex"}),
    ("d", {"dropRole": "x"}, {D: "dropRole"}),
    ("d", {"dropSearchIndex": "c", "name": "x"}, {D: "dropSearchIndex"}),
    ("d", {"dropUser": "x"}, {D: "dropUser"}),
    ("d", {"explain": {"find": "c"}}, {D: "find"}),
    ("d", {"explain": {"delete": "c", "deletes": [{"q": {}, "limit": 1}]}}, {D: "remove"}),
    ("d", {"find": "c"}, {D: "find"}),
    ("d", {"find": "system.profile"}, {PROFILE: "find"}),
    ("admin", {"find": "system.users"}, {USERS: "find"}),
    ("d", {"findAndModify": "c", "query": {"x": 1}, "remove": True}, {D: "find remove"}),
    ("d", {"findAndModify": "c", "query": {"x": 1}, "update": {"$set": {"x": 1}}},
     {D: "find update"}),
    ("d", {"findAndModify": "c", "query": {"x": 2}, "update": {"$set": {"x": 1}}, "upsert": True},
     {D: "find update insert"}),
    ("admin", {"fsyncUnlock": 1}, {CLUSTER: "unlock"}),
    ("admin", {"fsync": 1}, {CLUSTER: "fsync"}),
    ("admin", {"getClusterParameter": "*"}, {CLUSTER: "getClusterParameter"}),
    ("admin", {"getCmdLineOpts": 1}, {CLUSTER: "getCmdLineOpts"}),
    ("admin", {"getDefaultRWConcern": 1}, {CLUSTER: "getDefaultRWConcern"}),
    ("admin", {"getLog": "global"}, {CLUSTER: "getLog"}),
    ("admin", {"getParameter": "*"}, {CLUSTER: "getParameter"}),
    ("d", {"grantPrivilegesToRole": "x", "privileges": [PRIVILEGE]}, {D: "grantRole"}),
    ("d", {"grantRolesToRole": "x", "roles": ["read"]}, {D: "grantRole"}),
    ("d", {"grantRolesToUser": "x", "roles": ["read"]}, {D: "grantRole"}),
    ("admin", {"hostInfo": 1}, {CLUSTER: "hostInfo"}),
    ("d", {"insert": "c", "documents": [{}]}, {D: "insert"}),
    ("d", {"insert": "c", "documents": [{}], "bypassDocumentValidation": True},
     {D: "insert bypassDocumentValidation"}),
    ("admin", {"insert": "system.users", "documents": [{"_id": 1}], "ordered": 1},
     {USERS: "insert"}),
    ("admin", {"invalidateUserCache": 1}, {CLUSTER: "invalidateUserCache"}),
    ("admin", {"killAllSessions": [{"user": "x", "db": "y"}]}, {CLUSTER: "killAnySession"}),
    ("admin", {"killAllSessionsByPattern": [{}]}, {CLUSTER: "killAnySession"}),
    ("admin", {"killOp": 1, "op": 2_000_000_000}, {CLUSTER: "killop"}),
    ("d", {"listCollections": 1}, {D: "listCollections"}),
    ("d", {"listIndexes": "c"}, {D: "listIndexes"}),
    ("d", {"aggregate": "c", "pipeline": [{"$listSearchIndexes": {}}], "cursor": {}},
     {D: "listSearchIndexes"}),
    ("admin", {"lockInfo": 1}, {CLUSTER: "serverStatus"}),
    ("admin", {"logApplicationMessage": "m"}, {CLUSTER: "applicationMessage"}),
    ("admin", {"logRotate": 1}, {CLUSTER: "logRotate"}),
    ("d", {"planCacheClear": "c"}, {D: "planCacheWrite"}),
    ("d", {"planCacheClearFilters": "c"}, {D: "planCacheIndexFilter"}),
    ("d", {"planCacheListFilters": "c"}, {D: "planCacheIndexFilter"}),
    ("d", {"planCacheSetFilter": "c"}, {D: "planCacheIndexFilter"}),
    ("d", {"profile": 0}, {D: "enableProfiler"}),
    ("d", {"reIndex": "c"}, {D: "reIndex"}),
    ("admin", {"renameCollection": "d.x", "to": "d.y"}, {D: "renameCollectionSameDB"}),
    ("admin", {"renameCollection": "d.x", "to": "admin.y"},
     {D: "find dropCollection", ADMIN: "insert createIndex"}),
    ("admin", {"replSetGetConfig": 1}, {CLUSTER: "replSetGetConfig"}),
    ("admin", {"replSetGetStatus": 1}, {CLUSTER: "replSetGetStatus"}),
    ("admin", {"replSetStepDown": 1}, {CLUSTER: "replSetStateChange"}),
    ("d", {"revokePrivilegesFromRole": "x", "privileges": [PRIVILEGE]}, {D: "revokeRole"}),
    ("d", {"revokeRolesFromRole": "x", "roles": ["read"]}, {D: "revokeRole"}),
    ("d", {"revokeRolesFromUser": "x", "roles": ["read"]}, {D: "revokeRole"}),
    ("d", {"rolesInfo": 1}, {D: "viewRole"}),
    ("admin", {"rotateCertificates": 1}, {CLUSTER: "rotateCertificates"}),
    ("admin", {"serverStatus": 1}, {CLUSTER: "serverStatus"}),
    ("admin", {"setClusterParameter": {}}, {CLUSTER: "setClusterParameter"}),
    ("admin", {"setFeatureCompatibilityVersion": "8.0"},
     {CLUSTER: "setFeatureCompatibilityVersion"}),
    ("admin", {"setParameter": 1, "quiet": False}, {CLUSTER: "setParameter"}),
    ("admin", {"shutdown": 1}, {CLUSTER: "shutdown"}),
    ("admin", {"top": 1}, {CLUSTER: "top"}),
    ("d", {"update": "c", "updates": [{"q": {"x": 9}, "u": {"$set": {"a": 1}}}]}, {D: "update"}),
    ("d", {"updateRole": "x", "roles": ["read"]}, {D: "revokeRole grantRole"}),
    ("d", {"updateSearchIndex": "c", "name": "x", "definition": {}}, {D: "updateSearchIndex"}),
    ("d", {"updateUser": "x", "pwd": "y"}, {D: "changePassword"}),
    ("d", {"updateUser": "x", "customData": {}}, {D: "changeCustomData"}),
    ("d", {"updateUser": "x", "roles": ["read"]}, {NORMAL: "revokeRole", D: "grantRole"}),
    ("d", {"usersInfo": 1}, {D: "viewUser"}),
    ("admin", {"usersInfo": {"forAllDBs": True}}, {CLUSTER: "viewUser"}),
    ("d", {"validate": "c"}, {D: "validate"}),
    ("admin", {"validateDBMetadata": 1, "db": "d", "apiParameters": {
        "version": "1", "strict": True, "deprecationErrors": False}}, {D: "validate"}),
    ("d", {"_mergeAuthzCollections": 1}, None),
    ("d", {"mapReduce": "c"}, {D: "find"}),
    ("d", {"listSearchIndexes": "c"}, {D: "listSearchIndexes"}),
    ("admin", {"prepareTransaction": 1}, {CLUSTER: "internal"}),
]

# Any user that is logged in may run these.
FOR_USERS = [
    ("admin", {"abortTransaction": 1}), ("admin", {"commitTransaction": 1}),
    ("admin", {"currentOp": 1, "$ownOps": True}), ("admin", {"listDatabases": 1}),
    ("admin", {"killSessions": []}), ("admin", {"refreshSessions": []}),
    ("admin", {"startSession": 1}), ("d", {"killCursors": "c", "cursors": []}),
    ("d", {"getMore": 1, "collection": "c"}), ("admin", {"configureFailPoint": "x"}),
]
# These need no login.
FREE = ["authenticate", "buildInfo", "connectionStatus", "endSessions", "features", "getnonce", "hello",
        "isMaster", "listCommands", "logout", "ping", "saslContinue", "saslStart", "whatsmyuri"]

# The requests of these roles would end the server, or all users.
NOT_RUN = {"shutdown": {"hostManager", "clusterAdmin", "root", "__system"}}


def allows(role, needed):
    for resource, actions in needed.items():
        given = role.get(resource, "").split()
        if "anyAction" not in given and not set(actions.split()) <= set(given):
            return False
    return True


def is_refused(client, database, command):
    try:
        client[database].command(dict(command))
    except OperationFailure as error:
        return error.code == 13
    return False


@pytest.fixture(scope="module")
def users(root, login):
    """A client for each role."""
    root.d.c.insert_one({})
    root.d.x.insert_one({})
    return {(database, role): login(role, database=database, name=f"{role}-{database}")
            for database, role in ROLES}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role[1])
def test_commands(root, users, role):
    client, given = users[role], ROLES[role]
    wrong = []
    for database, command, needed in COMMANDS:
        name = next(iter(command))
        if needed is None or role[1] in NOT_RUN.get(name, ()):
            continue
        expected = not allows(given, needed)
        if is_refused(client, database, command) != expected:
            wrong.append((command, "must be refused" if expected else "must be allowed"))
    for database, command in FOR_USERS:
        if is_refused(client, database, command):
            wrong.append((command, "must be allowed"))
    assert not wrong, wrong
    # None of the commands has logged the administrator out.
    root.admin.command("listDatabases")


def test_the_matrix_has_every_command(root):
    listed = set(root.admin.command("listCommands")["commands"])
    known = {next(iter(command)) for _, command, *_ in COMMANDS + FOR_USERS} | set(FREE)
    assert listed - known == set() and known - listed <= {"configureFailPoint"}


def test_nobody_may_do_anything(server, root):
    client = server.client()
    allowed = [command for database, command, *_ in COMMANDS + FOR_USERS
               if "configureFailPoint" not in command and not is_refused(client, database, command)]
    assert allowed == []
    for name in FREE:
        assert not is_refused(client, "admin", {name: 1}), name


def test_restore_may_merge_users(root, users):
    merge = {"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers",
             "tempRolesCollection": "admin.temproles", "drop": False, "db": ""}
    allowed = {role for (_, role), client in users.items()
               if not is_refused(client, "admin", merge)}
    assert allowed == {"restore", "root", "__system"}
