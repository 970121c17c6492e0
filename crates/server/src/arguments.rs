//! Reads the arguments of a command with MongoDB's type rules and messages.

use windrow_document::decimal::Rounding;
use windrow_document::{Array, Document, Timestamp, Type, ValueRef};
use windrow_wire::limits::WRITE_BATCH_COUNT_MAX;
use windrow_wire::{CommandError, ErrorCode, Request, RequestDocuments};

/// The arguments of a command. Each method reads one argument by name. It returns `Ok(None)` if the
/// argument is missing or null, and fails with TypeMismatch and MongoDB's message if it has another
/// type.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    command: &'a str,
    body: Document<'a>,
    names: Names,
}

/// A set of hashed field names. Most arguments of a command are absent, and searching a short
/// command for each of them would take longer than running it.
#[derive(Clone, Copy)]
struct Names(u64);

impl Names {
    fn new(document: Document<'_>) -> Names {
        let mut elements = document.elements();
        let mut bits = 0;
        while let Some(element) = elements.next_raw() {
            bits |= Names::bit(element.name);
        }
        Names(bits)
    }

    fn may_have(self, name: &str) -> bool {
        self.0 & Names::bit(name.as_bytes()) != 0
    }

    /// Returns one of 64 bits for a name. The factors are chosen for the names that drivers send
    /// with `find` and `insert`: none shares its bit with another name that is looked up there.
    fn bit(name: &[u8]) -> u64 {
        let [first, last] = [name.first(), name.last()].map(|byte| byte.map_or(0, |&it| it.into()));
        1 << ((20 * first + 26 * last + name.len()) % 64)
    }
}

impl<'a> Arguments<'a> {
    /// Creates the arguments of a request.
    pub fn new(request: &'a Request) -> Arguments<'a> {
        Arguments::within(request.command(), request.body())
    }

    /// Returns the arguments in a nested document of a command. `path` is its name in errors.
    pub fn within(path: &'a str, document: Document<'a>) -> Arguments<'a> {
        Arguments {
            command: path,
            body: document,
            names: Names::new(document),
        }
    }

