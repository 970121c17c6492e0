//! Checks of BSON's specification beyond the structure of a document.

use std::collections::HashSet;

use windrow_document::{Array, Document, ValueRef};

/// Returns the first violation: a duplicate field name, array names that do not count from 0,
/// unsorted options of a regular expression, or a UUID or MD5 of the wrong length.
pub fn fault(document: Document<'_>) -> Option<String> {
    let mut names = HashSet::new();
    for (name, value) in document.iter() {
        if !names.insert(name) {
            return Some(format!("the field '{name}' is there twice"));
        }
        if let Some(what) = fault_of_value(value) {
            return Some(format!("'{name}': {what}"));
        }
    }
    None
}

fn fault_of_value(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Document(document) => fault(document),
        ValueRef::JavaScriptWithScope { scope, .. } => fault(scope),
        ValueRef::Array(array) => fault_of_array(array),
        ValueRef::Regex { options, .. } if !options.as_bytes().is_sorted() => Some(format!(
            "the options '{options}' of a regular expression are not in order"
        )),
        ValueRef::Binary { subtype, bytes } => {
            let of_sixteen = matches!(subtype, 3..=5);
            let length = bytes.len();
            (of_sixteen && length != 16)
                .then(|| format!("binary of subtype {subtype} has {length} bytes, and not 16"))
        }
        _ => None,
    }
}

fn fault_of_array(array: Array<'_>) -> Option<String> {
    let fields = array.as_document();
    for (place, (name, value)) in fields.iter().enumerate() {
        if name.parse() != Ok(place) {
            return Some(format!("an array has the name '{name}' in place {place}"));
        }
        if let Some(what) = fault_of_value(value) {
            return Some(format!("'{name}': {what}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, DocumentBuilder, Value, array, doc};

    fn check(document: DocumentBuf, expected: Option<&str>) {
        assert_eq!(fault(document.as_document()).as_deref(), expected);
    }

    #[test]
    fn violations_are_named() {
        let binary = |length| Value::Binary {
            subtype: 4,
            bytes: vec![0; length],
        };
        let regex = |options: &str| Value::Regex {
            pattern: "a".to_owned(),
            options: options.to_owned(),
        };
        check(doc! { "a": 1, "b": [1, { "c": 2 }] }, None);
        check(doc! { "a": (binary(16)), "b": (regex("im")) }, None);
        check(
            doc! { "a": (binary(15)) },
            Some("'a': binary of subtype 4 has 15 bytes, and not 16"),
        );
        check(
            doc! { "a": [(regex("mi"))] },
            Some("'a': '0': the options 'mi' of a regular expression are not in order"),
        );
        let mut twice = DocumentBuilder::new();
        twice.append("a", ValueRef::Int32(1));
        twice.append("a", ValueRef::Int32(2));
        let twice = twice.finish();
        check(twice.clone(), Some("the field 'a' is there twice"));
        check(
            doc! { "b": (array![twice]) },
            Some("'b': '0': the field 'a' is there twice"),
        );
        let names = windrow_document::ArrayBuf::from_document(doc! { "1": 1 });
        check(
            doc! { "b": names },
            Some("'b': an array has the name '1' in place 0"),
        );
    }
}
