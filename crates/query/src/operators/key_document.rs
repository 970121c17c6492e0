//! The document that an index key makes: what covered plans and filters on keys look at.

use windrow_document::path::Path;
use windrow_document::{DocumentBuf, DocumentBuilder, Value, ValueRef, key};
use windrow_index::{Definition, KeyKind};

use crate::plan::KeyOutput;

/// How the values of a key are put together.
#[derive(Debug)]
pub struct KeyDocument {
    descending: Vec<bool>,
    root: Vec<Part>,
    /// Whether the parts are the key's values in their order; else there are documents within, or values
    /// are left out.
    is_flat: bool,
}

#[derive(Debug)]
enum Part {
    /// The value of the field of that number.
    Value(String, usize),
    Within(String, Vec<Part>),
}

impl KeyDocument {
    pub fn new(definition: &Definition, output: KeyOutput) -> KeyDocument {
        let mut root = Vec::new();
        for (number, field) in definition.fields.iter().enumerate() {
            match output {
                KeyOutput::Flat => root.push(Part::Value(field.path.to_string(), number)),
                KeyOutput::Field(wanted) if wanted != number => {}
                _ => place(&mut root, &field.path, 0, number),
            }
        }
        let read = match output {
            KeyOutput::Field(last) => last + 1,
            _ => definition.fields.len(),
        };
        let fields = definition.fields.iter().take(read);
        let descending = fields.map(|field| field.kind == KeyKind::Descending);
        let is_value = |part: &Part| matches!(part, Part::Value(..));
        KeyDocument {
            descending: descending.collect(),
            is_flat: root.len() == read && root.iter().all(is_value),
            root,
        }
    }

    /// The document of a key; what the shape does not give back stands as its usual type.
    pub fn make(&self, key: &[u8], shape: &[u8]) -> DocumentBuf {
        let mut reader = key::Reader::new(key, shape);
        if self.is_flat {
            return self.make_flat(&mut reader);
        }
        let values = self
            .descending
            .iter()
            .map(|descending| reader.value(*descending));
        let values: Vec<Option<Value>> = values.collect();
        let mut builder = DocumentBuilder::new();
        append(&self.root, &values, &mut builder);
        builder.finish()
    }
}

impl KeyDocument {
    /// Each value as it is read.
    fn make_flat(&self, reader: &mut key::Reader<'_>) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        for (part, descending) in self.root.iter().zip(&self.descending) {
            if let Part::Value(name, _) = part {
                let value = reader.value(*descending);
                builder.append(name, value.as_ref().map_or(ValueRef::Null, Value::as_ref));
            }
        }
        builder.finish()
    }
}

fn place(parts: &mut Vec<Part>, path: &Path, depth: usize, number: usize) {
    let Some(component) = path.components().get(depth) else {
        return;
    };
    let name = component.name();
    if depth + 1 == path.components().len() {
        parts.push(Part::Value(name.to_owned(), number));
        return;
    }
    let found = parts
        .iter()
        .position(|part| matches!(part, Part::Within(one, _) if one == name));
    let at = found.unwrap_or_else(|| {
        parts.push(Part::Within(name.to_owned(), Vec::new()));
        parts.len() - 1
    });
    if let Some(Part::Within(_, inner)) = parts.get_mut(at) {
        place(inner, path, depth + 1, number);
    }
}

fn append(parts: &[Part], values: &[Option<Value>], builder: &mut DocumentBuilder) {
    for part in parts {
        match part {
            Part::Value(name, number) => {
                let value = values.get(*number).and_then(Option::as_ref);
                builder.append(name, value.map_or(ValueRef::Null, Value::as_ref));
            }
            Part::Within(name, inner) => {
                builder.begin_document(name);
                append(inner, values, builder);
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
    fn keys_give_documents_back() {
        let specification = doc! { "key": { "a.b": 1, "c": -1, "a.d": 1 }, "name": "i" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let document = doc! { "a": { "b": 1.5, "d": "x" }, "c": 7i64, "e": 1 };
        let check = |output, expected: DocumentBuf| {
            let maker = KeyDocument::new(&definition, output);
            let mut made = Vec::new();
            let mut emit = |key: &[u8], shape: &[u8]| made.push(maker.make(key, shape));
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