    /// Returns the argument as sent, if it is present.
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        if self.names.may_have(name) {
            self.body.get(name)
        } else {
            None
        }
    }

    /// Returns the argument, or `None` if it is null, which MongoDB treats as absent.
    pub fn present(&self, name: &str) -> Option<ValueRef<'a>> {
        self.get(name).filter(|value| !value.is_nullish())
    }

    /// Returns an argument that is a string. `None` if it is missing or null. Fails with
    /// TypeMismatch for other values.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>, CommandError> {
        self.typed(name, &[Type::String], ValueRef::as_str)
    }

    /// Returns an argument that is a document. Fails as [`string`](Self::string) does.
    pub fn document(&self, name: &str) -> Result<Option<Document<'a>>, CommandError> {
        self.typed(name, &[Type::Document], ValueRef::as_document)
    }

    /// Returns an argument that is an array. Fails as [`string`](Self::string) does.
    pub fn array(&self, name: &str) -> Result<Option<Array<'a>>, CommandError> {
        self.typed(name, &[Type::Array], ValueRef::as_array)
    }

    /// Returns a boolean. See [`flag`](Self::flag) for arguments that also accept numbers.
    pub fn bool(&self, name: &str) -> Result<Option<bool>, CommandError> {
        self.typed(name, &[Type::Bool], ValueRef::as_bool)
    }

    /// Returns a boolean, as [`bool`](Self::bool) does, but null has a wrong type.
    pub fn non_null_bool(&self, name: &str) -> Result<Option<bool>, CommandError> {
        match self.get(name) {
            Some(value) if value.is_nullish() => {
                Err(self.wrong_type(name, value.type_of(), &[Type::Bool]))
            }
            _ => self.bool(name),
        }
    }

    /// Returns an argument that is a timestamp. Fails as [`string`](Self::string) does.
    pub fn timestamp(&self, name: &str) -> Result<Option<Timestamp>, CommandError> {
        let read = |value: ValueRef<'a>| match value {
            ValueRef::Timestamp(time) => Some(time),
            _ => None,
        };
        self.typed(name, &[Type::Timestamp], read)
    }

    /// Returns a UUID: 16 bytes of binary data with the subtype of UUIDs. Fails with TypeMismatch
    /// for other values, and with InvalidUUID for another length.
    pub fn uuid(&self, name: &str) -> Result<Option<[u8; 16]>, CommandError> {
        let bytes = |value: ValueRef<'a>| match value {
            ValueRef::Binary { subtype: 4, bytes } => Some(bytes),
            _ => None,
        };
        let given = self.typed(name, &[Type::Binary], bytes)?;
        given.map(uuid_of).transpose()
    }

    /// Returns a boolean, or a number, which is `true` if it is not zero. `false` if it is missing.
    pub fn flag(&self, name: &str) -> Result<bool, CommandError> {
        Ok(self.switch(name)?.unwrap_or(false))
    }

    /// Returns a boolean or a number, as [`flag`](Self::flag) does, and `None` if it is missing.
    pub fn switch(&self, name: &str) -> Result<Option<bool>, CommandError> {
        let types = [
            Type::Bool,
            Type::Int64,
            Type::Int32,
            Type::Decimal128,
            Type::Double,
        ];
        let is_one =
            |value: ValueRef<'_>| types.contains(&value.type_of()).then(|| value.is_truthy());
        self.typed(name, &types, is_one)
    }

    /// Returns a number of any type, converted as in [`whole`].
    pub fn whole_number(&self, name: &str) -> Result<Option<i64>, CommandError> {
        self.typed(name, NUMBERS, whole)
    }

    /// Returns a number, as [`whole_number`](Self::whole_number) does, but fails for negative
    /// numbers.
    pub fn count(&self, name: &str) -> Result<Option<u64>, CommandError> {
        let Some(number) = self.whole_number(name)? else {
            return Ok(None);
        };
        u64::try_from(number).map(Some).map_err(|_| {
            let path = self.path(name);
            CommandError::new(
                ErrorCode::BadValue,
                format!("BSON field '{path}' value must be >= 0, actual value '{number}'"),
            )
        })
    }

    /// Returns a string that must be one of the known values. Fails with BadValue for other
    /// strings.
    pub fn one_of(&self, name: &str, known: &[&str]) -> Result<Option<&'a str>, CommandError> {
        match self.string(name)? {
            Some(word) if !known.contains(&word) => {
                let path = self.path(name);
                let message =
                    format!("Enumeration value '{word}' for field '{path}' is not a valid value.");
                Err(CommandError::new(ErrorCode::BadValue, message))
            }
            word => Ok(word),
        }
    }

    /// Fails with IDLUnknownField if a field has none of these names.
    pub fn only(&self, known: &[&str]) -> Result<(), CommandError> {
        self.only_if(|name| known.contains(&name))
    }

    /// Fails with IDLUnknownField if a field has a name for which `is_known` returns `false`.
    pub fn only_if(&self, is_known: impl Fn(&str) -> bool) -> Result<(), CommandError> {
        match self.body.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }

    /// Returns the name of an argument in errors: that of the command and its own.
    pub fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.command)
    }

    /// Returns the error of an unknown argument.
    pub fn unknown(&self, name: &str) -> CommandError {
        let message = format!("BSON field '{}' is an unknown field.", self.path(name));
        CommandError::new(ErrorCode::IDLUnknownField, message)
    }

    /// Returns the error of a missing argument.
    pub fn missing(&self, name: &str) -> CommandError {
        let path = self.path(name);
        let message = format!("BSON field '{path}' is missing but a required field");
        CommandError::new(ErrorCode::IDLFailedToParse, message)
    }

    /// Returns the error of an argument with a wrong type.
    pub fn wrong_type(&self, name: &str, found: Type, expected: &[Type]) -> CommandError {
        let (path, found) = (self.path(name), found.name());
        let names: Vec<&str> = expected.iter().map(|one| one.name()).collect();
        let expected = match names.as_slice() {
            [one] => format!("type '{one}'"),
            many => format!("types '[{}]'", many.join(", ")),
        };
        let message =
            format!("BSON field '{path}' is the wrong type '{found}', expected {expected}");
        CommandError::new(ErrorCode::TypeMismatch, message)
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &[Type],
        read: impl Fn(ValueRef<'a>) -> Option<T>,
    ) -> Result<Option<T>, CommandError> {
        let Some(value) = self.present(name) else {
            return Ok(None);
        };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong_type(name, value.type_of(), expected)),
        }
    }
}

