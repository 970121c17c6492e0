//! Server parameters, which `getParameter` returns and `setParameter` changes while the server
//! runs.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use windrow_collection::Engine;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use crate::access::store::SCHEMA_VERSION;
use crate::arguments::whole;
use crate::sync::lock;
use crate::verbosity::{Component, Verbosity};

/// An entry of the table of parameters.
struct Parameter {
    name: &'static str,
    initial: fn() -> Value,
    /// The accepted values. `None` if it cannot be changed.
    accepts: Option<Accepts>,
    /// `true` if it can only be set at the start.
    at_start: bool,
    /// Passes the value to the engine, if the engine uses it.
    apply: Option<fn(&Engine, i64)>,
}

#[derive(Clone, Copy)]
enum Accepts {
    Flag,
    /// A whole number within limits.
    Whole(i64, i64),
    /// The log verbosity of components, and of the root.
    Verbosity,
    Level,
}

/// Enables commands for tests of applications.
pub const TEST_COMMANDS: &str = "enableTestCommands";

/// The memory of all index builds together, in megabytes.
const BUILD_MEMORY: &str = "maxIndexBuildMemoryUsageMegabytes";

/// Refuses queries that need a collection scan.
pub const NO_TABLE_SCAN: &str = "notablescan";

/// Allows finds and aggregates to write temporary files, unless they set this themselves.
pub const DISK_USE: &str = "allowDiskUseByDefault";

/// Lets clients on the machine create the first user.
pub const LOCALHOST_BYPASS: &str = "enableLocalhostAuthBypass";

/// The time in milliseconds after which a failed login is answered.
pub const FAILED_LOGIN_DELAY: &str = "authFailedDelayMs";

/// The iteration counts of new passwords.
pub const SHA1_ITERATIONS: &str = "scramIterationCount";
pub const SHA256_ITERATIONS: &str = "scramSHA256IterationCount";

/// Records in the audit log that clients may run their commands, too.
pub const AUDIT_SUCCESS: &str = "auditAuthorizationSuccess";

/// Maximum bytes of the tags of a query on encrypted fields.
pub const REWRITE_MEMORY: &str = "internalQueryFLERewriteMemoryLimit";

/// Does not log connections.
pub const QUIET: &str = "quiet";

/// Maximum duration of a transaction in seconds.
pub const TRANSACTION_SECONDS: &str = "transactionLifetimeLimitSeconds";

/// Sorted by name. The names and defaults are MongoDB's, for those that have a meaning here.
const TABLE: &[Parameter] = &[
    set(DISK_USE, Accepts::Flag, || true.into()),
    set(AUDIT_SUCCESS, Accepts::Flag, || false.into()),
    set(FAILED_LOGIN_DELAY, Accepts::Whole(0, 5000), || 50.into()),
    fixed("authSchemaVersion", || SCHEMA_VERSION.into()),
    fixed("authenticationMechanisms", || {
        Value::Array(windrow_document::array!["SCRAM-SHA-1", "SCRAM-SHA-256"])
    }),
    set("cursorTimeoutMillis", Accepts::Whole(1, i64::MAX), || {
        600_000i64.into()
    }),
    Parameter {
        at_start: true,
        ..set(LOCALHOST_BYPASS, Accepts::Flag, || true.into())
    },
    Parameter {
        at_start: true,
        ..set(TEST_COMMANDS, Accepts::Flag, || false.into())
    },
    fixed("featureCompatibilityVersion", || {
        doc! { "version": "8.0" }.into()
    }),
    set(REWRITE_MEMORY, Accepts::Whole(1, i32::MAX as i64), || {
        (14 << 20).into()
    }),
    fixed("localLogicalSessionTimeoutMinutes", || 30.into()),
    set("logComponentVerbosity", Accepts::Verbosity, || Value::Null),
    set("logLevel", Accepts::Level, || Value::Null),
    fixed("maxBSONDepth", || 200.into()),
    Parameter {
        apply: Some(|engine, megabytes| engine.set_build_bytes(megabytes.unsigned_abs() << 20)),
        ..set(BUILD_MEMORY, Accepts::Whole(50, i32::MAX as i64), || {
            200.into()
        })
    },
    Parameter {
        apply: Some(|engine, seconds| {
            engine.set_snapshot_window(Duration::from_secs(seconds.unsigned_abs()));
        }),
        ..set(
            "minSnapshotHistoryWindowInSeconds",
            Accepts::Whole(0, i32::MAX as i64),
            || 300.into(),
        )
    },
    set(NO_TABLE_SCAN, Accepts::Flag, || false.into()),
    set(QUIET, Accepts::Flag, || false.into()),
    set(
        SHA1_ITERATIONS,
        Accepts::Whole(5000, i32::MAX as i64),
        || 10_000.into(),
    ),
    set(
        SHA256_ITERATIONS,
        Accepts::Whole(5000, i32::MAX as i64),
        || 15_000.into(),
    ),
    set(
        TRANSACTION_SECONDS,
        Accepts::Whole(1, i32::MAX as i64),
        || 60.into(),
    ),
    set("ttlMonitorEnabled", Accepts::Flag, || true.into()),
    set(
        "ttlMonitorSleepSecs",
        Accepts::Whole(1, i32::MAX as i64),
        || 60.into(),
    ),
];

