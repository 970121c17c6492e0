//! Parses the common arguments of a request.

use std::time::Duration;

use windrow_document::ValueRef;
use windrow_wire::{CommandError, ErrorCode, Request};

use super::read_concern::ReadConcernParser;
use super::{Api, CommonArguments, cluster_time, numbers, write_concern};
use crate::arguments::Arguments;
use crate::command::Command;
use crate::sessions::SessionId;
use crate::stable_api;

impl CommonArguments {
    /// Parses and checks the common arguments of a request for `command`. `is_member` is `true` on
    /// members of replica sets.
    pub fn parse(
        request: &Request,
        command: &Command,
        is_member: bool,
    ) -> Result<CommonArguments, CommandError> {
        let arguments = Arguments::new(request);
        let api = parse_api(request, &arguments, command)?;
        check_read_preference(&arguments)?;
        let session = parse_session(&arguments)?;
        let numbered = numbers::parse(&arguments, session)?;
        let part = numbered.as_ref().map(|numbered| numbered.part);
        if is_member {
            cluster_time::check(&arguments)?;
        }
        let reading = ReadConcernParser {
            command,
            part,
            is_member,
        };
        let time_limit = parse_time_limit(&arguments)?;
        let (read_concern, read_at) = reading.parse(&arguments)?;
        Ok(CommonArguments {
            session,
            time_limit,
            read_concern,
            read_at,
            write_concern: write_concern::parse(&arguments, command, part, is_member)?,
            numbered,
            comment: arguments.get("comment").map(ValueRef::to_value),
            api,
        })
    }
}

fn bad_value(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

fn parse_api(
    request: &Request,
    arguments: &Arguments<'_>,
    command: &Command,
) -> Result<Api, CommandError> {
    let version = arguments.string("apiVersion")?;
    let api = Api {
        has_version: version.is_some(),
        strict: arguments.bool("apiStrict")?,
        deprecation_errors: arguments.bool("apiDeprecationErrors")?,
    };
    let other = api.strict.or(api.deprecation_errors);
    let strict = api.strict.unwrap_or(false);
    match version {
        None if other.is_some() => Err(CommandError::new(
            ErrorCode(4_886_600),
            "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
        )),
        None => Ok(api),
        Some("1") if strict && !command.in_api_version_1 => Err(CommandError::new(
            ErrorCode::APIStrictError,
            format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1",
                command.name
            ),
        )),
        Some("1") => {
            let body = request.body();
            let outside = (command.outside_api_version_1)(body)
                .or_else(|| stable_api::unsupported_argument(command.name, body));
            match outside.filter(|_| strict) {
                Some(message) => Err(CommandError::new(ErrorCode::APIStrictError, message)),
                None => Ok(api),
            }
        }
        Some(version) => Err(CommandError::new(
            ErrorCode::APIVersionError,
            format!("API version must be \"1\", not \"{version}\""),
        )),
    }
}

/// Checks the read preference. It has no effect, because there is one server.
fn check_read_preference(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let Some(preference) = arguments.document("$readPreference")? else {
        return Ok(());
    };
    let inner = Arguments::within("$readPreference", preference);
    let mode = inner.string("mode")?.ok_or_else(|| {
        CommandError::new(ErrorCode::NoSuchKey, "Missing expected field \"mode\"")
    })?;
    match mode {
        "primary" if inner.array("tags")?.is_some_and(|tags| !tags.is_empty()) => Err(bad_value(
            "Only empty tags are allowed with primary read preference",
        )),
        "primary" | "primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest" => Ok(()),
        _ => Err(bad_value(format!(
            "Could not parse $readPreference mode '{mode}'"
        ))),
    }
}

fn parse_session(arguments: &Arguments<'_>) -> Result<Option<SessionId>, CommandError> {
    let lsid = arguments.document("lsid")?;
    lsid.map(|document| SessionId::parse(document, "lsid"))
        .transpose()
}

