//! Prints intervals as explain shows them.

use windrow_document::ValueRef;

use super::Interval;

impl Interval {
    /// Returns the interval as explain prints it, such as `[1, 5)`. The ends are swapped in a scan
    /// that goes downward.
    pub fn print(&self, downward: bool) -> String {
        let (open, close) = if downward {
            (self.includes_high, self.includes_low)
        } else {
            (self.includes_low, self.includes_high)
        };
        let (first, last) = if downward {
            (&self.high, &self.low)
        } else {
            (&self.low, &self.high)
        };
        let (open, close) = (if open { '[' } else { '(' }, if close { ']' } else { ')' });
        format!(
            "{open}{}, {}{close}",
            print_value(first.as_ref()),
            print_value(last.as_ref())
        )
    }
}

/// Prints a value in the notation of the shell.
fn print_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::MinKey => "MinKey".to_owned(),
        ValueRef::MaxKey => "MaxKey".to_owned(),
        ValueRef::Undefined => "undefined".to_owned(),
        ValueRef::Double(number) => print_double(number),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Decimal128(number) => format!("NumberDecimal(\"{number}\")"),
        ValueRef::ObjectId(id) => format!("ObjectId('{id}')"),
        ValueRef::DateTime(millis) => format!("new Date({millis})"),
        ValueRef::Timestamp(time) => format!("Timestamp({}, {})", time.seconds, time.increment),
        ValueRef::Regex { pattern, options } => format!("/{pattern}/{options}"),
        ValueRef::Binary { subtype, bytes } => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("BinData({subtype}, {digits})")
        }
        ValueRef::Document(document) => {
            let fields = document
                .iter()
                .map(|(name, value)| format!("{name}: {}", print_value(value)));
            braced("{", fields.collect(), "}")
        }
        ValueRef::Array(array) => braced("[", array.iter().map(print_value).collect(), "]"),
        other => other.to_string(),
    }
}

fn braced(open: &str, parts: Vec<String>, close: &str) -> String {
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    format!("{open} {} {close}", parts.join(", "))
}

fn print_double(number: f64) -> String {
    if number.is_nan() {
        "nan.0".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "inf.0" } else { "-inf.0" }.to_owned()
    } else {
        format!("{number:?}")
    }
}
