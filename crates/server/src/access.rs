//! Access control: the user of a client, and what it may do.
//!
//! 1. [`login`]: a client logs in with SCRAM. Its connection then has a user.
//! 2. [`directory`]: the users and roles, as the collections `admin.system.users` and
//!    `admin.system.roles` have them. Each request compares their versions with those that were
//!    read, so a change counts from the next request on, whichever way it was made.
//! 3. [`identification`] finds the [`authority`] of the client of a request: what it may do.
//! 4. [`needs`]: each command states its [`requirement`]. `dispatch` compares both.
//!
//! [`local_user`] is the user of Windrow's own commands. [`pipeline`] states what the stages of
//! pipelines need. [`store`] reads and writes the two collections, [`fake_users`] has the
//! credentials of users that do not exist, [`events`] reports logins and refusals.

mod audited_change;
pub mod authority;
pub mod directory;
pub mod editing;
pub mod events;
pub mod fake_users;
pub mod identification;
pub mod local_user;
pub mod login;
pub mod needs;
pub mod pipeline;
pub mod requirement;
pub mod role_rules;
pub mod sasl;
pub mod store;
pub mod x509;

use windrow_access::RoleName;
use windrow_document::Value;

pub use audited_change::{audited_document, audited_name};
pub use authority::Authority;
pub use directory::Directory;
pub use needs::{AccessRequest, Needs};
pub use requirement::Requirement;

/// Returns an array of `{role, db}`.
pub fn role_documents(roles: &[RoleName]) -> Value {
    let documents = roles.iter().map(|role| Value::from(role.to_document()));
    Value::Array(documents.collect())
}