/// Parses `maxTimeMS`: milliseconds up to 2³¹-1. 0 is no limit.
fn parse_time_limit(arguments: &Arguments<'_>) -> Result<Option<Duration>, CommandError> {
    let Some(value) = arguments.present("maxTimeMS") else {
        return Ok(None);
    };
    let number = value.as_f64().filter(|_| value.is_number());
    let number = number.ok_or_else(|| bad_value("maxTimeMS must be a number"))?;
    if number.fract() != 0.0 || !number.is_finite() {
        return Err(bad_value("maxTimeMS has non-integral value"));
    }
    if !(0.0..=f64::from(i32::MAX)).contains(&number) {
        return Err(bad_value(format!(
            "{number} value for maxTimeMS is out of range"
        )));
    }
    Ok((number > 0.0).then(|| Duration::from_millis(number as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use windrow_document::{Decimal128, DocumentBuf, Timestamp, Value, doc};

    const WRITE: Command = Command {
        write_concern: true,
        ..Command::EMPTY
    };
    const READ: Command = Command {
        read_concern: true,
        ..Command::EMPTY
    };

    fn check(command: &Command, name: &str, value: impl Into<Value>, code: i32) {
        let mut body = doc! { "x": 1 };
        body.push(name, value);
        body.push("$db", "a");
        check_body(command, &body, code);
    }

    fn check_body(command: &Command, body: &DocumentBuf, code: i32) {
        let found = CommonArguments::parse(&request_for_tests(body), command, false);
        assert_eq!(
            found.map_or_else(|error| error.code.number(), |_| 0),
            code,
            "{body}"
        );
    }

    #[test]
    fn time_limits_are_checked() {
        let limit = |value: Value, code: i32| check(&READ, "maxTimeMS", value, code);
        limit(0.into(), 0);
        limit(i32::MAX.into(), 0);
        limit(Value::Decimal128(Decimal128::from_i64(2)), 0);
        limit(Value::Null, 0);
        limit((-0.0).into(), 0);
        for value in [
            Value::from(-1),
            2_147_483_648i64.into(),
            2f64.powi(31).into(),
        ] {
            limit(value, 2);
        }
        for value in [0.5, f64::NAN, f64::INFINITY, f64::MAX] {
            limit(value.into(), 2);
            limit(Value::Decimal128(Decimal128::from_f64(value)), 2);
        }
        for value in [Value::from("x"), true.into(), doc! { "a": 1 }.into()] {
            limit(value, 2);
        }
    }

    #[test]
    fn write_concerns_are_checked() {
        let concern = |value: DocumentBuf, code: i32| check(&WRITE, "writeConcern", value, code);
        for accepted in [
            doc! {},
            doc! { "w": 0 },
            doc! { "w": 1.5 },
            doc! { "w": "majority" },
            doc! { "w": "" },
            // A standalone server had refused null. MongoDB treats it as absent.
            doc! { "w": (Value::Null) },
            doc! { "j": true },
            doc! { "j": 1 },
            doc! { "j": (Value::Null) },
            doc! { "w": { "a": 1, "$b": (f64::NAN) } },
            doc! { "w": 1, "wtimeout": "x" },
            doc! { "wtimeout": (f64::NAN) },
            doc! { "wtimeout": i32::MAX },
        ] {
            concern(accepted, 0);
        }
        for refused in [
            doc! { "w": 51 },
            doc! { "w": (f64::NAN) },
            doc! { "w": (Decimal128::from_f64(-0.51)) },
            doc! { "w": true },
            doc! { "w": {} },
            doc! { "w": { "a": "x" } },
            doc! { "fsync": true, "j": true },
            doc! { "wtimeout": 2_147_483_648i64 },
            doc! { "wtimeout": (f64::INFINITY) },
        ] {
            concern(refused, 9);
        }
        concern(doc! { "foo": 1 }, 9);
        concern(doc! { "provenance": "implicitDefault" }, 0);
        concern(doc! { "provenance": "x" }, 2);
        concern(doc! { "provenance": true }, 14);
        concern(doc! { "j": "x" }, 9);
        concern(doc! { "w": 2, "wtimeout": 1 }, 2);
        concern(doc! { "w": (Decimal128::from_f64(1.5)) }, 2);
        concern(doc! { "w": "bogus" }, 2);
        check(&WRITE, "writeConcern", "majority", 14);
        check(&WRITE, "writeConcern", Value::Null, 0);
        check(&READ, "writeConcern", doc! { "w": 1 }, 72);
    }

    /// A member without tags had accepted tags without an error.
    #[test]
    fn a_member_reports_unsatisfiable_write_concerns() {
        let unsatisfied = |w: Value| {
            let concern = write_concern::read(doc! { "w": w }.as_document(), true).unwrap();
            concern.unsatisfied.map(|error| error.code.number())
        };
        assert_eq!(unsatisfied(doc! { "rack": 1 }.into()), Some(4));
        assert_eq!(unsatisfied("mode".into()), Some(79));
        assert_eq!(unsatisfied(2.into()), Some(100));
        for satisfied in [1.into(), "majority".into(), Value::Null] {
            assert_eq!(unsatisfied(satisfied), None);
        }
    }

    #[test]
    fn journaled_and_majority_writes_are_synced() {
        let synced = |document: DocumentBuf| {
            write_concern::read(document.as_document(), false)
                .unwrap()
                .synced
        };
        assert!(synced(doc! { "j": true }));
        assert!(synced(doc! { "w": "majority" }));
        assert!(!synced(doc! { "w": "majority", "j": false }));
        assert!(!synced(doc! { "w": 1 }));
    }

    #[test]
    fn read_concerns_are_checked() {
        let concern = |value: DocumentBuf, code: i32| check(&READ, "readConcern", value, code);
        concern(doc! { "level": "local" }, 0);
        concern(doc! { "level": "available" }, 0);
        concern(doc! { "level": "majority" }, 0);
        concern(doc! { "level": "linearizable" }, 123);
        concern(doc! { "level": "snapshot" }, 123);
        concern(doc! { "level": (Value::Null) }, 0);
        concern(doc! { "level": "x" }, 9);
        concern(doc! { "level": 5 }, 14);
        concern(doc! { "level": "local", "foo": 1 }, 72);
        concern(doc! { "provenance": "clientSupplied" }, 0);
        concern(doc! { "provenance": "x" }, 2);
        concern(doc! { "provenance": 1 }, 14);
        concern(doc! { "level": "snapshot", "atClusterTime": 5 }, 14);
        let time = Value::Timestamp(Timestamp::from_bits(5 << 32 | 1));
        concern(
            doc! { "level": "snapshot", "atClusterTime": (time.clone()) },
            123,
        );
        concern(doc! { "afterClusterTime": time }, 123);
        check(&READ, "readConcern", "x", 14);
        check(&READ, "readConcern", Value::Null, 0);
        check(&WRITE, "readConcern", "local", 14);
        check(&WRITE, "readConcern", doc! { "level": "snapshot" }, 72);
        check(&WRITE, "readConcern", doc! { "level": "linearizable" }, 72);
        check(&WRITE, "readConcern", doc! { "level": "local" }, 0);
        check(&WRITE, "readConcern", doc! { "level": "majority" }, 72);
    }

    #[test]
    fn read_preferences_are_checked() {
        let preference =
            |value: DocumentBuf, code: i32| check(&READ, "$readPreference", value, code);
        preference(doc! { "mode": "secondary" }, 0);
        preference(doc! { "mode": "x" }, 2);
        preference(doc! { "mode": "primary", "tags": [{ "a": "b" }] }, 2);
        preference(doc! {}, 4);
        check(&READ, "$readPreference", "x", 14);
    }

    #[test]
    fn transaction_arguments_are_checked() {
        let body = |code: i32, body: DocumentBuf| check_body(&WRITE, &body, code);
        let session = SessionId::for_tests([1; 16]).to_document();
        body(72, doc! { "x": 1, "autocommit": false, "$db": "a" });
        body(
            72,
            doc! { "x": 1, "txnNumber": 1i64, "autocommit": true, "$db": "a" },
        );
        body(72, doc! { "x": 1, "startTransaction": true, "$db": "a" });
        body(
            14,
            doc! { "x": 1, "txnNumber": 1, "autocommit": false, "$db": "a" },
        );
        body(
            72,
            doc! { "x": 1, "txnNumber": (-1i64), "autocommit": false, "$db": "a" },
        );
        body(
            0,
            doc! { "x": 1, "lsid": (session.clone()), "txnNumber": 1i64, "$db": "a" },
        );
        let begins = doc! {
            "x": 1, "lsid": session, "txnNumber": 1i64, "autocommit": false,
            "startTransaction": true, "$db": "a",
        };
        body(0, begins.clone());
        let with = |name: &str, value: DocumentBuf| {
            let mut body = begins.clone();
            body.push(name, value);
            body
        };
        body(72, with("writeConcern", doc! { "w": 1 }));
        body(0, with("readConcern", doc! { "level": "snapshot" }));
        body(72, with("readConcern", doc! { "level": "available" }));
    }

    #[test]
    fn api_versions_are_checked() {
        let body = |code: i32, body: DocumentBuf| check_body(&READ, &body, code);
        body(0, doc! { "x": 1, "apiVersion": "1", "$db": "a" });
        body(322, doc! { "x": 1, "apiVersion": "2", "$db": "a" });
        body(
            323,
            doc! { "x": 1, "apiVersion": "1", "apiStrict": true, "$db": "a" },
        );
        body(4_886_600, doc! { "x": 1, "apiStrict": true, "$db": "a" });
    }
}
