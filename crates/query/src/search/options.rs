//! Options of `$search` and its operators: documents with known fields.

use windrow_document::{Document, ValueRef};

use crate::Error;

/// The code of the error for an invalid `$search`. MongoDB has no special code for it.
const BAD_VALUE: i32 = 2;

/// Returns the error for an invalid `$search`.
pub fn bad(message: String) -> Error {
    Error::new(BAD_VALUE, message)
}

/// A path of the option `path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchPath {
    /// A field.
    Field(String),
    /// A field with one of its multi analyzers.
    Multi { field: String, multi: String },
    /// All fields whose paths match a pattern, in which `*` stands for any characters.
    Wildcard(String),
}

/// A document with known fields.
#[derive(Clone, Copy, Debug)]
pub struct Options<'d> {
    /// The name of the document in error messages.
    name: &'d str,
    document: Document<'d>,
}

impl<'d> Options<'d> {
    /// Reads the options of something with this name. Fails if the value is not a document.
    pub fn new(name: &'d str, value: ValueRef<'d>) -> Result<Options<'d>, Error> {
        match value {
            ValueRef::Document(document) => Ok(Options { name, document }),
            _ => Err(bad(format!("\"{name}\" must be a document"))),
        }
    }

    /// Fails if there is a field that is not in `known`.
    pub fn check(&self, known: &[&str]) -> Result<(), Error> {
        let mut names = self.document.iter().map(|(name, _)| name);
        match names.find(|name| !known.contains(name)) {
            Some(other) => Err(bad(format!("Unrecognized field \"{}.{other}\"", self.name))),
            None => Ok(()),
        }
    }

    /// Fails if the document has this field, which MongoDB Search supports and Windrow does not.
    pub fn refuse(&self, field: &str) -> Result<(), Error> {
        match self.document.get(field) {
            None => Ok(()),
            Some(_) => Err(bad(format!("\"{}.{field}\" is not supported", self.name))),
        }
    }

    /// Returns the value of a field.
    pub fn get(&self, field: &str) -> Option<ValueRef<'d>> {
        self.document.get(field)
    }

    /// Returns the value of a field. Fails if it is missing.
    pub fn required(&self, field: &str) -> Result<ValueRef<'d>, Error> {
        let found = self.document.get(field);
        found.ok_or_else(|| bad(format!("\"{}.{field}\" is required", self.name)))
    }

    /// Returns an optional string. Fails for values of other types.
    pub fn string(&self, field: &str) -> Result<Option<&'d str>, Error> {
        match self.document.get(field) {
            None => Ok(None),
            Some(ValueRef::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad(format!("\"{}.{field}\" must be a string", self.name))),
        }
    }

    /// Returns a boolean, `false` if it is missing. Fails for values of other types.
    pub fn flag(&self, field: &str) -> Result<bool, Error> {
        match self.document.get(field) {
            None => Ok(false),
            Some(ValueRef::Bool(flag)) => Ok(flag),
            Some(_) => Err(bad(format!("\"{}.{field}\" must be a boolean", self.name))),
        }
    }

    /// Returns a string or an array of strings. Fails if it is missing or empty.
    pub fn strings(&self, field: &str) -> Result<Vec<String>, Error> {
        let error = || {
            bad(format!(
                "\"{}.{field}\" must be a string or an array of strings, and not empty",
                self.name
            ))
        };
        let strings = match self.required(field)? {
            ValueRef::String(text) => vec![text.to_owned()],
            ValueRef::Array(all) => {
                let text = |one: ValueRef<'_>| match one {
                    ValueRef::String(text) => Ok(text.to_owned()),
                    _ => Err(error()),
                };
                all.iter().map(text).collect::<Result<_, Error>>()?
            }
            _ => return Err(error()),
        };
        if strings.is_empty() {
            Err(error())
        } else {
            Ok(strings)
        }
    }

    /// Returns the paths of the field `path`. Fails if there are none.
    pub fn paths(&self) -> Result<Vec<SearchPath>, Error> {
        let paths = match self.required("path")? {
            ValueRef::Array(all) => all.iter().map(|one| self.path(one)).collect(),
            one => self.path(one).map(|path| vec![path]),
        };
        let paths: Vec<SearchPath> = paths?;
        if paths.is_empty() {
            Err(bad(format!("\"{}.path\" must not be empty", self.name)))
        } else {
            Ok(paths)
        }
    }

    fn path(&self, value: ValueRef<'_>) -> Result<SearchPath, Error> {
        if let ValueRef::String(path) = value {
            return Ok(SearchPath::Field(path.to_owned()));
        }
        let options = Options::new("path", value)?;
        options.check(&["value", "multi", "wildcard"])?;
        let found = (
            options.string("value")?,
            options.string("multi")?,
            options.string("wildcard")?,
        );
        match found {
            (Some(field), None, None) => Ok(SearchPath::Field(field.to_owned())),
            (Some(field), Some(multi), None) => Ok(SearchPath::Multi {
                field: field.to_owned(),
                multi: multi.to_owned(),
            }),
            (None, None, Some(pattern)) => Ok(SearchPath::Wildcard(pattern.to_owned())),
            _ => Err(bad(format!(
                "\"{}.path\" must be a string, {{value, multi}} or {{wildcard}}",
                self.name
            ))),
        }
    }
}

/// Returns an optional number. Fails for values of other types.
pub fn optional_number(options: &Options<'_>, field: &str) -> Result<Option<f64>, Error> {
    match options.get(field) {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|_| value.is_number()) {
            Some(number) => Ok(Some(number)),
            None => Err(bad(format!(
                "\"{}.{field}\" must be a number",
                options.name
            ))),
        },
    }
}
