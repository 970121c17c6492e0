//! Date operators: arithmetic, differences, truncation, formats.

use windrow_document::Value;

use super::{check, evaluate, refuse};

/// A date in UTC in the notation of the cases.
fn date(text: &str) -> String {
    let source = format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
    match evaluate(&source) {
        Ok(Some(Value::DateTime(millis))) => {
            format!(r#"{{"$date": {{"$numberLong": "{millis}"}}}}"#)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn date_arithmetic_follows_the_calendar_of_the_time_zone() {
    let add = |start: &str, unit: &str, amount: i32, zone: &str| {
        let start = date(start);
        format!(
            r#"{{"$dateAdd": {{"startDate": {start}, "unit": "{unit}", "amount": {amount}, "timezone": "{zone}"}}}}"#
        )
    };
    let cases = [
        (
            add("2020-10-31T12:10:05Z", "month", 1, "UTC"),
            "2020-11-30T12:10:05Z",
        ),
        (
            add("2021-01-31T00:00:00Z", "month", 1, "UTC"),
            "2021-02-28T00:00:00Z",
        ),
        (
            add("2020-02-29T00:00:00Z", "year", -1, "UTC"),
            "2019-02-28T00:00:00Z",
        ),
        (
            add("2020-12-31T00:00:00Z", "quarter", -3, "UTC"),
            "2020-03-31T00:00:00Z",
        ),
        (
            add("2020-12-31T00:00:00Z", "week", 2, "UTC"),
            "2021-01-14T00:00:00Z",
        ),
        // Adding a day keeps the local time when clocks are set forward. Adding 24 hours does not.
        (
            add("2021-03-13T17:00:00Z", "day", 1, "America/New_York"),
            "2021-03-14T16:00:00Z",
        ),
        (
            add("2021-03-13T17:00:00Z", "hour", 24, "America/New_York"),
            "2021-03-14T17:00:00Z",
        ),
        (
            add("2021-03-13T17:00:00Z", "millisecond", 1, "UTC"),
            "2021-03-13T17:00:00.001Z",
        ),
    ];
    cases
        .iter()
        .for_each(|(expression, expected)| check(&[(expression, &date(expected))]));
    refuse(&[
        (
            r#"{"$dateAdd": {"startDate": "$date", "unit": "eon", "amount": 1}}"#,
            9,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$date", "unit": "day", "amount": 1.5}}"#,
            5166405,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$int", "unit": "day", "amount": 1}}"#,
            5166403,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$date", "unit": "day"}}"#,
            5166402,
        ),
    ]);
}

#[test]
fn date_differences_count_unit_boundaries() {
    let diff = |start: &str, end: &str, unit: &str, more: &str| {
        let (start, end) = (date(start), date(end));
        format!(
            r#"{{"$dateDiff": {{"startDate": {start}, "endDate": {end}, "unit": "{unit}"{more}}}}}"#
        )
    };
    let cases = [
        (
            diff("2020-12-31T23:59:59Z", "2021-01-01T00:00:00Z", "year", ""),
            1,
        ),
        (
            diff(
                "2020-01-01T00:00:00Z",
                "2020-12-31T00:00:00Z",
                "quarter",
                "",
            ),
            3,
        ),
        (
            diff("2021-02-28T00:00:00Z", "2021-01-01T00:00:00Z", "month", ""),
            -1,
        ),
        (
            diff("2021-01-02T00:00:00Z", "2021-01-03T00:00:00Z", "week", ""),
            1,
        ),
        (
            diff(
                "2021-01-02T00:00:00Z",
                "2021-01-03T00:00:00Z",
                "week",
                r#", "startOfWeek": "mon""#,
            ),
            0,
        ),
        (
            diff(
                "2021-01-01T23:00:00Z",
                "2021-01-02T01:00:00Z",
                "day",
                r#", "timezone": "America/New_York""#,
            ),
            0,
        ),
        (
            diff("2021-01-01T00:59:59Z", "2021-01-01T01:00:00Z", "hour", ""),
            1,
        ),
    ];
    for (expression, expected) in cases {
        check(&[(&expression, &format!(r#"{{"$numberLong": "{expected}"}}"#))]);
    }
}

#[test]
fn dates_are_truncated_to_bins_from_the_year_2000() {
    let cut = |moment: &str, unit: &str, more: &str| {
        let moment = date(moment);
        format!(r#"{{"$dateTrunc": {{"date": {moment}, "unit": "{unit}"{more}}}}}"#)
    };
    let cases = [
        (
            cut("2021-03-20T11:30:05Z", "month", ""),
            "2021-03-01T00:00:00Z",
        ),
        (
            cut("2021-03-20T11:30:05Z", "quarter", r#", "binSize": 2"#),
            "2021-01-01T00:00:00Z",
        ),
        (
            cut("2021-03-20T11:30:05Z", "week", ""),
            "2021-03-14T00:00:00Z",
        ),
        (
            cut(
                "2021-03-20T11:30:05Z",
                "week",
                r#", "startOfWeek": "Monday""#,
            ),
            "2021-03-15T00:00:00Z",
        ),
        (
            cut(
                "2021-03-20T03:30:05Z",
                "day",
                r#", "timezone": "America/New_York""#,
            ),
            "2021-03-19T04:00:00Z",
        ),
        (
            cut("2021-03-20T11:37:05Z", "minute", r#", "binSize": 15"#),
            "2021-03-20T11:30:00Z",
        ),
        (
            cut("1999-12-31T23:59:59Z", "year", r#", "binSize": 10"#),
            "1990-01-01T00:00:00Z",
        ),
    ];
    cases
        .iter()
        .for_each(|(expression, expected)| check(&[(expression, &date(expected))]));
    refuse(&[
        (
            r#"{"$dateTrunc": {"date": "$date", "unit": "day", "binSize": 0}}"#,
            5439018,
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": {"$numberLong": "-9223372036854775807"}},
                "unit": "year", "binSize": {"$numberLong": "9223372036854775807"}}}"#,
            5976500,
        ),
    ]);
}

#[test]
fn null_arguments_are_checked_before_invalid_ones() {
    check(&[
        (
            r#"{"$dateTrunc": {"date": "$missing", "unit": "$int", "binSize": "$text", "timezone": "$int"}}"#,
            "null",
        ),
        (
            r#"{"$dateTrunc": {"date": "$int", "unit": "week", "startOfWeek": "$null", "timezone": "$int"}}"#,
            "null",
        ),
        (
            r#"{"$dateDiff": {"startDate": "$text", "endDate": "$int", "unit": "$missing", "timezone": "$text"}}"#,
            "null",
        ),
        (
            r#"{"$dateAdd": {"startDate": "$text", "unit": "$int", "amount": "$null", "timezone": "$text"}}"#,
            "null",
        ),
    ]);
    check(&[(
        r#"{"$year": {"$toObjectId": "ffffffff0000000000000000"}}"#,
        "1969",
    )]);
    refuse(&[
        (r#"{"$dateFromParts": {"year": 0}}"#, 40523),
        (r#"{"$dateFromParts": {"year": 1970, "isoWeek": 1}}"#, 40489),
        (
            r#"{"$dateFromString": {"dateString": "2017-07-12T22:23:55 America/New_York"}}"#,
            241,
        ),
        (
            r#"{"$dateFromParts": {"isoWeekYear": 1970, "month": 1}}"#,
            40525,
        ),
        (
            r#"{"$dateFromParts": {"year": 1970, "millisecond": {"$numberLong": "9223372036854776"}}}"#,
            159,
        ),
        (
            r#"{"$dateTrunc": {"date": "$text", "unit": "day"}}"#,
            5166307,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$date", "unit": 5, "amount": 1}}"#,
            5439013,
        ),
        (r#"{"$dateTrunc": {"date": "$date", "unit": "century"}}"#, 9),
        (
            r#"{"$dateTrunc": {"date": "$date", "unit": "week", "startOfWeek": "x"}}"#,
            5439016,
        ),
        (
            r#"{"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": 5}}"#,
            5439013,
        ),
        (
            r#"{"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": "decade"}}"#,
            9,
        ),
    ]);
}

#[test]
fn dates_convert_to_strings_and_back() {
    check(&[
        (
            r#"{"$dateToString": {"date": "$date", "format": "%d %b %B %Y %H:%M:%S.%L %j %u %U %V %w"}}"#,
            r#""14 Jul July 2019 05:06:07.089 195 7 28 28 1""#,
        ),
        (
            r#"{"$dateToString": {"date": "$date", "format": "%H %z", "timezone": "Asia/Kolkata"}}"#,
            r#""10 +0530""#,
        ),
        (
            r#"{"$dateToString": {"date": "$missing", "onNull": "none"}}"#,
            r#""none""#,
        ),
        (
            r#"{"$dateToParts": {"date": "$date", "timezone": "+02"}}"#,
            r#"{"year": 2019, "month": 7, "day": 14, "hour": 7, "minute": 6, "second": 7, "millisecond": 89}"#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "bad", "onError": "oops"}}"#,
            r#""oops""#,
        ),
        // A value that is not a string fails before null arguments are checked.
        (
            r#"{"$dateFromString": {"dateString": 5, "format": null, "onError": "oops"}}"#,
            r#""oops""#,
        ),
        (
            r#"{"$dateFromString": {"dateString": 5, "timezone": null, "onError": "oops"}}"#,
            r#""oops""#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "14 Jul 2019", "format": "%d %b %Y"}}"#,
            r#"{"$date": {"$numberLong": "1563062400000"}}"#,
        ),
        (
            r#"{"$tsSecond": {"$timestamp": {"t": 9, "i": 4}}}"#,
            r#"{"$numberLong": "9"}"#,
        ),
        (
            r#"{"$tsIncrement": {"$timestamp": {"t": 9, "i": 4}}}"#,
            r#"{"$numberLong": "4"}"#,
        ),
    ]);
}

#[test]
fn usual_date_notations_are_parsed() {
    let by = |text: &str, format: &str| {
        format!(r#"{{"$dateFromString": {{"dateString": "{text}", "format": "{format}"}}}}"#)
    };
    let free = |text: &str| format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
    let cases = [
        // Digits of a fraction are decimal places, however few there are.
        (by("2017-07-04T11:56:02.81Z", "%Y-%m-%dT%H:%M:%S.%LZ"), 810),
        (by("2017-07-04T11:56:02.8Z", "%Y-%m-%dT%H:%M:%S.%LZ"), 800),
        (free("2017-07-04T11:56.02.813"), 813),
        (free("2017-07-04T11.56.02"), 0),
        (by("2017-07-04 13:56:02 GMT+02", "%Y-%m-%d %H:%M:%S%z"), 0),
        (by("2017-07-04 06:56:02 EST", "%Y-%m-%d %H:%M:%S %z"), 0),
        (free("July 4th, 2017 11am"), -56 * 60_000 - 2_000),
        (free("July 4th, 2017 12pm"), 4 * 60_000 - 2_000),
        (free("2017-Jul-04 noon"), 4 * 60_000 - 2_000),
        (free("7/4/17"), -716 * 60_000 - 2_000),
        (free("04-07-2017"), -716 * 60_000 - 2_000),
        (free("2017-07-04T12:56:02 A"), 0),
        (free("2017-07-04T22:56:02 L"), 0),
        (free("2017-07-04T08:56:02 P"), 0),
    ];
    for (expression, millis) in cases {
        let expected = Value::DateTime(1_499_169_362_000 + millis);
        assert_eq!(evaluate(&expression), Ok(Some(expected)), "{expression}");
    }
    refuse(&[
        (&free("2017-07-04 0am"), 241),
        (&free("2017-07-04 13pm"), 241),
        (&free("2017-07-04 13:00 PM"), 241),
    ]);
}

#[test]
fn days_of_the_year_are_parsed_from_0() {
    let by = |text: &str, format: &str| {
        format!(r#"{{"$dateFromString": {{"dateString": "{text}", "format": "{format}"}}}}"#)
    };
    let day = |text: &str| format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
    for (text, format, expected) in [
        ("2017-302", "%Y-%j", "2017-10-30"),
        ("2017-0", "%Y-%j", "2017-01-01"),
        ("2016 059", "%Y %j", "2016-02-29"),
        ("2017-365", "%Y-%j", "2018-01-01"),
        ("2017-999", "%Y-%j", "2019-09-27"),
        ("2017-03-045", "%Y-%m-%j", "2017-02-15"),
        ("2017-045-03", "%Y-%j-%d", "2017-02-03"),
    ] {
        let found = evaluate(&by(text, format));
        assert_eq!(found, evaluate(&day(expected)), "{text} {format}");
        assert!(matches!(found, Ok(Some(Value::DateTime(_)))), "{found:?}");
    }
    refuse(&[
        (&by("302-2017", "%j-%Y"), 241),
        (&by("302", "%j"), 241),
        (&by("2017-3021", "%Y-%j"), 241),
        (&by("2017-", "%Y-%j"), 241),
    ]);
}