/// Returns the statements of a write command: `documents`, `updates` or `deletes`, as a document
/// sequence or as an array. Fails if there are none, or more than 100,000.
pub fn statements<'a>(
    request: &'a Request,
    name: &str,
) -> Result<RequestDocuments<'a>, CommandError> {
    let missing = || Arguments::new(request).missing(name);
    let statements = request.documents(name)?.ok_or_else(missing)?;
    let count = statements.count();
    if !(1..=WRITE_BATCH_COUNT_MAX).contains(&count) {
        let message = format!(
            "Write batch sizes must be between 1 and {WRITE_BATCH_COUNT_MAX}. Got {count} operations."
        );
        return Err(CommandError::new(ErrorCode::InvalidLength, message));
    }
    Ok(statements)
}

/// Returns a UUID from its bytes. Fails for another length.
pub fn uuid_of(bytes: &[u8]) -> Result<[u8; 16], CommandError> {
    bytes.try_into().map_err(|_| {
        let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
        CommandError::new(ErrorCode::InvalidUUID, message)
    })
}

/// The number types, in the order of MongoDB's messages.
const NUMBERS: &[Type] = &[Type::Int64, Type::Int32, Type::Decimal128, Type::Double];

/// Converts a number to a whole number: a double is truncated, a decimal is rounded half to even.
/// NaN is 0. A number that does not fit in 64 bits becomes the nearest limit.
pub fn whole(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) => Some(number as i64),
        ValueRef::Decimal128(number) => {
            let rounded = number.to_places(0, Rounding::HalfEven);
            let exact = rounded.to_i64_exact();
            Some(exact.unwrap_or_else(|| rounded.to_f64() as i64))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use windrow_document::{DocumentBuf, Value, doc};

    #[test]
    fn write_batches_have_limits() {
        let check = |body: DocumentBuf, expected: Result<usize, i32>| {
            let request = request_for_tests(&body);
            let found = statements(&request, "documents");
            let found = found
                .map(|all| all.count())
                .map_err(|error| error.code.number());
            assert_eq!(found, expected, "{:.100}", body.to_string());
        };
        let many = |count: usize| {
            let list = vec![Value::from(doc! {}); count];
            doc! { "insert": "c", "documents": list, "$db": "a" }
        };
        check(many(1), Ok(1));
        check(many(100_000), Ok(100_000));
        check(many(0), Err(16));
        check(many(100_001), Err(16));
        check(doc! { "insert": "c", "$db": "a" }, Err(40414));
        check(doc! { "insert": "c", "documents": 1, "$db": "a" }, Err(14));
    }

    #[test]
    fn arguments_have_the_types_and_messages_of_mongodb() {
        let body = doc! { "s": "x", "n": 2.9, "b": true, "i": 1, "m": (-1), "nan": (f64::NAN) };
        let arguments = Arguments::within("find", body.as_document());
        assert_eq!(arguments.string("s").unwrap(), Some("x"));
        assert_eq!(arguments.string("missing").unwrap(), None);
        assert_eq!(arguments.whole_number("n").unwrap(), Some(2));
        assert_eq!(arguments.whole_number("nan").unwrap(), Some(0));
        assert_eq!(
            (arguments.flag("b").unwrap(), arguments.flag("i").unwrap()),
            (true, true)
        );
        let message = |error: CommandError| (error.code.number(), error.message);
        assert_eq!(
            message(arguments.string("n").unwrap_err()),
            (
                14,
                "BSON field 'find.n' is the wrong type 'double', expected type 'string'".into()
            )
        );
        assert_eq!(
            message(arguments.whole_number("s").unwrap_err()),
            (14, "BSON field 'find.s' is the wrong type 'string', expected types '[long, int, decimal, double]'".into())
        );
        assert_eq!(
            message(arguments.count("m").unwrap_err()),
            (
                2,
                "BSON field 'find.m' value must be >= 0, actual value '-1'".into()
            )
        );
    }
}
