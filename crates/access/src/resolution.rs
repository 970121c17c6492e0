//! The roles and privileges that follow from roles.

use std::collections::BTreeSet;

use crate::built_in;
use crate::error::Error;
use crate::names::RoleName;
use crate::privilege::Privileges;
use crate::restrictions::{Endpoints, Restrictions};
use crate::role::Role;
use crate::user::User;

/// The largest number of roles from which a user or role inherits, directly and indirectly.
pub const ROLES_MAX: usize = 10_000;

/// The roles and privileges that follow from a list of roles.
#[derive(Clone, Debug, Default)]
pub struct ResolvedRoles {
    /// The roles of the list that exist, and those from which they inherit, sorted.
    pub roles: Vec<RoleName>,
    /// The privileges of all these roles.
    pub privileges: Privileges,
    /// The restrictions of all these roles. Each must allow a connection.
    pub restrictions: Vec<Restrictions>,
}

impl ResolvedRoles {
    /// Returns `true` if the restrictions of a user with these roles allow a connection.
    pub fn allow(&self, user: &User, endpoints: Endpoints) -> bool {
        let mut all = self.restrictions.iter().chain([&user.restrictions]);
        all.all(|restrictions| restrictions.allow(endpoints))
    }
}

/// Resolves roles with inheritance. `find` returns a user-defined role. Roles that do not exist are
/// left out, as in MongoDB, and circles do no harm. Fails if `find` does, or if there are too many
/// roles.
pub fn resolve<E: From<Error>>(
    roles: &[RoleName],
    mut find: impl FnMut(&RoleName) -> Result<Option<Role>, E>,
) -> Result<ResolvedRoles, E> {
    let mut seen: BTreeSet<RoleName> = BTreeSet::new();
    let mut open: Vec<RoleName> = roles.to_vec();
    let mut resolved = ResolvedRoles::default();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if seen.len() > ROLES_MAX {
            return Err(Error::TooManyRoles { max: ROLES_MAX }.into());
        }
        if let Some(privileges) = built_in::privileges(&name) {
            resolved.privileges.extend(&privileges);
        } else if let Some(role) = find(&name)? {
            resolved.privileges.extend(&role.privileges);
            if !role.restrictions.is_empty() {
                resolved.restrictions.push(role.restrictions);
            }
            open.extend(role.roles);
        } else {
            continue;
        }
        resolved.roles.push(name);
    }
    resolved.roles.sort();
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, ActionSet};
    use crate::privilege::Privilege;
    use crate::resource::{Pattern, Resource};

    #[test]
    fn roles_inherit() {
        let find = |name: &RoleName| -> Result<Option<Role>, Error> {
            let inherits: &[&str] = match name.role.as_str() {
                "a" => &["b", "nobody"],
                "b" => &["a", "read"],
                _ => return Ok(None),
            };
            let roles = inherits.iter().map(|role| RoleName::new(role, "d"));
            Ok(Some(Role {
                name: name.clone(),
                privileges: vec![Privilege {
                    pattern: Pattern::Namespace("d".into(), name.role.clone()),
                    actions: ActionSet::new(&[Action::insert]),
                }],
                roles: roles.collect(),
                restrictions: Restrictions::default(),
            }))
        };
        let resolved = resolve(&[RoleName::new("a", "d")], find).unwrap();
        let names: Vec<_> = resolved.roles.iter().map(|it| it.role.as_str()).collect();
        assert_eq!(names, ["a", "b", "read"]);
        let allows = |collection: &str, action| {
            let resource = Resource::namespace("d", collection);
            resolved.privileges.allow(&resource, action)
        };
        assert!(allows("a", Action::insert) && allows("b", Action::insert));
        assert!(allows("x", Action::find) && !allows("x", Action::insert));
    }
}
