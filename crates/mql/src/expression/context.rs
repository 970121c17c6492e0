//! The environment of an expression: the names that are known while parsing ([`Scope`]), and the
//! values during evaluation ([`Context`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use windrow_document::{Array, Collation, Document, Value, ValueRef};

use windrow_document::collation;

use super::offset_cache::OffsetCache;
use super::search_metadata::{SEARCH_META, SearchMetadata};
use crate::memory::{LIVE_BYTES_MAX, check_limit, heap_bytes};
use crate::{Error, Meta};

/// Variables that are defined outside of the expression: the `let` of an aggregate or a `$lookup`,
/// and the variables of a stage (`$redact`: DESCEND, PRUNE, KEEP). `None` is a variable whose value
/// is missing. Clones share the values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    values: BTreeMap<Box<str>, Option<Arc<Value>>>,
    /// The names of variables that keep their value during the whole command and count as
    /// constants.
    constants: BTreeSet<Box<str>>,
    /// The heap memory of all values.
    bytes: usize,
    /// `$$SEARCH_META`, in pipelines that begin with `$search`.
    search: Option<Arc<SearchMetadata>>,
    /// `$$USER_ROLES`, if the user is known.
    user_roles: Option<Arc<Value>>,
}

/// The value of a variable that is defined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VariableValue<'v> {
    /// The variable has no value, as a field that does not exist.
    Missing,
    /// The variable has this value.
    Present(ValueRef<'v>),
}

impl<'v> VariableValue<'v> {
    fn present(self) -> Option<ValueRef<'v>> {
        match self {
            VariableValue::Missing => None,
            VariableValue::Present(value) => Some(value),
        }
    }
}

impl<'v> From<Option<ValueRef<'v>>> for VariableValue<'v> {
    fn from(value: Option<ValueRef<'v>>) -> VariableValue<'v> {
        value.map_or(VariableValue::Missing, VariableValue::Present)
    }
}

impl Variables {
    /// Creates an empty set of variables.
    pub fn new() -> Variables {
        Variables::default()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        self.bytes += value.as_ref().map_or(0, bytes_of);
        self.constants.remove(name);
        if let Some(before) = self.values.insert(name.into(), value.map(Arc::new)) {
            self.bytes -= before.as_deref().map_or(0, bytes_of);
        }
    }

    /// Sets a variable to a computed value. Fails with 146 if all values together are too large.
    pub fn set_computed(&mut self, name: &str, value: Option<Value>) -> Result<(), Error> {
        self.set_within(name, value, LIVE_BYTES_MAX)
    }

    /// Sets a variable that keeps its value during the whole command. Fails as
    /// [`Variables::set_computed`] does.
    pub fn set_constant(&mut self, name: &str, value: Option<Value>) -> Result<(), Error> {
        self.set_computed(name, value)?;
        self.constants.insert(name.into());
        Ok(())
    }

    fn set_within(
        &mut self,
        name: &str,
        value: Option<Value>,
        bytes_max: usize,
    ) -> Result<(), Error> {
        self.set(name, value);
        check_limit("let", self.bytes, bytes_max)
    }

    /// Returns the value of a variable. `None` if the variable is not defined.
    pub fn get(&self, name: &str) -> Option<VariableValue<'_>> {
        if name == SEARCH_META
            && let Some(search) = &self.search
        {
            return Some(search.get().into());
        }
        if name == USER_ROLES
            && let Some(roles) = &self.user_roles
        {
            return Some(VariableValue::Present(Value::as_ref(roles)));
        }
        let value = self.values.get(name)?;
        Some(value.as_deref().map(Value::as_ref).into())
    }

    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.constants.contains(name) || (name == USER_ROLES && self.user_roles.is_some())
    }

    /// Sets `$$USER_ROLES`, which is an empty array otherwise.
    pub fn set_user_roles(&mut self, roles: Option<Arc<Value>>) {
        self.user_roles = roles;
    }

    /// Returns the variables that the server defines, without those of a `let`.
    pub fn server_variables(&self) -> Variables {
        let mut server_variables = Variables {
            user_roles: self.user_roles.clone(),
            ..Variables::default()
        };
        if let Some(time) = self.get(CLUSTER_TIME) {
            let time = time.present().map(ValueRef::to_value);
            server_variables.set(CLUSTER_TIME, time);
        }
        server_variables
    }

    /// Returns `true` if there are no variables.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.search.is_none()
    }

    /// Returns the metadata of the search that the pipeline begins with.
    pub fn search(&self) -> Option<&Arc<SearchMetadata>> {
        self.search.as_ref()
    }

    /// Returns the same variables, with the metadata of the search that another pipeline begins
    /// with, if it does.
    #[must_use]
    pub fn with_search_of(&self, other: &Variables) -> Variables {
        let search = other.search.as_ref().or(self.search.as_ref());
        Variables {
            search: search.cloned(),
            ..self.clone()
        }
    }

    /// Returns the same variables for a pipeline that begins with a search.
    #[must_use]
    pub fn with_search(&self) -> Variables {
        Variables {
            search: Some(Arc::default()),
            ..self.clone()
        }
    }
}