const fn fixed(name: &'static str, initial: fn() -> Value) -> Parameter {
    Parameter {
        name,
        initial,
        accepts: None,
        at_start: false,
        apply: None,
    }
}

const fn set(name: &'static str, accepts: Accepts, initial: fn() -> Value) -> Parameter {
    Parameter {
        name,
        initial,
        accepts: Some(accepts),
        at_start: false,
        apply: None,
    }
}

/// The time at which a parameter is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAt {
    Start,
    Runtime,
}

/// A parameter and its value.
pub struct ParameterInfo {
    pub name: &'static str,
    pub value: Value,
    at_start: bool,
    at_runtime: bool,
}

impl ParameterInfo {
    /// Returns `true` if the parameter can be set at this time.
    pub fn is_settable(&self, at: SetAt) -> bool {
        match at {
            SetAt::Start => self.at_start,
            SetAt::Runtime => self.at_runtime,
        }
    }

    /// Returns the details in `getParameter: {showDetails: true}`.
    pub fn details(self) -> DocumentBuf {
        doc! {
            "value": (self.value), "settableAtRuntime": (self.at_runtime),
            "settableAtStartup": (self.at_start),
        }
    }
}

/// Parses a value in a command line: true, false or a whole number.
pub fn parse_parameter_value(text: &str) -> Option<Value> {
    let number = || text.parse::<i64>().ok().map(Value::from);
    text.parse::<bool>().ok().map(Value::from).or_else(number)
}

/// The values of all parameters of a server.
pub struct Parameters {
    values: Mutex<Vec<Value>>,
    /// The names of those that were set.
    set: Mutex<BTreeSet<&'static str>>,
    pub verbosity: Verbosity,
}

impl Parameters {
    /// Creates the initial values for a server with this engine.
    pub fn new(engine: &Engine) -> Parameters {
        let initial = |parameter: &Parameter| match parameter.name {
            BUILD_MEMORY => ((engine.build_bytes() >> 20) as i32).into(),
            _ => (parameter.initial)(),
        };
        Parameters {
            values: Mutex::new(TABLE.iter().map(initial).collect()),
            set: Mutex::default(),
            verbosity: Verbosity::default(),
        }
    }

