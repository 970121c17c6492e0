//! The commands of the server: one file each, and one table of all.
//!
//! A file has a constant of type [`Command`] and the function that runs it. A new command needs its
//! file and a line in [`COMMANDS`].

pub use hello::next_of_exhaust;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::access::Needs;
use crate::command::{Command, Routing};

mod aggregate;
mod build_info;
mod bulk_write;
mod clone_collection_as_capped;
mod cluster_parameter;
mod coll_mod;
mod coll_stats;
mod compact;
mod configure_fail_point;
mod conn_pool_stats;
mod connection_status;
mod convert_to_capped;
mod count;
mod create;
mod create_indexes;
mod create_role;
mod create_search_indexes;
mod create_user;
mod current_op;
mod data_size;
mod db_hash;
mod db_stats;
#[cfg(test)]
mod definition_tests;
mod delete;
mod distinct;
mod drop;
mod drop_database;
mod drop_indexes;
mod drop_role;
mod drop_search_index;
mod drop_user;
mod end_sessions;
mod explain;
mod feature_compatibility;
mod features;
mod find;
mod find_and_modify;
mod fsync;
mod get_cmd_line_opts;
mod get_log;
mod get_more;
mod get_nonce;
mod get_parameter;
mod hello;
mod host_info;
mod insert;
mod invalidate_user_cache;
mod kill_cursors;
mod kill_op;
mod kill_sessions;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod lock_info;
mod log_application_message;
mod log_rotate;
mod logout;
mod merge_authz_collections;
mod ping;
mod plan_cache;
mod profile;
mod re_index;
mod refresh_sessions;
mod rename_collection;
mod replication;
mod role_changes;
mod roles_info;
mod rotate_certificates;
mod sasl;
mod server_status;
mod set_parameter;
mod shutdown;
mod start_session;
mod step_down;
mod structured_encryption;
mod top;
mod transactions;
mod unsupported;
mod update;
mod update_role;
mod update_search_index;
mod update_user;
mod user_roles;
mod users_info;
mod validate;
mod validate_db_metadata;
mod whats_my_uri;

/// Commands on commands get the table as an argument.
const EXPLAIN: Command = Command {
    routing: Routing::Databases,
    needs: Needs::Computed(|request| explain::requirement(request, find)),
    run: |request, context| explain::run(request, context, find),
    ..explain::EXPLAIN
};
const LIST_COMMANDS: Command = Command {
    run: |_, context| list_commands::run(COMMANDS, context),
    routing: Routing::Here,
    ..list_commands::LIST_COMMANDS
};