fn bytes_of(value: &Value) -> usize {
    heap_bytes(value.as_ref())
}

/// The roles of the user.
const USER_ROLES: &str = "USER_ROLES";

/// A variable in [`Variables`] that is defined on members of replica sets.
pub const CLUSTER_TIME: &str = "CLUSTER_TIME";

/// The names that are known where an expression is written.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    outer: Arc<Variables>,
    locals: Vec<Box<str>>,
    /// `true` if an expression that fails for constant operands fails during evaluation instead of
    /// parsing.
    pub(super) constants_may_fail: bool,
}

/// The value that a variable name refers to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum VariableSource {
    /// `$$CURRENT`, and every plain `$path` unless a `$let` redefines CURRENT.
    Current,
    Root,
    Now,
    /// `$$USER_ROLES` if no user is known: an empty array.
    UserRoles,
    Remove,
    /// The frame number of a variable that a surrounding `$let`, `$map`, `$filter` or `$reduce`
    /// defines.
    Local(u32),
    /// One of [`Variables`].
    Outer(Box<str>),
}

impl Scope {
    /// Creates a scope with the system variables only.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Returns a scope with variables that [`Context::variables`] will contain.
    pub fn with_variables(variables: &Variables) -> Scope {
        Scope {
            outer: Arc::new(variables.clone()),
            locals: Vec::new(),
            constants_may_fail: false,
        }
    }

    /// Returns the scope in which an expression that fails for constant operands may be parsed. It
    /// then fails during evaluation.
    pub fn with_failing_constants(self, may_fail: bool) -> Scope {
        Scope {
            constants_may_fail: may_fail,
            ..self
        }
    }

    /// Returns the variables that are defined outside of the expression.
    pub(super) fn variables(&self) -> &Variables {
        &self.outer
    }

    /// Returns the inner scope with one more variable, and the number of its frame.
    pub(crate) fn define(&self, name: &str) -> (Scope, u32) {
        let mut inner = self.clone();
        inner.locals.push(name.into());
        (inner, self.locals.len() as u32)
    }

    /// Resolves a variable name.
    ///
    /// # Errors
    ///
    /// - 17276: the variable is not defined.
    /// - 10071200: the variable exists on members of replica sets only.
    pub(crate) fn resolve(&self, name: &str) -> Result<VariableSource, Error> {
        if let Some(index) = self.locals.iter().rposition(|local| **local == *name) {
            return Ok(VariableSource::Local(index as u32));
        }
        if name == SEARCH_META
            && let Some(search) = self.outer.search()
        {
            search.record_reader();
        }
        if self.outer.get(name).is_some() {
            return Ok(VariableSource::Outer(name.into()));
        }
        match name {
            SEARCH_META => Err(Error::new(
                6_347_902,
                "$$SEARCH_META is not available: the pipeline does not begin with $search",
            )),
            "CURRENT" => Ok(VariableSource::Current),
            "ROOT" => Ok(VariableSource::Root),
            "NOW" => Ok(VariableSource::Now),
            "REMOVE" => Ok(VariableSource::Remove),
            USER_ROLES => Ok(VariableSource::UserRoles),
            CLUSTER_TIME => Err(Error::new(
                10_071_200,
                "Builtin variable '$$CLUSTER_TIME' is not available",
            )),
            _ => Err(Error::new(
                17276,
                format!("Use of undefined variable: {name}"),
            )),
        }
    }
}