    /// Returns the value of a parameter. `None` if there is none with this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        let place = place(name)?;
        let value = lock(&self.values).get(place).cloned();
        self.own(TABLE.get(place)?).or(value)
    }

    /// Returns the value of a parameter that is not stored in the table.
    fn own(&self, parameter: &Parameter) -> Option<Value> {
        match parameter.accepts? {
            Accepts::Verbosity => Some(self.verbosity.describe().into()),
            Accepts::Level => Some(self.verbosity.level(Component::ROOT).into()),
            Accepts::Flag | Accepts::Whole(..) => None,
        }
    }

    /// Returns `true` if a flag of the table is on.
    pub fn flag(&self, name: &str) -> bool {
        let flag = self.get(name);
        debug_assert!(flag.is_some(), "no parameter is named {name}");
        flag.is_some_and(|value| value.as_ref().is_truthy())
    }

    /// Returns a number of the table.
    pub fn number(&self, name: &str) -> i64 {
        let number = self.get(name).and_then(|value| whole(value.as_ref()));
        debug_assert!(number.is_some(), "no parameter {name} is a number");
        number.unwrap_or(0)
    }

    /// Fails if there is no parameter with this name.
    pub fn check_name(name: &str) -> Result<(), CommandError> {
        match place(name) {
            Some(_) => Ok(()),
            None => Err(unknown(name)),
        }
    }

    /// Changes a parameter. Returns its old value.
    pub fn set(&self, name: &str, value: ValueRef<'_>, at: SetAt) -> Result<Value, CommandError> {
        let unknown = || unknown(name);
        let place = place(name).ok_or_else(unknown)?;
        let parameter = TABLE.get(place).ok_or_else(unknown)?;
        if parameter.accepts.is_none() || parameter.at_start && at == SetAt::Runtime {
            let at = match at {
                SetAt::Start => "startup",
                SetAt::Runtime => "runtime",
            };
            return Err(CommandError::new(
                ErrorCode::IllegalOperation,
                format!("not allowed to change [{name}] at {at}"),
            ));
        }
        if let Some(was) = self.own(parameter) {
            return self.set_verbosity(parameter, value).map(|()| was);
        }
        let mut values = lock(&self.values);
        let current = values.get_mut(place).ok_or_else(unknown)?;
        let value = accepted(parameter, value, current)?;
        lock(&self.set).insert(parameter.name);
        Ok(std::mem::replace(current, value))
    }

    /// Returns the names of the parameters that were set.
    pub fn names_set(&self) -> BTreeSet<&'static str> {
        lock(&self.set).clone()
    }

    /// Passes the value of a parameter to an engine, if engines use it.
    pub fn apply(&self, engine: &Engine, name: &str) {
        let parameter = place(name).and_then(|place| TABLE.get(place));
        let Some(apply) = parameter.and_then(|parameter| parameter.apply) else {
            return;
        };
        if let Some(number) = self.get(name).and_then(|value| whole(value.as_ref())) {
            apply(engine, number);
        }
    }

    fn set_verbosity(
        &self,
        parameter: &Parameter,
        value: ValueRef<'_>,
    ) -> Result<(), CommandError> {
        if let (Some(Accepts::Verbosity), Some(levels)) = (parameter.accepts, value.as_document()) {
            return self.verbosity.set(levels);
        }
        let name = parameter.name;
        let bad = |message: String| Err(CommandError::new(ErrorCode::BadValue, message));
        let level = value.as_bool().map(i64::from).or_else(|| whole(value));
        match (parameter.accepts, level) {
            (Some(Accepts::Level), Some(level @ 0..=5)) => {
                self.verbosity.set_level(Component::ROOT, level as i32);
                Ok(())
            }
            (Some(Accepts::Level), _) => bad(format!(
                "Invalid value for parameter {name}: it has to be a number from 0 to 5"
            )),
            _ => Err(CommandError::new(
                ErrorCode::TypeMismatch,
                format!("{name} has to be an object"),
            )),
        }
    }

    /// Returns all parameters, sorted by name.
    pub fn all(&self) -> Vec<ParameterInfo> {
        let values = lock(&self.values);
        let shown = |(one, value): (&Parameter, &Value)| ParameterInfo {
            name: one.name,
            value: self.own(one).unwrap_or_else(|| value.clone()),
            // A command line contains no documents.
            at_start: one
                .accepts
                .is_some_and(|it| !matches!(it, Accepts::Verbosity)),
            at_runtime: one.accepts.is_some() && !one.at_start,
        };
        TABLE.iter().zip(values.iter()).map(shown).collect()
    }
}

