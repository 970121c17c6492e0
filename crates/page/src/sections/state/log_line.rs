//! Lines of the server log, which are JSON.

use serde_json::Value;

/// The fields of a line. A line that is not JSON becomes a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogLine {
    /// The time in ISO 8601.
    pub time: String,
    /// The severity: F, E, W, I or D1 to D5.
    pub severity: String,
    /// The component.
    pub component: String,
    /// The id of the message.
    pub id: i64,
    /// The message.
    pub message: String,
    /// The attributes.
    pub attributes: Value,
}

/// The id of the message about a slow operation.
const SLOW_OPERATION: i64 = 51_803;

impl LogLine {
    /// Parses a line.
    pub fn parse(line: &str) -> LogLine {
        let Ok(mut parsed) = serde_json::from_str::<Value>(line) else {
            let message = line.to_owned();
            return LogLine {
                message,
                ..LogLine::default()
            };
        };
        let text = |name: &str| {
            let value = parsed.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let time = parsed.pointer("/t/$date").and_then(Value::as_str);
        LogLine {
            time: time.unwrap_or_default().to_owned(),
            severity: text("s"),
            component: text("c"),
            id: parsed.get("id").and_then(Value::as_i64).unwrap_or(0),
            message: text("msg"),
            attributes: parsed.get_mut("attr").map_or(Value::Null, Value::take),
        }
    }

    /// Returns `true` if the line reports a slow operation.
    pub fn is_slow_operation(&self) -> bool {
        self.id == SLOW_OPERATION
    }

    /// Returns date and time without fractions of a second.
    pub fn time_to_second(&self) -> String {
        self.time
            .chars()
            .take(19)
            .map(|it| if it == 'T' { ' ' } else { it })
            .collect()
    }

    /// Returns the attributes on one line. Empty without attributes.
    pub fn attributes_text(&self) -> String {
        match self.attributes.as_object() {
            Some(attributes) => {
                let pairs = attributes.iter();
                let pairs = pairs.map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}: {text}"),
                    None => format!("{name}: {value}"),
                });
                pairs.collect::<Vec<_>>().join(", ")
            }
            None => String::new(),
        }
    }

    /// Returns a string attribute, or an empty string.
    pub fn text(&self, name: &str) -> &str {
        let value = self.attributes.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// Returns an integer attribute.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.attributes.get(name).and_then(Value::as_i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_parts() {
        let line = LogLine::parse(
            r#"{"t":{"$date":"2026-11-26T19:09:29.5+00:00"},"s":"I","c":"INDEX","id":51803,"ctx":"c","msg":"Done","attr":{"ns":"a.b","n":2}}"#,
        );
        assert_eq!(
            (line.severity.as_str(), line.component.as_str()),
            ("I", "INDEX")
        );
        assert_eq!(line.time_to_second(), "2026-11-26 19:09:29");
        assert_eq!(line.attributes_text(), "ns: a.b, n: 2");
        assert_eq!((line.text("ns"), line.number("n")), ("a.b", Some(2)));
        assert!(line.is_slow_operation());
    }

    #[test]
    fn other_lines_are_messages() {
        for text in ["", "panicked at", "{\"t\":", "[1]", "\u{202e}"] {
            let line = LogLine::parse(text);
            assert!(
                line.attributes_text().is_empty() && !line.is_slow_operation(),
                "{text}"
            );
        }
        assert_eq!(LogLine::parse("a").message, "a");
    }
}
