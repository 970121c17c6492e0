//! Makes documents of index keys, for covered plans and for filters on keys.

use windrow_document::path::Path;
use windrow_document::{DocumentBuf, DocumentBuilder, Value, ValueRef, key};
use windrow_index::{Definition, KeyKind};

use crate::plan::KeyOutput;

/// A template for the documents of the keys of an index.
#[derive(Debug)]
pub struct KeyDocument {
    descending: Vec<bool>,
    root: Vec<DocumentPart>,
    mode: BuildMode,
}

/// How documents are built, the fastest way first.
#[derive(Debug)]
enum BuildMode {
    /// The document has the values of the key, in the same order.
    Flat,
    /// The document has only the last value that is read.
    Last,
    /// The document has nested documents.
    Nested,
}

/// The result for a key.
#[derive(Debug, PartialEq)]
pub struct BuiltDocument {
    pub document: DocumentBuf,
    /// The number of bytes of the key that were read. `None` if they are damaged.
    pub key_bytes: Option<usize>,
}

#[derive(Debug)]
enum DocumentPart {
    /// The value of the field with this number.
    Value(String, usize),
    /// A nested document.
    Within(String, Vec<DocumentPart>),
}

impl KeyDocument {
    pub fn new(definition: &Definition, output: KeyOutput) -> KeyDocument {
        let mut root = Vec::new();
        for (number, field) in definition.fields.iter().enumerate() {
            match output {
                KeyOutput::Flat => root.push(DocumentPart::Value(field.path.to_string(), number)),
                KeyOutput::Field(selected) if selected != number => {}
                _ => insert_part(&mut root, &field.path, 0, number),
            }
        }
        let read = match output {
            KeyOutput::Field(last) => last + 1,
            _ => definition.fields.len(),
        };
        let fields = definition.fields.iter().take(read);
        let descending = fields.map(|field| field.kind == KeyKind::Descending);
        let is_value = |part: &DocumentPart| matches!(part, DocumentPart::Value(..));
        let mode = match output {
            KeyOutput::Field(_) => BuildMode::Last,
            _ if root.len() == read && root.iter().all(is_value) => BuildMode::Flat,
            _ => BuildMode::Nested,
        };
        KeyDocument {
            descending: descending.collect(),
            mode,
            root,
        }
    }

    /// Returns the number of fields of the key that are read.
    pub fn fields_read(&self) -> usize {
        self.descending.len()
    }

    /// Makes the document of a key. A value without information in `shape` gets the default type of
    /// its kind.
    pub fn make(&self, key: &[u8], shape: &[u8]) -> BuiltDocument {
        let mut values = KeyValues {
            reader: key::KeyReader::new(key, shape),
            is_whole: true,
        };
        let mut builder = DocumentBuilder::new();
        match self.mode {
            BuildMode::Flat => self.append_flat(&mut values, &mut builder),
            BuildMode::Last => self.append_last(&mut values, &mut builder),
            BuildMode::Nested => {
                let fields = self.descending.iter();
                let values: Vec<_> = fields.map(|descending| values.next(*descending)).collect();
                append(&self.root, &|number| values.get(number), &mut builder);
            }
        }
        let read = key.len() - values.reader.rest().len();
        BuiltDocument {
            document: builder.finish(),
            key_bytes: values.is_whole.then_some(read),
        }
    }

    /// Appends each value as it is read.
    fn append_flat(&self, values: &mut KeyValues<'_>, builder: &mut DocumentBuilder) {
        for (part, descending) in self.root.iter().zip(&self.descending) {
            if let DocumentPart::Value(name, _) = part {
                builder.append(name, values.next(*descending).as_ref());
            }
        }
    }

    /// Skips values and appends the last one.
    fn append_last(&self, values: &mut KeyValues<'_>, builder: &mut DocumentBuilder) {
        let mut last = Value::Null;
        for descending in &self.descending {
            last = values.next(*descending);
        }
        append(&self.root, &|_| Some(&last), builder);
    }
}

/// Reads the values of a key in sequence.
struct KeyValues<'k> {
    reader: key::KeyReader<'k>,
    is_whole: bool,
}

impl KeyValues<'_> {
    /// Returns the next value, or null if the bytes are damaged.
    fn next(&mut self, descending: bool) -> Value {
        self.reader.value(descending).unwrap_or_else(|| {
            self.is_whole = false;
            Value::Null
        })
    }
}

fn insert_part(parts: &mut Vec<DocumentPart>, path: &Path, depth: usize, number: usize) {
    let Some(component) = path.components().get(depth) else {
        return;
    };
    let name = component.name();
    if depth + 1 == path.components().len() {
        parts.push(DocumentPart::Value(name.to_owned(), number));
        return;
    }
    let found = parts
        .iter()
        .position(|part| matches!(part, DocumentPart::Within(one, _) if one == name));
    let at = found.unwrap_or_else(|| {
        parts.push(DocumentPart::Within(name.to_owned(), Vec::new()));
        parts.len() - 1
    });
    if let Some(DocumentPart::Within(_, inner)) = parts.get_mut(at) {
        insert_part(inner, path, depth + 1, number);
    }
}

/// Appends the parts. `value` returns the value of a field by its number.
fn append<'v>(
    parts: &[DocumentPart],
    value: &dyn Fn(usize) -> Option<&'v Value>,
    builder: &mut DocumentBuilder,
) {
    for part in parts {
        match part {
            DocumentPart::Value(name, number) => {
                builder.append(name, value(*number).map_or(ValueRef::Null, Value::as_ref));
            }
            DocumentPart::Within(name, inner) => {
                builder.begin_document(name);
                append(inner, value, builder);
                builder.end();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;
    use windrow_index::Scratch;

    #[test]
    fn keys_become_documents() {
        let specification = doc! { "key": { "a.b": 1, "c": -1, "a.d": 1 }, "name": "i" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let document = doc! { "a": { "b": 1.5, "d": "x" }, "c": 7i64, "e": 1 };
        let bytes_of_first = |count: usize| {
            let mut bytes = Vec::new();
            let values = [Value::Double(1.5), 7i64.into(), "x".into()];
            for (value, descending) in values.iter().zip([false, true, false]).take(count) {
                key::append_with_direction(&mut bytes, value.as_ref(), descending);
            }
            bytes.len()
        };
        let check = |output, expected: DocumentBuf| {
            let maker = KeyDocument::new(&definition, output);
            let mut made = Vec::new();
            let mut emit = |key: &[u8], shape: &[u8]| made.push(maker.make(key, shape));
            let expected = BuiltDocument {
                document: expected,
                key_bytes: Some(bytes_of_first(maker.fields_read())),
            };
            let mut scratch = Scratch::default();
            let keys = definition.keys(document.as_document(), &mut scratch, &mut emit);
            keys.unwrap();
            assert_eq!(made, [expected]);
        };
        check(
            KeyOutput::Document,
            doc! { "a": { "b": 1.5, "d": "x" }, "c": 7i64 },
        );
        check(KeyOutput::Field(0), doc! { "a": { "b": 1.5 } });
        check(KeyOutput::Field(1), doc! { "c": 7i64 });
        check(KeyOutput::Field(2), doc! { "a": { "d": "x" } });
        check(KeyOutput::Flat, doc! { "a.b": 1.5, "c": 7i64, "a.d": "x" });
    }
}