fn unknown(name: &str) -> CommandError {
    let message =
        format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
    CommandError::new(ErrorCode::InvalidOptions, message)
}

fn place(name: &str) -> Option<usize> {
    TABLE
        .binary_search_by_key(&name, |parameter| parameter.name)
        .ok()
}

/// Converts a value to the type of the parameter.
fn accepted(
    parameter: &Parameter,
    value: ValueRef<'_>,
    current: &Value,
) -> Result<Value, CommandError> {
    let name = parameter.name;
    let bad = |message: String| CommandError::new(ErrorCode::BadValue, message);
    match parameter.accepts {
        // Values of all types are accepted, as in MongoDB.
        Some(Accepts::Flag) => Ok(value.is_truthy().into()),
        Some(Accepts::Whole(least, most)) => match whole(value) {
            Some(number) if !(least..=most).contains(&number) => Err(bad(format!(
                "Invalid value for parameter {name}: {number} is not from {least} to {most}"
            ))),
            Some(number) if matches!(current, Value::Int32(_)) => Ok((number as i32).into()),
            Some(number) => Ok(number.into()),
            None => Err(bad(format!("{name} has to be a number"))),
        },
        // These are not stored in the table, or cannot be changed.
        Some(Accepts::Verbosity | Accepts::Level) | None => Ok(value.to_value()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_collection::EngineOptions;
    use windrow_storage::MemoryDisk;

    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.is_sorted_by_key(|parameter| parameter.name));
    }

    fn engine() -> Arc<Engine> {
        let disk = Arc::new(MemoryDisk::new());
        Engine::open(disk, EngineOptions::with_memory(1 << 30)).unwrap()
    }

    #[test]
    fn parameters_are_set_within_their_limits() {
        let engine = engine();
        let check = |name: &str, value: ValueRef<'_>, expected: Result<Value, i32>| {
            let found = Parameters::new(&engine)
                .set(name, value, SetAt::Runtime)
                .map_err(|error| error.code.number());
            assert_eq!(found, expected, "{name}");
        };
        check("notablescan", ValueRef::Bool(true), Ok(false.into()));
        check("quiet", ValueRef::Bool(true), Ok(false.into()));
        check(
            "cursorTimeoutMillis",
            ValueRef::Double(5.0),
            Ok(600_000i64.into()),
        );
        check("cursorTimeoutMillis", ValueRef::String("x"), Err(2));
        check("cursorTimeoutMillis", ValueRef::Int32(0), Err(2));
        check("foo", ValueRef::Int32(0), Err(72));
        check("maxBSONDepth", ValueRef::Int32(0), Err(20));
        check(TEST_COMMANDS, ValueRef::Bool(true), Err(20));
        check(BUILD_MEMORY, ValueRef::Int32(49), Err(2));
        let parameters = Parameters::new(&engine);
        let set = |name, value| {
            let value = ValueRef::Int64(value);
            parameters.set(name, value, SetAt::Runtime)
        };
        set("logLevel", 2).unwrap();
        assert_eq!(
            (parameters.get("logLevel"), parameters.number("logLevel")),
            (Some(2.into()), 2)
        );
        assert_eq!(set(BUILD_MEMORY, 50), Ok(200.into()));
        parameters.apply(&engine, BUILD_MEMORY);
        assert_eq!(engine.build_bytes(), 50 << 20);
        assert!(parameters.names_set().contains(BUILD_MEMORY));
        let start = |name, text| {
            let value = parse_parameter_value(text).unwrap();
            let set = parameters.set(name, value.as_ref(), SetAt::Start);
            set.map_err(|error| error.code.number())
        };
        assert_eq!(start(TEST_COMMANDS, "1"), Ok(false.into()));
        assert!(parameters.flag(TEST_COMMANDS));
        assert_eq!(start("maxBSONDepth", "1"), Err(20));
        assert_eq!(parse_parameter_value("on"), None);
    }
}
