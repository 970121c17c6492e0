//! Privileges: actions on the resources of a pattern.

use std::collections::BTreeMap;

use windrow_document::{Array, ArrayBuf, DocumentBuf, Value, ValueRef, doc};

use crate::action::{Action, ActionSet};
use crate::error::Error;
use crate::fields::Fields;
use crate::resource::{Pattern, Resource};

/// A privilege: actions on the resources of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The resources.
    pub pattern: Pattern,
    /// The actions.
    pub actions: ActionSet,
}

impl Privilege {
    /// Returns `{resource, actions}`.
    pub fn to_document(&self) -> DocumentBuf {
        doc! {
            "resource": (self.pattern.to_document()), "actions": (Value::Array(self.actions.to_array())),
        }
    }

    /// Parses `{resource, actions}`.
    pub fn parse(value: ValueRef<'_>) -> Result<Privilege, Error> {
        let Some(document) = value.as_document() else {
            return Err(Error::Invalid("a privilege must be an object".to_owned()));
        };
        let fields = Fields::new(document, "privilege");
        fields.only(&["resource", "actions"])?;
        let resource = fields.document("resource")?;
        let resource = resource.ok_or_else(|| fields.wrong("resource", "an object"))?;
        let actions = document.get("actions").and_then(ValueRef::as_array);
        let actions = actions.ok_or_else(|| fields.wrong("actions", "an array"))?;
        Ok(Privilege {
            pattern: Pattern::parse(resource)?,
            actions: ActionSet::parse(actions)?,
        })
    }

    /// Parses an array of privileges.
    pub fn parse_list(values: Array<'_>) -> Result<Vec<Privilege>, Error> {
        values.iter().map(Privilege::parse).collect()
    }
}

/// The privileges of a user or role, one for each pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// Those of patterns that include many resources. There are few.
    broad: BTreeMap<Pattern, ActionSet>,
    /// Those of single collections, by database and name.
    exact: BTreeMap<String, BTreeMap<String, ActionSet>>,
}

impl Privileges {
    /// Adds a privilege.
    pub fn add(&mut self, privilege: &Privilege) {
        let actions = match &privilege.pattern {
            Pattern::Namespace(database, name) => {
                let of_database = self.exact.entry(database.clone()).or_default();
                of_database.entry(name.clone()).or_default()
            }
            broad => self.broad.entry(broad.clone()).or_default(),
        };
        *actions = actions.union(privilege.actions);
    }

    /// Removes the actions of a privilege from the privilege with the same pattern.
    pub fn remove(&mut self, privilege: &Privilege) {
        let actions = match &privilege.pattern {
            Pattern::Namespace(database, name) => {
                let of_database = self.exact.get_mut(database);
                of_database.and_then(|it| it.get_mut(name))
            }
            broad => self.broad.get_mut(broad),
        };
        if let Some(actions) = actions {
            *actions = actions.minus(privilege.actions);
        }
    }

    /// Returns `true` if an action on a resource is allowed.
    pub fn allow(&self, resource: &Resource, action: Action) -> bool {
        self.any_on(resource, |actions| actions.allows(action))
    }

    /// Returns `true` if any action on a resource is allowed.
    pub fn allow_any(&self, resource: &Resource) -> bool {
        self.any_on(resource, |actions| !actions.is_empty())
    }

    fn any_on(&self, resource: &Resource, is_enough: impl Fn(ActionSet) -> bool) -> bool {
        let exact = match resource {
            Resource::Namespace(database, name) => {
                self.exact.get(database).and_then(|it| it.get(name))
            }
            _ => None,
        };
        let mut broad = self.broad.iter();
        exact.is_some_and(|actions| is_enough(*actions))
            || broad.any(|(pattern, actions)| is_enough(*actions) && pattern.includes(resource))
    }

    /// Returns `true` if any action on a database or one of its collections is allowed.
    pub fn reach(&self, database: &str) -> bool {
        let mut all = self.iter();
        all.any(|one| !one.actions.is_empty() && one.pattern.reaches(database))
    }

    /// Returns `true` if these privileges include another one.
    pub fn include(&self, privilege: &Privilege) -> bool {
        let mut left = privilege.actions;
        for own in self.iter() {
            if own.pattern == privilege.pattern || own.pattern == Pattern::Any {
                if own.actions.allows_all(left) {
                    return true;
                }
                left = left.minus(own.actions);
            }
        }
        left.is_empty()
    }

    /// Returns all privileges that allow an action.
    pub fn iter(&self) -> impl Iterator<Item = Privilege> {
        let broad = self.broad.iter().map(|(pattern, actions)| Privilege {
            pattern: pattern.clone(),
            actions: *actions,
        });
        let exact = self.exact.iter().flat_map(|(database, collections)| {
            collections.iter().map(|(name, actions)| Privilege {
                pattern: Pattern::Namespace(database.clone(), name.clone()),
                actions: *actions,
            })
        });
        broad.chain(exact).filter(|one| !one.actions.is_empty())
    }

    /// Returns an array of [`Privilege::to_document`].
    pub fn to_array(&self) -> ArrayBuf {
        let documents = self.iter().map(|one| Value::from(one.to_document()));
        documents.collect()
    }
}

impl<'a> Extend<&'a Privilege> for Privileges {
    fn extend<T: IntoIterator<Item = &'a Privilege>>(&mut self, privileges: T) {
        privileges.into_iter().for_each(|one| self.add(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_are_added_and_removed() {
        let privilege = |pattern: Pattern, actions: &[Action]| Privilege {
            pattern,
            actions: ActionSet::new(actions),
        };
        let database = || Pattern::Database("a".into());
        let collection = || Pattern::Namespace("b".into(), "c".into());
        let mut all = Privileges::default();
        all.add(&privilege(database(), &[Action::find]));
        all.add(&privilege(database(), &[Action::insert]));
        all.add(&privilege(collection(), &[Action::find]));
        assert_eq!(all.iter().count(), 2);
        assert!(all.allow(&Resource::namespace("a", "x"), Action::insert));
        assert!(all.allow(&Resource::namespace("b", "c"), Action::find));
        assert!(!all.allow(&Resource::namespace("b", "d"), Action::find));
        assert!(all.allow_any(&Resource::namespace("b", "c")));
        assert!(all.reach("b") && !all.reach("c"));
        assert!(all.include(&privilege(database(), &[Action::find, Action::insert])));
        assert!(!all.include(&privilege(database(), &[Action::remove])));
        all.remove(&privilege(database(), &[Action::find, Action::insert]));
        all.remove(&privilege(collection(), &[Action::insert]));
        assert!(!all.reach("a") && all.reach("b"));
        assert_eq!(all.iter().count(), 1);
    }

    #[test]
    fn documents_are_parsed() {
        let parse = |value: DocumentBuf| Privilege::parse(ValueRef::Document(value.as_document()));
        let one = doc! { "resource": { "cluster": true }, "actions": ["shutdown"] };
        assert_eq!(parse(one.clone()).unwrap().to_document(), one);
        let unknown = doc! { "resource": { "cluster": true }, "actions": ["fly"] };
        assert_eq!(parse(unknown), Err(Error::UnknownAction("fly".into())));
        assert!(parse(doc! { "actions": ["find"] }).is_err());
        assert!(parse(doc! { "resource": { "cluster": true } }).is_err());
        assert!(parse(doc! { "resource": { "cluster": true }, "actions": [1] }).is_err());
    }
}
