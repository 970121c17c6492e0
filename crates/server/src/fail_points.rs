//! Fail points: let commands fail, wait or lose their connection, for tests of applications. They
//! exist only if `enableTestCommands` is on.
//!
//! Source: the tests of MongoDB's driver specifications, which describe `failCommand`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use windrow_document::{Document, DocumentBuf, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::arguments::Arguments;
use crate::client::Client;
use crate::random;
use crate::sync::lock;

/// The known fail points.
const NAMES: [&str; 4] = [FAIL_COMMAND, FAIL_GET_MORE, TIME_OUT, RETRYABLE_WRITE];
/// Affects commands before they run.
const FAIL_COMMAND: &str = "failCommand";
/// Affects `getMore` after it has taken its cursor.
pub const FAIL_GET_MORE: &str = "failGetMoreAfterCursorCheckout";
/// Lets time limits expire immediately.
const TIME_OUT: &str = "maxTimeAlwaysTimeOut";
/// Affects statements of retryable writes before they run.
pub const RETRYABLE_WRITE: &str = "onPrimaryTransactionalWrite";

/// All fail points of a server.
#[derive(Debug, Default)]
pub struct FailPoints {
    /// `false` if no fail point is on, for a fast check in each command.
    armed: AtomicBool,
    points: Mutex<[Point; NAMES.len()]>,
}

#[derive(Clone, Debug, Default)]
struct Point {
    mode: Mode,
    data: Data,
    /// The number of times it was reached.
    met: i64,
}

/// The number of times that a fail point has an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mode {
    #[default]
    Off,
    AlwaysOn,
    /// This many times.
    Times(i64),
    /// Always, except for this many first times.
    Skip(i64),
    Probability(f64),
}

/// The commands that a fail point affects, and its effect.
#[derive(Clone, Debug, Default)]
pub struct Data {
    commands: Vec<String>,
    application: Option<String>,
    namespace: Option<String>,
    effect: Effect,
}

/// The effect of a fail point on a command.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// The time that the command waits first.
    pub waits: Duration,
    /// `true` if the connection is closed without a reply.
    pub closes_connection: bool,
    /// The error that is returned instead of running the command.
    pub error: Option<CommandError>,
    /// The labels of the error, in place of its own.
    pub labels: Option<Vec<String>>,
    /// The write concern error in the reply of a command that has run.
    pub concern_error: Option<DocumentBuf>,
}

/// A parsed `configureFailPoint`.
pub struct FailPointSettings {
    /// One of [`NAMES`].
    name: &'static str,
    mode: Mode,
    data: Data,
}

impl FailPointSettings {
    /// Parses the arguments of the command. Fails with FailPointSetFailed for an unknown name.
    pub fn parse(arguments: &Arguments<'_>) -> Result<FailPointSettings, CommandError> {
        let name = arguments.string("configureFailPoint")?.unwrap_or_default();
        let known = NAMES.into_iter().find(|known| *known == name);
        let name = known.ok_or_else(|| {
            CommandError::new(ErrorCode::FailPointSetFailed, format!("{name} not found"))
        })?;
        let mode = Mode::parse(arguments.present("mode"))?;
        let data = arguments.document("data")?.unwrap_or(Document::EMPTY);
        let data = match name {
            FAIL_COMMAND => Data::parse(data)?,
            FAIL_GET_MORE => Data::parse_get_more(data)?,
            RETRYABLE_WRITE => Data::parse_retryable_writes(data)?,
            _ => Data::default(),
        };
        Ok(FailPointSettings { name, mode, data })
    }

    /// Returns the name of the fail point.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl FailPoints {
    /// Sets a fail point. Returns the number of times it was reached before.
    pub fn configure(&self, settings: FailPointSettings) -> i64 {
        let mut points = lock(&self.points);
        let place = NAMES.iter().position(|known| *known == settings.name);
        let met = match place.and_then(|place| points.get_mut(place)) {
            None => 0,
            Some(point) => {
                point.mode = settings.mode;
                point.data = settings.data;
                point.met
            }
        };
        let is_armed = points.iter().any(|point| point.mode != Mode::Off);
        self.armed.store(is_armed, Relaxed);
        met
    }

    /// Returns the effect on a command that is about to run.
    pub fn meet(&self, subject: &FailPointCommand<'_>) -> Option<Effect> {
        match subject.request.command() {
            "configureFailPoint" => None,
            _ => self.meet_named(FAIL_COMMAND, |data| data.meets(subject)),
        }
    }

