//! The table of the built-in roles.

use crate::action::Action::{self, *};
use crate::resource::Pattern;

/// The databases that have a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every database.
    EveryDatabase,
    /// Only `admin`.
    Admin,
}

/// The resources of a grant.
#[derive(Clone, Copy, Debug)]
pub enum On {
    Cluster,
    Any,
    AnyNormal,
    /// The database of the role.
    Own,
    /// A collection of the database of the role.
    OwnCollection(&'static str),
    Database(&'static str),
    /// The collections with this name in all databases.
    Collection(&'static str),
    Namespace(&'static str, &'static str),
    SystemBuckets,
}

pub type Grant = (On, &'static [Action]);

/// A built-in role.
pub struct BuiltIn {
    pub name: &'static str,
    pub scope: Scope,
    pub grants: &'static [Grant],
    /// Roles whose grants it includes, in the same database.
    pub includes: &'static [&'static str],
}

const READ: &[Action] = &[
    changeStream,
    collStats,
    dbHash,
    dbStats,
    find,
    killCursors,
    listCollections,
    listIndexes,
    listSearchIndexes,
    planCacheRead,
];
const WRITE: &[Action] = &[
    cleanupStructuredEncryptionData,
    compactStructuredEncryptionData,
    convertToCapped,
    createCollection,
    createIndex,
    createSearchIndexes,
    dropCollection,
    dropIndex,
    dropSearchIndex,
    insert,
    remove,
    renameCollectionSameDB,
    update,
    updateSearchIndex,
];
const ADMINISTRATE: &[Action] = &[
    bypassDocumentValidation,
    collMod,
    collStats,
    compact,
    convertToCapped,
    createCollection,
    createIndex,
    createSearchIndexes,
    dbStats,
    dropCollection,
    dropDatabase,
    dropIndex,
    dropSearchIndex,
    enableProfiler,
    listCollections,
    listIndexes,
    listSearchIndexes,
    planCacheIndexFilter,
    planCacheRead,
    planCacheWrite,
    reIndex,
    renameCollectionSameDB,
    updateSearchIndex,
    validate,
];
const CHANGE_PROFILE: &[Action] = &[convertToCapped, createCollection, dropCollection];
const ADMINISTRATE_USERS: &[Action] = &[
    changeCustomData,
    changePassword,
    createRole,
    createUser,
    dropRole,
    dropUser,
    grantRole,
    revokeRole,
    setAuthenticationRestriction,
    viewRole,
    viewUser,
];
const READ_USERS: &[Action] = &[
    collStats,
    createIndex,
    createSearchIndexes,
    dbHash,
    dbStats,
    dropIndex,
    dropSearchIndex,
    find,
    killCursors,
    planCacheRead,
];
const MONITOR: &[Action] = &[collStats, dbStats, indexStats];
const SHARD: &[Action] = &[
    analyzeShardKey,
    clearJumboFlag,
    configureQueryAnalyzer,
    enableSharding,
    moveChunk,
    refineCollectionShardKey,
    reshardCollection,
    splitChunk,
    splitVector,
];
const RESTORE: &[Action] = &[
    bypassDocumentValidation,
    collMod,
    createCollection,
    createIndex,
    dropCollection,
    insert,
    updateSearchIndex,
];
const CHANGE: &[Action] = &[insert, remove, update];

/// The roles, sorted by name.
pub const ROLES: &[BuiltIn] = &[
    BuiltIn {
        name: "__system",
        scope: Scope::Admin,
        grants: &[(On::Any, &[anyAction])],
        includes: &[],
    },
    BuiltIn {
        name: "backup",
        scope: Scope::Admin,
        grants: &[
            (
                On::Any,
                &[
                    listCollections,
                    listDatabases,
                    listIndexes,
                    listSearchIndexes,
                ],
            ),
            (
                On::Cluster,
                &[
                    appendOplogNote,
                    getParameter,
                    listDatabases,
                    serverStatus,
                    setUserWriteBlockMode,
                ],
            ),
            (On::AnyNormal, &[find]),
            (On::Database("config"), &[find]),
            (On::Database("local"), &[find]),
            (On::Collection("system.js"), &[find]),
            (On::Collection("system.profile"), &[find]),
            (On::Collection("system.users"), &[find]),
            (On::SystemBuckets, &[find]),
            (On::Namespace("admin", "system.roles"), &[find]),
            (On::Namespace("admin", "system.users"), &[find]),
            (On::Namespace("admin", "system.version"), &[find]),
            (On::Namespace("config", "settings"), &[find, insert, update]),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "clusterAdmin",
        scope: Scope::Admin,
        grants: &[(On::AnyNormal, &[dropDatabase])],
        includes: &["clusterManager", "clusterMonitor", "hostManager"],
    },
    BuiltIn {
        name: "clusterManager",
        scope: Scope::Admin,
        grants: &[
            (
                On::Cluster,
                &[
                    addShard,
                    appendOplogNote,
                    applicationMessage,
                    checkMetadataConsistency,
                    cleanupOrphaned,
                    flushRouterConfig,
                    getClusterParameter,
                    getDefaultRWConcern,
                    listSessions,
                    listShards,
                    moveCollection,
                    querySettings,
                    queryStatsRead,
                    queryStatsReadTransformed,
                    removeShard,
                    replSetConfigure,
                    replSetGetConfig,
                    replSetGetStatus,
                    replSetStateChange,
                    resync,
                    setClusterParameter,
                    setDefaultRWConcern,
                    setFeatureCompatibilityVersion,
                    transitionFromDedicatedConfigServer,
                    transitionToDedicatedConfigServer,
                    unshardCollection,
                ],
            ),
            (On::AnyNormal, SHARD),
            (On::SystemBuckets, SHARD),
            (On::Any, &[dbCheck]),
            (On::Database("config"), READ),
            (On::Database("config"), SHARD),
            (On::Database("config"), CHANGE),
            (On::Namespace("config", "system.js"), READ),
            (On::Database("local"), SHARD),
            (On::Database("local"), CHANGE),
            (On::Namespace("local", "replset.election"), CHANGE),
            (On::Namespace("local", "replset.minvalid"), CHANGE),
            (On::Namespace("local", "system.healthlog"), READ),
            (On::Namespace("local", "system.replset"), READ),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "clusterMonitor",
        scope: Scope::Admin,
        grants: &[
            (
                On::Cluster,
                &[
                    connPoolStats,
                    getCmdLineOpts,
                    getDefaultRWConcern,
                    getLog,
                    getParameter,
                    getShardMap,
                    hostInfo,
                    inprog,
                    listClusterCatalog,
                    listDatabases,
                    listSampledQueries,
                    listSessions,
                    listShards,
                    netstat,
                    operationMetrics,
                    replSetGetConfig,
                    replSetGetStatus,
                    serverStatus,
                    shardedDataDistribution,
                    shardingState,
                    top,
                    useUUID,
                ],
            ),
            (On::AnyNormal, MONITOR),
            (On::Collection("system.profile"), &[find]),
            (On::Database("config"), READ),
            (On::Database("config"), MONITOR),
            (On::Namespace("config", "system.js"), READ),
            (On::Namespace("config", "system.sessions"), MONITOR),
            (On::Database("local"), READ),
            (On::Database("local"), MONITOR),
            (On::Namespace("local", "system.js"), READ),
            (On::Namespace("local", "replset.election"), &[find]),
            (On::Namespace("local", "replset.minvalid"), &[find]),
            (On::Namespace("local", "system.replset"), &[find]),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "dbAdmin",
        scope: Scope::EveryDatabase,
        grants: &[
            (On::Own, ADMINISTRATE),
            (On::Own, &[configureQueryAnalyzer]),
            (On::OwnCollection("system.profile"), READ),
            (On::OwnCollection("system.profile"), CHANGE_PROFILE),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "dbAdminAnyDatabase",
        scope: Scope::Admin,
        grants: &[
            (On::Cluster, &[applyOps, listDatabases]),
            (On::AnyNormal, ADMINISTRATE),
            (On::AnyNormal, &[configureQueryAnalyzer]),
            (On::Collection("system.profile"), READ),
            (On::Collection("system.profile"), CHANGE_PROFILE),
            (On::SystemBuckets, ADMINISTRATE),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "dbOwner",
        scope: Scope::EveryDatabase,
        grants: &[],
        includes: &["readWrite", "dbAdmin", "userAdmin"],
    },
    BuiltIn {
        name: "directShardOperations",
        scope: Scope::Admin,
        grants: &[(On::Cluster, &[issueDirectShardOperations])],
        includes: &[],
    },
    BuiltIn {
        name: "enableSharding",
        scope: Scope::EveryDatabase,
        grants: &[(
            On::AnyNormal,
            &[
                analyzeShardKey,
                enableSharding,
                moveCollection,
                refineCollectionShardKey,
                reshardCollection,
                unshardCollection,
            ],
        )],
        includes: &[],
    },
    BuiltIn {
        name: "hostManager",
        scope: Scope::Admin,
        grants: &[
            (
                On::Cluster,
                &[
                    applicationMessage,
                    auditConfigure,
                    closeAllDatabases,
                    compact,
                    connPoolSync,
                    dropConnections,
                    flushRouterConfig,
                    fsync,
                    invalidateUserCache,
                    killAnyCursor,
                    killAnySession,
                    killop,
                    logRotate,
                    oidReset,
                    replSetResizeOplog,
                    resync,
                    rotateCertificates,
                    setParameter,
                    shutdown,
                    touch,
                    unlock,
                ],
            ),
            (On::AnyNormal, &[killCursors]),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "read",
        scope: Scope::EveryDatabase,
        grants: &[(On::Own, READ), (On::OwnCollection("system.js"), READ)],
        includes: &[],
    },
    BuiltIn {
        name: "readAnyDatabase",
        scope: Scope::Admin,
        grants: &[
            (On::Cluster, &[listDatabases]),
            (On::AnyNormal, READ),
            (On::Collection("system.js"), READ),
            (On::SystemBuckets, READ),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "readWrite",
        scope: Scope::EveryDatabase,
        grants: &[(On::Own, WRITE), (On::OwnCollection("system.js"), WRITE)],
        includes: &["read"],
    },
    BuiltIn {
        name: "readWriteAnyDatabase",
        scope: Scope::Admin,
        grants: &[
            (On::AnyNormal, WRITE),
            (On::Collection("system.js"), WRITE),
            (On::SystemBuckets, WRITE),
        ],
        includes: &["readAnyDatabase"],
    },
    BuiltIn {
        name: "restore",
        scope: Scope::Admin,
        grants: &[
            (On::Any, &[listCollections]),
            (
                On::Cluster,
                &[bypassWriteBlockingMode, getParameter, setUserWriteBlockMode],
            ),
            (On::AnyNormal, RESTORE),
            (On::AnyNormal, ADMINISTRATE_USERS),
            (On::AnyNormal, &[convertToCapped, createSearchIndexes]),
            (On::SystemBuckets, RESTORE),
            (On::Database("config"), RESTORE),
            (On::Database("local"), RESTORE),
            (On::Collection("system.js"), RESTORE),
            (On::Collection("system.users"), RESTORE),
            (On::Collection("system.users"), &[find, remove, update]),
            (On::Collection("system.views"), &[dropCollection]),
            (On::Namespace("admin", "system.roles"), &[createIndex]),
            (On::Namespace("admin", "system.users"), RESTORE),
            (
                On::Namespace("admin", "system.users"),
                &[find, remove, update],
            ),
            (On::Namespace("admin", "system.version"), RESTORE),
            (On::Namespace("admin", "system.version"), &[find]),
            // mongorestore reads what it is about to merge.
            (On::Namespace("admin", "temproles"), &[find]),
            (On::Namespace("admin", "tempusers"), &[find]),
        ],
        includes: &[],
    },
    BuiltIn {
        name: "root",
        scope: Scope::Admin,
        grants: &[
            (On::Any, &[validate]),
            (On::Namespace("config", "system.preimages"), &[find, remove]),
        ],
        includes: &[
            "backup",
            "clusterAdmin",
            "dbAdminAnyDatabase",
            "readWriteAnyDatabase",
            "restore",
            "userAdminAnyDatabase",
        ],
    },
    BuiltIn {
        name: "userAdmin",
        scope: Scope::EveryDatabase,
        grants: &[(On::Own, ADMINISTRATE_USERS)],
        includes: &[],
    },
    BuiltIn {
        name: "userAdminAnyDatabase",
        scope: Scope::Admin,
        grants: &[
            (
                On::Cluster,
                &[
                    authSchemaUpgrade,
                    invalidateUserCache,
                    listDatabases,
                    viewUser,
                ],
            ),
            (On::AnyNormal, ADMINISTRATE_USERS),
            (On::Database("config"), ADMINISTRATE_USERS),
            (On::Database("local"), ADMINISTRATE_USERS),
            (On::Collection("system.users"), READ),
            (On::Namespace("admin", "system.roles"), READ_USERS),
            (On::Namespace("admin", "system.users"), READ_USERS),
            (On::Namespace("admin", "system.version"), READ),
        ],
        includes: &[],
    },
];

impl On {
    pub fn pattern(self, own: &str) -> Pattern {
        match self {
            On::Cluster => Pattern::Cluster,
            On::Any => Pattern::Any,
            On::AnyNormal => Pattern::AnyNormal,
            On::Own => Pattern::Database(own.to_owned()),
            On::OwnCollection(name) => Pattern::Namespace(own.to_owned(), name.to_owned()),
            On::Database(name) => Pattern::Database(name.to_owned()),
            On::Collection(name) => Pattern::Collection(name.to_owned()),
            On::Namespace(database, name) => {
                Pattern::Namespace(database.to_owned(), name.to_owned())
            }
            On::SystemBuckets => Pattern::SystemBuckets(String::new(), String::new()),
        }
    }
}