/// A variable of a `$let`, `$map`, … during its evaluation. Frames are a linked list on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub number: u32,
    pub value: Option<ValueRef<'a>>,
    pub next: Option<&'a Frame<'a>>,
}

/// The metadata of a document about which nothing is known.
static NO_META: LazyLock<Meta> = LazyLock::new(Meta::default);

/// The values that an expression reads. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// `$$ROOT`.
    pub root: Document<'a>,
    /// `$$CURRENT`. It is the root except in `$redact` within subdocuments.
    pub current: Document<'a>,
    /// The variables that are defined outside of the expression.
    pub variables: Option<&'a Variables>,
    /// `$$NOW` in milliseconds since 1970. One value for a whole command.
    pub now: i64,
    /// The metadata that `$meta` reads.
    pub meta: &'a Meta,
    /// The collation of string comparisons. `None` compares bytes.
    pub collation: Option<&'a Collation>,
    pub(crate) frames: Option<&'a Frame<'a>>,
    pub(crate) offset_cache: Option<&'a OffsetCache<'a>>,
}

impl<'a> Context<'a> {
    /// Creates a context with a document and without variables. `now` is 0.
    pub fn new(root: Document<'a>) -> Context<'a> {
        Context {
            root,
            current: root,
            variables: None,
            now: 0,
            meta: &NO_META,
            collation: None,
            frames: None,
            offset_cache: None,
        }
    }

    /// Returns the same context for another document.
    pub fn with_root(self, root: Document<'a>) -> Context<'a> {
        Context {
            root,
            current: root,
            ..self
        }
    }

    /// Returns the same context with another `$$CURRENT`.
    pub fn with_current(self, current: Document<'a>) -> Context<'a> {
        Context { current, ..self }
    }

    /// Returns the same context with variables.
    pub fn with_variables(self, variables: &'a Variables) -> Context<'a> {
        Context {
            variables: Some(variables),
            ..self
        }
    }

    /// Returns the same context with another `$$NOW`, in milliseconds since 1970.
    pub fn with_now(self, now: i64) -> Context<'a> {
        Context { now, ..self }
    }

    /// Returns the same context with metadata.
    pub fn with_meta(self, meta: &'a Meta) -> Context<'a> {
        Context { meta, ..self }
    }

    /// Returns the same context with a collation. `None` compares bytes.
    pub fn with_collation(self, collation: Option<&'a Collation>) -> Context<'a> {
        Context { collation, ..self }
    }

    pub(crate) fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        collation::compare(self.collation, one, other)
    }

    pub(crate) fn equals(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
        self.compare(one, other).is_eq()
    }

    pub(crate) fn with_frame(self, frame: &'a Frame<'a>) -> Context<'a> {
        Context {
            frames: Some(frame),
            ..self
        }
    }

    pub(crate) fn with_offset_cache(self, offset_cache: &'a OffsetCache<'a>) -> Context<'a> {
        Context {
            offset_cache: Some(offset_cache),
            ..self
        }
    }

    /// Returns the value of a local variable, or `None` if it is missing.
    pub(crate) fn local(&self, number: u32) -> Option<ValueRef<'a>> {
        let mut frame = self.frames?;
        while frame.number != number {
            frame = frame.next?;
        }
        frame.value
    }

    pub(crate) fn source(&self, source: &VariableSource) -> Option<ValueRef<'a>> {
        match source {
            VariableSource::Current => Some(ValueRef::Document(self.current)),
            VariableSource::Root => Some(ValueRef::Document(self.root)),
            VariableSource::Now => Some(ValueRef::DateTime(self.now)),
            // The roles of the user are not known here, so there are none.
            VariableSource::UserRoles => Some(ValueRef::Array(Array::EMPTY)),
            VariableSource::Remove => None,
            VariableSource::Local(number) => self.local(*number),
            VariableSource::Outer(name) => self.variables?.get(name)?.present(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_again_counts_once() {
        let mut variables = Variables::new();
        let mut set = |name: &str| {
            let text = Some(Value::from("x".repeat(100)));
            variables.set_within(name, text, 250)
        };
        for _ in 0..4 {
            set("v").unwrap();
        }
        set("w").unwrap();
        assert_eq!(set("x").unwrap_err().code, 146);
    }
}