    /// Returns the effect of this fail point, if it affects the caller.
    pub fn meet_named(&self, name: &str, is_meant: impl Fn(&Data) -> bool) -> Option<Effect> {
        if !self.armed.load(Relaxed) {
            return None;
        }
        let mut points = lock(&self.points);
        let place = NAMES.iter().position(|known| *known == name)?;
        let point = points.get_mut(place)?;
        let acts = point.mode != Mode::Off && is_meant(&point.data) && point.acts();
        acts.then(|| point.data.effect.clone())
    }

    /// Returns the time limit of a command, possibly changed by a fail point.
    pub fn limit(&self, limit: Option<Duration>) -> Option<Duration> {
        match limit.and_then(|_| self.meet_named(TIME_OUT, |_| true)) {
            Some(_) => Some(Duration::ZERO),
            None => limit,
        }
    }
}

/// A command that may reach a fail point.
pub struct FailPointCommand<'a> {
    pub client: &'a Client,
    pub request: &'a Request,
    /// Returns `true` for a name of the command.
    pub is_called: &'a dyn Fn(&str) -> bool,
}

impl<'a> FailPointCommand<'a> {
    /// Returns the application name of the client. The first message of a client contains it.
    fn application(&self) -> Option<&'a str> {
        let introduced = || {
            let client = self.request.get("client")?.as_document()?;
            let application = client.get("application")?.as_document()?;
            application.get("name")?.as_str()
        };
        self.client.application().or_else(introduced)
    }

    fn is_of(&self, namespace: &str) -> bool {
        let named = self.request.body().first();
        let collection = match named {
            Some(("getMore", _)) => self.request.get("collection"),
            named => named.map(|(_, value)| value),
        };
        let collection = collection.and_then(ValueRef::as_str);
        let own = collection.map(|name| (self.request.database(), name));
        own.is_some() && namespace.split_once('.') == own
    }
}

impl Point {
    /// Returns `true` if the fail point has an effect this time.
    fn acts(&mut self) -> bool {
        let acts = self.mode.acts();
        self.met += i64::from(acts);
        acts
    }
}

/// Returns the error with the code in a field. `information` has its additional fields.
fn error(
    data: &Arguments<'_>,
    name: &str,
    information: Option<Document<'_>>,
) -> Result<Option<CommandError>, CommandError> {
    let Some(code) = data.whole_number(name)? else {
        return Ok(None);
    };
    let code = i32::try_from(code).map_err(|_| {
        let message = format!("'{name}' must be a code of an error, not {code}");
        CommandError::new(ErrorCode::BadValue, message)
    })?;
    let message = format!("Failing command via failpoint: '{name}' is set");
    let mut error = CommandError::new(ErrorCode(code), message);
    for (name, value) in information.into_iter().flatten() {
        error.extra.push(name, value);
    }
    Ok(Some(error))
}

impl Mode {
    fn parse(mode: Option<ValueRef<'_>>) -> Result<Mode, CommandError> {
        let bad = |message: String| CommandError::new(ErrorCode::BadValue, message);
        let mode = match mode {
            None => {
                let message = "When setting a failpoint, you must supply a 'mode'";
                return Err(CommandError::new(ErrorCode::IllegalOperation, message));
            }
            Some(ValueRef::String("off")) => return Ok(Mode::Off),
            Some(ValueRef::String("alwaysOn")) => return Ok(Mode::AlwaysOn),
            Some(ValueRef::String(other)) => return Err(bad(format!("unknown mode: {other}"))),
            Some(ValueRef::Document(mode)) => Arguments::within("mode", mode),
            Some(_) => {
                let message = "'mode' must be a string or JSON object";
                return Err(CommandError::new(ErrorCode::TypeMismatch, message));
            }
        };
        mode.only(&["times", "skip", "activationProbability"])?;
        for (name, make) in [
            ("times", Mode::Times as fn(i64) -> Mode),
            ("skip", Mode::Skip),
        ] {
            if let Some(count) = mode.whole_number(name)? {
                return match count {
                    0.. if count <= i64::from(i32::MAX) => Ok(make(count)),
                    0.. => Err(bad(format!("'{name}' option to 'mode' is too large"))),
                    _ => Err(bad(format!("'{name}' option to 'mode' must be positive"))),
                };
            }
        }
        let Some(probability) = mode.present("activationProbability") else {
            return Err(bad(
                "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or \
                 '{activationProbability:p}'"
                    .to_owned(),
            ));
        };
        match probability.as_f64() {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(Mode::Probability(number)),
            Some(number) => Err(bad(format!(
                "activationProbability must be between 0.0 and 1.0; found {number}"
            ))),
            None => Err(mode.wrong_type(
                "activationProbability",
                probability.type_of(),
                &[Type::Double],
            )),
        }
    }

