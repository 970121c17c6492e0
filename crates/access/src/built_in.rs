//! MongoDB's built-in roles, as its manual lists them.

mod table;

use crate::action::ActionSet;
use crate::names::RoleName;
use crate::privilege::{Privilege, Privileges};
use table::{BuiltIn, ROLES, Scope};

fn find_role(name: &RoleName) -> Option<&'static BuiltIn> {
    let exists = |role: &&BuiltIn| match role.scope {
        Scope::EveryDatabase => name.database != "$external",
        Scope::Admin => name.database == "admin",
    };
    let role = ROLES.iter().find(|role| role.name == name.role);
    role.filter(exists)
}

/// Returns `true` if a role is built in.
pub fn exists(name: &RoleName) -> bool {
    find_role(name).is_some()
}

/// Returns the names of the built-in roles of a database, sorted.
pub fn names(database: &str) -> Vec<RoleName> {
    let names = ROLES.iter().map(|role| RoleName::new(role.name, database));
    names.filter(exists).collect()
}

/// Returns the privileges of a built-in role, including those of the roles that it includes. `None`
/// if there is no such role.
pub fn privileges(name: &RoleName) -> Option<Vec<Privilege>> {
    let role = find_role(name)?;
    let mut all = Privileges::default();
    add(role, &name.database, &mut all);
    Some(all.iter().collect())
}

fn add(role: &BuiltIn, database: &str, all: &mut Privileges) {
    for (on, actions) in role.grants {
        all.add(&Privilege {
            pattern: on.pattern(database),
            actions: ActionSet::new(actions),
        });
    }
    let included = role
        .includes
        .iter()
        .map(|name| RoleName::new(name, database));
    included
        .filter_map(|name| find_role(&name))
        .for_each(|role| add(role, database, all));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action::*;
    use crate::resource::Resource;

    #[test]
    fn the_table_is_consistent() {
        assert!(ROLES.is_sorted_by_key(|role| role.name));
        for role in ROLES {
            for included in role.includes {
                let database = if role.scope == Scope::Admin {
                    "admin"
                } else {
                    "d"
                };
                assert!(exists(&RoleName::new(included, database)), "{included}");
            }
        }
        let names = |database: &str| {
            let names = names(database).into_iter();
            names.map(|name| name.role).collect::<Vec<_>>()
        };
        let everywhere = [
            "dbAdmin",
            "dbOwner",
            "enableSharding",
            "read",
            "readWrite",
            "userAdmin",
        ];
        assert_eq!(names("d"), everywhere);
        assert_eq!(names("admin").len(), ROLES.len());
        assert!(names("$external").is_empty());
    }

    #[test]
    fn roles_allow_what_the_manual_says() {
        let check = |role: &str, database: &str, resource: Resource, action, expected: bool| {
            let found = privileges(&RoleName::new(role, database)).unwrap();
            let mut all = Privileges::default();
            all.extend(&found);
            assert_eq!(
                all.allow(&resource, action),
                expected,
                "{role} {resource:?} {action:?}"
            );
        };
        let of = Resource::namespace;
        check("read", "a", of("a", "c"), find, true);
        check("read", "a", of("b", "c"), find, false);
        check("read", "a", of("a", "system.js"), find, true);
        check("read", "a", of("a", "system.profile"), find, false);
        check("readWrite", "a", of("a", "c"), insert, true);
        check("readWrite", "a", of("a", "c"), find, true);
        check("readWrite", "a", of("a", "c"), collMod, false);
        check("dbAdmin", "a", of("a", "c"), find, false);
        check("dbAdmin", "a", of("a", "system.profile"), find, true);
        check("dbOwner", "a", Resource::database("a"), createUser, true);
        check("readAnyDatabase", "admin", of("config", "c"), find, false);
        check("clusterMonitor", "admin", of("config", "c"), find, true);
        check("root", "admin", of("admin", "system.users"), find, true);
        check("root", "admin", Resource::Cluster, shutdown, true);
        check("root", "admin", of("a", "system.x"), insert, false);
        check("__system", "admin", of("a", "system.x"), insert, true);
        assert_eq!(privileges(&RoleName::new("root", "a")), None);
    }
}