/// Sorted by name.
pub static COMMANDS: &[&Command] = &[
    &merge_authz_collections::MERGE_AUTHZ_COLLECTIONS,
    &transactions::ABORT_TRANSACTION,
    &aggregate::AGGREGATE,
    &sasl::AUTHENTICATE,
    &unsupported::AUTO_COMPACT,
    &build_info::BUILD_INFO,
    &bulk_write::BULK_WRITE,
    &structured_encryption::CLEANUP_STRUCTURED_ENCRYPTION_DATA,
    &clone_collection_as_capped::CLONE_COLLECTION_AS_CAPPED,
    &coll_mod::COLL_MOD,
    &coll_stats::COLL_STATS,
    &transactions::COMMIT_TRANSACTION,
    &compact::COMPACT,
    &structured_encryption::COMPACT_STRUCTURED_ENCRYPTION_DATA,
    &configure_fail_point::CONFIGURE_FAIL_POINT,
    &connection_status::CONNECTION_STATUS,
    &conn_pool_stats::CONN_POOL_STATS,
    &convert_to_capped::CONVERT_TO_CAPPED,
    &count::COUNT,
    &create::CREATE,
    &create_indexes::CREATE_INDEXES,
    &create_role::CREATE_ROLE,
    &create_search_indexes::CREATE_SEARCH_INDEXES,
    &create_user::CREATE_USER,
    &current_op::CURRENT_OP,
    &data_size::DATA_SIZE,
    &db_hash::DB_HASH,
    &db_stats::DB_STATS,
    &delete::DELETE,
    &distinct::DISTINCT,
    &drop::DROP,
    &drop_role::DROP_ALL_ROLES_FROM_DATABASE,
    &drop_user::DROP_ALL_USERS_FROM_DATABASE,
    &conn_pool_stats::DROP_CONNECTIONS,
    &drop_database::DROP_DATABASE,
    &drop_indexes::DROP_INDEXES,
    &drop_role::DROP_ROLE,
    &drop_search_index::DROP_SEARCH_INDEX,
    &drop_user::DROP_USER,
    &end_sessions::END_SESSIONS,
    &EXPLAIN,
    &features::FEATURES,
    &find::FIND,
    &find_and_modify::FIND_AND_MODIFY,
    &fsync::FSYNC,
    &fsync::FSYNC_UNLOCK,
    &cluster_parameter::GET_CLUSTER_PARAMETER,
    &get_cmd_line_opts::GET_CMD_LINE_OPTS,
    &replication::GET_DEFAULT_RW_CONCERN,
    &get_log::GET_LOG,
    &get_more::GET_MORE,
    &get_nonce::GET_NONCE,
    &get_parameter::GET_PARAMETER,
    &role_changes::GRANT_PRIVILEGES_TO_ROLE,
    &role_changes::GRANT_ROLES_TO_ROLE,
    &user_roles::GRANT_ROLES_TO_USER,
    &hello::HELLO,
    &host_info::HOST_INFO,
    &insert::INSERT,
    &invalidate_user_cache::INVALIDATE_USER_CACHE,
    &hello::IS_MASTER,
    &kill_sessions::KILL_ALL_SESSIONS,
    &kill_sessions::KILL_ALL_SESSIONS_BY_PATTERN,
    &kill_cursors::KILL_CURSORS,
    &kill_op::KILL_OP,
    &kill_sessions::KILL_SESSIONS,
    &list_collections::LIST_COLLECTIONS,
    &LIST_COMMANDS,
    &list_databases::LIST_DATABASES,
    &list_indexes::LIST_INDEXES,
    &unsupported::LIST_SEARCH_INDEXES,
    &lock_info::LOCK_INFO,
    &log_application_message::LOG_APPLICATION_MESSAGE,
    &logout::LOGOUT,
    &log_rotate::LOG_ROTATE,
    &unsupported::MAP_REDUCE,
    &ping::PING,
    &plan_cache::PLAN_CACHE_CLEAR,
    &plan_cache::PLAN_CACHE_CLEAR_FILTERS,
    &plan_cache::PLAN_CACHE_LIST_FILTERS,
    &plan_cache::PLAN_CACHE_SET_FILTER,
    &transactions::PREPARE_TRANSACTION,
    &profile::PROFILE,
    &refresh_sessions::REFRESH_SESSIONS,
    &re_index::RE_INDEX,
    &rename_collection::RENAME_COLLECTION,
    &replication::REPL_SET_GET_CONFIG,
    &replication::REPL_SET_GET_STATUS,
    &step_down::REPL_SET_STEP_DOWN,
    &role_changes::REVOKE_PRIVILEGES_FROM_ROLE,
    &role_changes::REVOKE_ROLES_FROM_ROLE,
    &user_roles::REVOKE_ROLES_FROM_USER,
    &roles_info::ROLES_INFO,
    &rotate_certificates::ROTATE_CERTIFICATES,
    &sasl::SASL_CONTINUE,
    &sasl::SASL_START,
    &server_status::SERVER_STATUS,
    &cluster_parameter::SET_CLUSTER_PARAMETER,
    &feature_compatibility::SET_FEATURE_COMPATIBILITY_VERSION,
    &set_parameter::SET_PARAMETER,
    &shutdown::SHUTDOWN,
    &start_session::START_SESSION,
    &top::TOP,
    &update::UPDATE,
    &update_role::UPDATE_ROLE,
    &update_search_index::UPDATE_SEARCH_INDEX,
    &update_user::UPDATE_USER,
    &users_info::USERS_INFO,
    &validate::VALIDATE,
    &validate_db_metadata::VALIDATE_DB_METADATA,
    &whats_my_uri::WHATS_MY_URI,
];

/// A command that does not state what it needs does not compile.
const _: () = {
    let mut left = COMMANDS;
    while let [command, rest @ ..] = left {
        assert!(
            command.needs.is_stated(),
            "a command does not state what it needs"
        );
        left = rest;
    }
};

/// Returns the command with this name or alias.
pub fn find(name: &str) -> Option<&'static Command> {
    static BY_NAME: OnceLock<HashMap<&str, &Command>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let named = |command: &&'static Command| {
            let command: &'static Command = command;
            let names = std::iter::once(command.name).chain(command.aliases.iter().copied());
            names.map(move |name| (name, command))
        };
        COMMANDS.iter().flat_map(named).collect()
    });
    by_name.get(name).copied()
}

/// Returns the arguments of a command with passwords. Of a command that the server does not have,
/// such as a misspelt one, these are the arguments that have passwords in any command.
pub fn secret_arguments(name: &str) -> &'static [&'static str] {
    static ALL: OnceLock<Vec<&str>> = OnceLock::new();
    let all = || {
        let secrets = COMMANDS.iter().flat_map(|command| command.secrets);
        secrets.copied().collect()
    };
    match find(name) {
        Some(command) => command.secrets,
        None => ALL.get_or_init(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_commands_hide_passwords_too() {
        assert_eq!(secret_arguments("createUser"), ["pwd"]);
        assert!(secret_arguments("find").is_empty());
        for name in ["pwd", "payload", "key"] {
            assert!(secret_arguments("createuser").contains(&name), "{name}");
        }
    }

    #[test]
    fn the_table_is_in_order_and_complete() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name.to_lowercase()));
        for command in COMMANDS {
            assert!(!command.help.is_empty(), "{}", command.name);
            for name in command.aliases.iter().chain([&command.name]) {
                assert_eq!(find(name).unwrap().name, command.name);
            }
        }
    }
}