    /// Returns `true` if the mode has an effect this time.
    fn acts(&mut self) -> bool {
        match self {
            Mode::Off => false,
            Mode::AlwaysOn => true,
            Mode::Times(left) => {
                *left -= 1;
                if *left <= 0 {
                    *self = Mode::Off;
                }
                true
            }
            Mode::Skip(left) if *left > 0 => {
                *left -= 1;
                false
            }
            Mode::Skip(_) => true,
            Mode::Probability(of_acting) => {
                let drawn = (random::bits() >> 11) as f64 / (1u64 << 53) as f64;
                drawn < *of_acting
            }
        }
    }
}

impl Data {
    fn parse(data: Document<'_>) -> Result<Data, CommandError> {
        let data = Arguments::within("data", data);
        data.only(&[
            "appName",
            "blockConnection",
            "blockTimeMS",
            "closeConnection",
            "errorCode",
            "errorExtraInfo",
            "errorLabels",
            "failCommands",
            // Commands of other members. There are none.
            "failInternalCommands",
            "namespace",
            "writeConcernError",
        ])?;
        let millis = data.count("blockTimeMS")?.unwrap_or(0);
        let waits = if data.flag("blockConnection")? {
            Duration::from_millis(millis)
        } else {
            Duration::ZERO
        };
        let information = data.document("errorExtraInfo")?;
        let concern_error = data.document("writeConcernError")?;
        Ok(Data {
            commands: texts(&data, "failCommands")?.unwrap_or_default(),
            application: data.string("appName")?.map(str::to_owned),
            namespace: data.string("namespace")?.map(str::to_owned),
            effect: Effect {
                waits,
                closes_connection: data.flag("closeConnection")?,
                error: error(&data, "errorCode", information)?,
                labels: texts(&data, "errorLabels")?,
                concern_error: concern_error.map(Document::to_buf),
            },
        })
    }

    fn parse_get_more(data: Document<'_>) -> Result<Data, CommandError> {
        let data = Arguments::within("data", data);
        data.only(&["closeConnection", "errorCode"])?;
        Ok(Data {
            effect: Effect {
                closes_connection: data.flag("closeConnection")?,
                error: error(&data, "errorCode", None)?,
                ..Effect::default()
            },
            ..Data::default()
        })
    }

    fn parse_retryable_writes(data: Document<'_>) -> Result<Data, CommandError> {
        let data = Arguments::within("data", data);
        data.only(&["closeConnection", "failBeforeCommitExceptionCode"])?;
        Ok(Data {
            effect: Effect {
                closes_connection: data.switch("closeConnection")?.unwrap_or(true),
                error: error(&data, "failBeforeCommitExceptionCode", None)?,
                ..Effect::default()
            },
            ..Data::default()
        })
    }

    fn meets(&self, subject: &FailPointCommand<'_>) -> bool {
        let application = self.application.as_deref();
        self.commands.iter().any(|name| (subject.is_called)(name))
            && self.namespace.as_ref().is_none_or(|it| subject.is_of(it))
            && (application.is_none() || application == subject.application())
    }
}

fn texts(data: &Arguments<'_>, name: &str) -> Result<Option<Vec<String>>, CommandError> {
    let Some(list) = data.array(name)? else {
        return Ok(None);
    };
    let text = |value: ValueRef<'_>| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| data.wrong_type(name, value.type_of(), &[Type::String]))
    };
    list.iter().map(text).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn modes_act_the_given_number_of_times() {
        let check = |mode: DocumentBuf, expected: [bool; 4]| {
            let mut mode = Mode::parse(mode.get("mode")).unwrap();
            assert_eq!([(); 4].map(|()| mode.acts()), expected, "{mode:?}");
        };
        check(doc! { "mode": "off" }, [false; 4]);
        check(doc! { "mode": "alwaysOn" }, [true; 4]);
        check(doc! { "mode": { "times": 2 } }, [true, true, false, false]);
        check(doc! { "mode": { "skip": 3 } }, [false, false, false, true]);
        check(doc! { "mode": { "activationProbability": 0 } }, [false; 4]);
        check(doc! { "mode": { "activationProbability": 1.0 } }, [true; 4]);
    }
}
