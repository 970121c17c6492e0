//! What an expression may refer to: names while it is parsed ([`Scope`]), values while it is
//! evaluated ([`Context`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use windrow_document::{Array, Collation, Document, Value, ValueRef};

use windrow_document::collation;

use super::landmarks::Landmarks;
use crate::memory::{LIVE_BYTES_MAX, heap_bytes, within};
use crate::{Error, Meta};

/// Variables from outside the expression: an aggregate's `let`, a `$lookup`'s `let`, and those that a
/// stage defines (`$redact`: DESCEND, PRUNE, KEEP). None is a variable whose value is missing. Copies
/// share the values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    values: BTreeMap<Box<str>, Option<Arc<Value>>>,
    /// The names of those that are the same for the whole command, and stand for constants.
    constants: BTreeSet<Box<str>>,
    /// What all values take.
    bytes: usize,
}

impl Variables {
    pub fn new() -> Variables {
        Variables::default()
    }

    /// Gives a variable its value, in place of one it had.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        self.bytes += value.as_ref().map_or(0, bytes_of);
        self.constants.remove(name);
        if let Some(before) = self.values.insert(name.into(), value.map(Arc::new)) {
            self.bytes -= before.as_deref().map_or(0, bytes_of);
        }
    }

    /// The same with a value that was computed. Error 146 where all of them come to too much.
    pub fn set_computed(&mut self, name: &str, value: Option<Value>) -> Result<(), Error> {
        self.set_within(name, value, LIVE_BYTES_MAX)
    }

    /// The same with a value that the variable has throughout the command.
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
        within("let", self.bytes, bytes_max)
    }

    /// None: no such variable; Some(None): its value is missing.
    pub fn get(&self, name: &str) -> Option<Option<ValueRef<'_>>> {
        let value = self.values.get(name)?;
        Some(value.as_deref().map(Value::as_ref))
    }

    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.constants.contains(name)
    }

    /// Of all of them those that are there without anybody's `let`.
    pub fn of_server(&self) -> Variables {
        let mut of_server = Variables::new();
        if let Some(time) = self.get(CLUSTER_TIME) {
            of_server.set(CLUSTER_TIME, time.map(ValueRef::to_value));
        }
        of_server
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

fn bytes_of(value: &Value) -> usize {
    heap_bytes(value.as_ref())
}

/// The variable that members of replica sets have, of [`Variables`].
pub const CLUSTER_TIME: &str = "CLUSTER_TIME";

/// The names that are known where an expression stands.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    outer: Arc<Variables>,
    locals: Vec<Box<str>>,
    /// Whether what fails of constants alone fails when it is evaluated, not when it is parsed.
    pub(super) constants_may_fail: bool,
}

/// What a variable's name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// `$$CURRENT` and every plain `$path`, as long as no `$let` redefines CURRENT.
    Current,
    Root,
    Now,
    UserRoles,
    Remove,
    /// Defined by `$let`, `$map`, `$filter`, `$reduce` around it: the number of its frame.
    Local(u32),
    /// One of [`Variables`].
    Outer(Box<str>),
}

impl Scope {
    pub fn new() -> Scope {
        Scope::default()
    }

    /// With variables that [`Context::variables`] will hold.
    pub fn with_variables(variables: &Variables) -> Scope {
        Scope {
            outer: Arc::new(variables.clone()),
            locals: Vec::new(),
            constants_may_fail: false,
        }
    }

    /// The same, where what fails of constants alone may be parsed: it fails when it is evaluated.
    pub fn with_failing_constants(self, may_fail: bool) -> Scope {
        Scope {
            constants_may_fail: may_fail,
            ..self
        }
    }

    /// The variables from outside, of which some stand for constants.
    pub(super) fn variables(&self) -> &Variables {
        &self.outer
    }

    /// The scope within, where one more name is known; and the number of its frame.
    pub(crate) fn define(&self, name: &str) -> (Scope, u32) {
        let mut inner = self.clone();
        inner.locals.push(name.into());
        (inner, self.locals.len() as u32)
    }

    /// What the name means here. 17276 where it means nothing, 10071200 for what only members of
    /// replica sets have.
    pub(crate) fn resolve(&self, name: &str) -> Result<Source, Error> {
        if let Some(place) = self.locals.iter().rposition(|local| **local == *name) {
            return Ok(Source::Local(place as u32));
        }
        if self.outer.get(name).is_some() {
            return Ok(Source::Outer(name.into()));
        }
        match name {
            "CURRENT" => Ok(Source::Current),
            "ROOT" => Ok(Source::Root),
            "NOW" => Ok(Source::Now),
            "REMOVE" => Ok(Source::Remove),
            "USER_ROLES" => Ok(Source::UserRoles),
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

/// One variable of a `$let`, `$map`, … that is being evaluated; a list through the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub number: u32,
    pub value: Option<ValueRef<'a>>,
    pub next: Option<&'a Frame<'a>>,
}

/// What `$meta` answers where nothing is known.
static NO_META: LazyLock<Meta> = LazyLock::new(Meta::default);

/// The values that an expression is evaluated with. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// `$$ROOT`.
    pub root: Document<'a>,
    /// `$$CURRENT`: the root, but for `$redact` within subdocuments.
    pub current: Document<'a>,
    pub variables: Option<&'a Variables>,
    /// `$$NOW`, milliseconds since 1970: one value for a whole command.
    pub now: i64,
    pub meta: &'a Meta,
    /// How strings are compared; None: by their bytes.
    pub collation: Option<&'a Collation>,
    pub(crate) frames: Option<&'a Frame<'a>>,
    pub(crate) landmarks: Option<&'a Landmarks<'a>>,
}

impl<'a> Context<'a> {
    /// With `$$ROOT` and nothing else; `now` is 1970.
    pub fn new(root: Document<'a>) -> Context<'a> {
        Context {
            root,
            current: root,
            variables: None,
            now: 0,
            meta: &NO_META,
            collation: None,
            frames: None,
            landmarks: None,
        }
    }

    /// The same for another document.
    pub fn with_root(self, root: Document<'a>) -> Context<'a> {
        Context {
            root,
            current: root,
            ..self
        }
    }

    pub fn with_current(self, current: Document<'a>) -> Context<'a> {
        Context { current, ..self }
    }

    pub fn with_variables(self, variables: &'a Variables) -> Context<'a> {
        Context {
            variables: Some(variables),
            ..self
        }
    }

    pub fn with_now(self, now: i64) -> Context<'a> {
        Context { now, ..self }
    }

    pub fn with_meta(self, meta: &'a Meta) -> Context<'a> {
        Context { meta, ..self }
    }

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

    pub(crate) fn with_landmarks(self, landmarks: &'a Landmarks<'a>) -> Context<'a> {
        Context {
            landmarks: Some(landmarks),
            ..self
        }
    }

    /// The value of a local variable; None where it is missing.
    pub(crate) fn local(&self, number: u32) -> Option<ValueRef<'a>> {
        let mut frame = self.frames?;
        while frame.number != number {
            frame = frame.next?;
        }
        frame.value
    }

    pub(crate) fn source(&self, source: &Source) -> Option<ValueRef<'a>> {
        match source {
            Source::Current => Some(ValueRef::Document(self.current)),
            Source::Root => Some(ValueRef::Document(self.root)),
            Source::Now => Some(ValueRef::DateTime(self.now)),
            // Nobody has a role where nobody logs in.
            Source::UserRoles => Some(ValueRef::Array(Array::EMPTY)),
            Source::Remove => None,
            Source::Local(number) => self.local(*number),
            Source::Outer(name) => self.variables?.get(name)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_computed_anew_counts_once() {
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
