//! The rules of user-defined roles.

use windrow_access::{Privilege, Privileges, Role, RoleName, built_in};
use windrow_wire::{CommandError, ErrorCode};

use super::directory::resolve_roles;
use crate::errors::refuse;
use crate::state::State;

/// Fails with BadValue if no role can be created with this name.
pub fn check_name(name: &RoleName) -> Result<(), CommandError> {
    if matches!(name.database.as_str(), "local" | "$external") {
        let message = format!("Cannot create roles in the {} database", name.database);
        return refuse(ErrorCode::BadValue, message);
    }
    if built_in::exists(name) {
        let message = "Cannot create roles with the same name as a built-in role";
        return refuse(ErrorCode::BadValue, message);
    }
    Ok(())
}

/// Fails with InvalidRoleModification if a role of a database other than `admin` reaches beyond its
/// database, or if it inherits from itself.
pub fn check(state: &State, role: &Role) -> Result<(), CommandError> {
    let (database, of_admin) = (role.name.database.as_str(), role.name.database == "admin");
    let invalid = |message: String| refuse(ErrorCode::InvalidRoleModification, message);
    if !of_admin && role.roles.iter().any(|other| other.database != database) {
        return invalid(format!(
            "Roles on the '{database}' database cannot be granted roles from other databases"
        ));
    }
    let is_beyond = |privilege: &Privilege| privilege.pattern.database() != Some(database);
    if !of_admin && role.privileges.iter().any(is_beyond) {
        return invalid(format!(
            "Roles on the '{database}' database cannot be granted privileges that target other \
             databases or the cluster"
        ));
    }
    let inherited = resolve_roles(&state.services.engine, &role.roles)?;
    if inherited.roles.contains(&role.name) || role.roles.contains(&role.name) {
        return invalid(format!(
            "Granting these roles to {} would introduce a cycle in the role graph",
            role.name
        ));
    }
    Ok(())
}

/// Privileges with one for each resource.
pub fn merged<'a>(privileges: impl Iterator<Item = &'a Privilege>) -> Vec<Privilege> {
    let mut merged = Privileges::default();
    merged.extend(privileges);
    merged.iter().collect()
}
