//! Prints documents as in MongoDB's messages: `{ a: 1, b: "x", c: ObjectId('…') }`.

use windrow_document::{Document, ValueRef};

/// Returns the document on one line.
pub fn document(document: Document<'_>) -> String {
    let fields = document
        .iter()
        .map(|(name, inner)| format!("{name}: {}", value(inner)));
    enclose("{", fields.collect(), "}")
}

fn value(of: ValueRef<'_>) -> String {
    match of {
        ValueRef::Document(inner) => document(inner),
        ValueRef::Array(array) => enclose("[", array.iter().map(value).collect(), "]"),
        ValueRef::String(text) => format!("\"{text}\""),
        ValueRef::Symbol(text) => format!("\"{text}\""),
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Double(number) if number.fract() == 0.0 => format!("{number:.1}"),
        ValueRef::Double(number) => number.to_string(),
        ValueRef::Decimal128(number) => number.to_string(),
        ValueRef::Bool(is_true) => is_true.to_string(),
        ValueRef::Null => "null".to_owned(),
        ValueRef::Undefined => "undefined".to_owned(),
        ValueRef::MinKey => "MinKey".to_owned(),
        ValueRef::MaxKey => "MaxKey".to_owned(),
        ValueRef::ObjectId(id) => format!("ObjectId('{id}')"),
        ValueRef::DateTime(millis) => format!("new Date({millis})"),
        ValueRef::Timestamp(time) => format!("Timestamp({}, {})", time.seconds, time.increment),
        ValueRef::Regex { pattern, options } => format!("/{pattern}/{options}"),
        ValueRef::Binary { subtype, bytes } => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("BinData({subtype}, {digits})")
        }
        ValueRef::DbPointer { namespace, id } => format!("DBRef('{namespace}', {id})"),
        ValueRef::JavaScript(code) => code.to_owned(),
        ValueRef::JavaScriptWithScope { code, scope } => {
            format!("CodeWScope( {code}, {})", document(scope))
        }
    }
}

fn enclose(open: &str, parts: Vec<String>, close: &str) -> String {
    if parts.is_empty() {
        format!("{open}{close}")
    } else {
        format!("{open} {} {close}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn documents_are_printed_as_in_the_messages_of_mongodb() {
        let check = |shown: DocumentBuf, expected: &str| {
            assert_eq!(document(shown.as_document()), expected);
        };
        check(doc! {}, "{}");
        check(doc! { "a": 1, "b": "x" }, "{ a: 1, b: \"x\" }");
        check(doc! { "a": [1.0, 2.5, null] }, "{ a: [ 1.0, 2.5, null ] }");
        check(doc! { "a": { "b": true } }, "{ a: { b: true } }");
    }
}
