//! Access control: users, roles, privileges, and the SCRAM exchange by which users log in.
//!
//! Not for: sockets, storage, or which privileges a command needs. The server stores the documents
//! of users and roles, and asks [`Privileges::allow`].
//!
//! - [`scram`]: both sides of SCRAM-SHA-1 and SCRAM-SHA-256, and the [`Credentials`] that are
//!   stored
//! - [`Action`], [`Resource`], [`Pattern`], [`Privilege`], [`Privileges`]: what users may do
//! - [`built_in`]: MongoDB's built-in roles as a table
//! - [`User`], [`Role`]: the documents of `admin.system.users` and `admin.system.roles`
//! - [`resolve`]: the roles and privileges that follow from roles, with inheritance
//!
//! ```
//! use windrow_access::{Action, Privileges, Resource, RoleName, resolve};
//! let roles = [RoleName::new("read", "kitchen")];
//! let resolved = resolve::<windrow_access::Error>(&roles, |_| Ok(None)).unwrap();
//! let cakes = Resource::namespace("kitchen", "cakes");
//! assert!(resolved.privileges.allow(&cakes, Action::find));
//! assert!(!resolved.privileges.allow(&cakes, Action::insert));
//! ```
//!
//! Modules in reading order:
//!
//! - `error`, `names`
//! - `scram`: `mechanism`, `hash`, `credentials`, `messages`, `server`, `client`
//! - `action`, `resource`, `privilege`, `built_in`
//! - `restrictions`, `role`, `user`, `resolution`
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod action;
pub mod built_in;
mod error;
mod fields;
mod names;
mod privilege;
mod resolution;
mod resource;
mod restrictions;
mod role;
pub mod scram;
mod user;

pub use action::{Action, ActionSet};
pub use error::Error;
pub use names::{RoleName, UserName};
pub use privilege::{Privilege, Privileges};
pub use resolution::{ROLES_MAX, ResolvedRoles, resolve};
pub use resource::{Pattern, Resource};
pub use restrictions::{Endpoints, Restriction, Restrictions};
pub use role::Role;
pub use scram::{Credentials, Mechanism};
pub use user::{EXTERNAL, StoredCredentials, User};
