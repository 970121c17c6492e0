//! The kinds of queries that find an encrypted field: `queries` of a field.

use std::cmp::Ordering;

use windrow_document::{Type, Value, ValueRef};

use crate::error::{Error, code};
use crate::reader::Reader;

/// MongoDB's error codes for the rules on queries.
const NOT_ONE_QUERY: i32 = 6_338_404;
const EQUALITY_TYPE: i32 = 6_338_405;
const NO_TYPE: i32 = 6_412_601;
const RANGE_TYPE: i32 = 6_775_201;
const SPARSITY: i32 = 6_775_214;
const PRECISION_WITHOUT_BOUNDS: i32 = 6_967_100;
const BOUNDS_ORDER: i32 = 6_720_005;
const MIN_TYPE: i32 = 7_018_200;
const MAX_TYPE: i32 = 7_018_201;
const PRECISION_TYPE: i32 = 8_574_112;
const RANGE_PREVIEW: i32 = 8_575_605;
/// The options of ranges, with the code if a field of equality has them.
const ONLY_FOR_RANGES: &[(&str, i32)] = &[
    ("sparsity", 6_775_205),
    ("min", 6_775_206),
    ("max", 6_775_207),
    ("trimFactor", 8_574_104),
    ("precision", 10_774_900),
];
const SPARSITY_MAX: u64 = 8;

/// The kind of queries that find the values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldIndex {
    /// Queries for equality.
    Equality,
    /// Queries for ranges.
    Range(RangeBounds),
}

/// The domain of a field with ranges. Clients use it to split ranges into edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeBounds {
    /// The least value.
    pub min: Option<Value>,
    /// The greatest value.
    pub max: Option<Value>,
    /// The distance between the levels of the tree of edges that are used. With 2, every second
    /// level is used.
    pub sparsity: Option<u64>,
    /// The number of levels at the top of the tree that are not used.
    pub trim_factor: Option<u64>,
    /// The number of digits after the decimal point.
    pub precision: Option<u64>,
}

impl FieldIndex {
    /// Parses `queries`: a query type, or an array of one.
    pub(super) fn parse(
        queries: ValueRef<'_>,
        value_type: Option<Type>,
    ) -> Result<FieldIndex, Error> {
        let query = match queries {
            ValueRef::Array(list) if list.count() == 1 => list.get(0),
            ValueRef::Array(list) => return Err(several(list.iter())),
            other => Some(other),
        };
        let query = query.and_then(ValueRef::as_document).ok_or_else(|| {
            let message = "BSON field 'encryptedFields.fields.queries' is the wrong type, expected \
                           types '[object, array]'";
            Error::invalid(code::TYPE_MISMATCH, message)
        })?;
        refuse_text(query.get("queryType"))?;
        const KNOWN: &[&str] = &[
            "queryType",
            "contention",
            "min",
            "max",
            "sparsity",
            "precision",
            "trimFactor",
        ];
        let reader = Reader::new("encryptedFields.fields.queries", query, KNOWN)?;
        let name = reader.string("queryType")?;
        reader.optional_whole("contention")?;
        let value_type = value_type.ok_or_else(|| {
            let message = "an encrypted field with queries needs a bsonType";
            Error::invalid(NO_TYPE, message)
        });
        match name {
            "equality" => equality(&reader, value_type?),
            "range" => RangeBounds::parse(&reader, value_type?).map(FieldIndex::Range),
            "rangePreview" => {
                let message =
                    "the query type 'rangePreview' is obsolete, 'range' has taken its place";
                Err(Error::invalid(RANGE_PREVIEW, message))
            }
            _ => {
                let message = format!(
                    "Enumeration value '{name}' for field \
                     'encryptedFields.fields.queries.queryType' is not a valid value."
                );
                Err(Error::bad_value(message))
            }
        }
    }
}

/// Returns the error for several query types. Only those of parts of strings can be combined.
fn several<'a>(queries: impl Iterator<Item = ValueRef<'a>>) -> Error {
    let mut names = queries.filter_map(|it| it.as_document()?.get("queryType"));
    match names.find_map(|name| refuse_text(Some(name)).err()) {
        Some(refused) => refused,
        None => Error::invalid(NOT_ONE_QUERY, "an encrypted field has one query type"),
    }
}

/// Queries for parts of strings are not supported.
fn refuse_text(name: Option<ValueRef<'_>>) -> Result<(), Error> {
    let text = name.and_then(ValueRef::as_str).unwrap_or_default();
    match text.trim_end_matches("Preview") {
        "substring" | "suffix" | "prefix" => {
            let message = format!("the query type '{text}' of encrypted fields is not supported");
            Err(Error::Unsupported(message))
        }
        _ => Ok(()),
    }
}

fn equality(reader: &Reader<'_>, value_type: Type) -> Result<FieldIndex, Error> {
    let is_supported = !matches!(
        value_type,
        Type::JavaScriptWithScope
            | Type::Array
            | Type::Document
            | Type::Decimal128
            | Type::Double
            | Type::Null
            | Type::Undefined
            | Type::MinKey
            | Type::MaxKey
    );
    if !is_supported {
        let name = value_type.name();
        let message = format!("values of type '{name}' cannot be encrypted for equality");
        return Err(Error::invalid(EQUALITY_TYPE, message));
    }
    for (name, code) in ONLY_FOR_RANGES {
        if reader.get(name).is_some() {
            let message = format!("'{name}' is not an option of the query type 'equality'");
            return Err(Error::invalid(*code, message));
        }
    }
    Ok(FieldIndex::Equality)
}

impl RangeBounds {
    fn parse(reader: &Reader<'_>, value_type: Type) -> Result<RangeBounds, Error> {
        let is_fractional = matches!(value_type, Type::Double | Type::Decimal128);
        if !is_fractional && !matches!(value_type, Type::Int32 | Type::Int64 | Type::DateTime) {
            let name = value_type.name();
            let message = format!("values of type '{name}' cannot be encrypted for ranges");
            return Err(Error::invalid(RANGE_TYPE, message));
        }
        let bound = |name| reader.get(name).map(ValueRef::to_value);
        let bounds = RangeBounds {
            min: bound("min"),
            max: bound("max"),
            sparsity: reader.optional_whole("sparsity")?,
            trim_factor: reader.optional_whole("trimFactor")?,
            precision: reader.optional_whole("precision")?,
        };
        if bounds
            .sparsity
            .is_some_and(|it| !(1..=SPARSITY_MAX).contains(&it))
        {
            let message = format!("'sparsity' must be from 1 to {SPARSITY_MAX}");
            return Err(Error::invalid(SPARSITY, message));
        }
        bounds.check_precision(is_fractional)?;
        bounds.check_order(value_type)?;
        Ok(bounds)
    }

    fn check_precision(&self, is_fractional: bool) -> Result<(), Error> {
        let given = [&self.min, &self.max].map(|bound| bound.is_some());
        match self.precision {
            Some(_) if !is_fractional => {
                let message = "'precision' is only for the types double and decimal";
                Err(Error::invalid(PRECISION_TYPE, message))
            }
            precision if is_fractional && given != [precision.is_some(); 2] => {
                let message = "a range of type double or decimal has all of 'precision', 'min' and \
                               'max', or none";
                Err(Error::invalid(PRECISION_WITHOUT_BOUNDS, message))
            }
            _ => Ok(()),
        }
    }

    fn check_order(&self, value_type: Type) -> Result<(), Error> {
        for (bound, code, name) in [(&self.min, MIN_TYPE, "min"), (&self.max, MAX_TYPE, "max")] {
            if bound.as_ref().is_some_and(|it| it.type_of() != value_type) {
                let message = format!("'{name}' must be of the type of the field");
                return Err(Error::invalid(code, message));
            }
        }
        let (Some(min), Some(max)) = (&self.min, &self.max) else {
            return Ok(());
        };
        if min.as_ref().compare(max.as_ref()) == Ordering::Less {
            return Ok(());
        }
        Err(Error::invalid(
            BOUNDS_ORDER,
            "'min' must be less than 'max'",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, array, doc};

    /// `expected`: the code of the error, 0 without one, -1 for what is not supported.
    fn check(queries: Value, value_type: Option<Type>, expected: i32) {
        let code = match FieldIndex::parse(queries.as_ref(), value_type) {
            Ok(_) => 0,
            Err(Error::Invalid { code, .. }) => code,
            Err(Error::Unsupported(_)) => -1,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(code, expected, "{queries:?} {value_type:?}");
    }

    #[test]
    fn query_types_are_checked() {
        let one = |document: DocumentBuf| Value::from(document);
        let equality = || doc! { "queryType": "equality" };
        check(one(equality()), Some(Type::String), 0);
        check(one(equality()), None, NO_TYPE);
        check(one(equality()), Some(Type::Double), EQUALITY_TYPE);
        check(Value::from(array![(equality())]), Some(Type::Int32), 0);
        let twice = array![(equality()), (equality())];
        check(Value::from(twice), Some(Type::Int32), NOT_ONE_QUERY);
        check(Value::from(1), Some(Type::Int32), 14);
        check(one(doc! {}), Some(Type::Int32), 40_414);
        check(one(doc! { "queryType": "x" }), Some(Type::Int32), 2);
        check(
            one(doc! { "queryType": "rangePreview" }),
            Some(Type::Int32),
            RANGE_PREVIEW,
        );
        for name in ["substringPreview", "suffix", "prefixPreview"] {
            check(one(doc! { "queryType": name }), Some(Type::String), -1);
        }
        check(
            one(doc! { "queryType": "equality", "contention": -1 }),
            Some(Type::Int32),
            2,
        );
        check(
            one(doc! { "queryType": "equality", "min": 1 }),
            Some(Type::Int32),
            6_775_206,
        );
    }

    #[test]
    fn options_of_ranges_are_checked() {
        let range = |rest: DocumentBuf| {
            let mut query = doc! { "queryType": "range" };
            for (name, value) in rest.iter() {
                query.push(name, value);
            }
            Value::from(query)
        };
        check(range(doc! {}), Some(Type::Int32), 0);
        check(range(doc! {}), Some(Type::String), RANGE_TYPE);
        check(
            range(doc! { "min": 1, "max": 2, "sparsity": 8 }),
            Some(Type::Int32),
            0,
        );
        check(range(doc! { "sparsity": 9 }), Some(Type::Int32), SPARSITY);
        check(
            range(doc! { "min": 2, "max": 2 }),
            Some(Type::Int32),
            BOUNDS_ORDER,
        );
        check(range(doc! { "min": 2.0 }), Some(Type::Int32), MIN_TYPE);
        check(range(doc! { "max": 2i64 }), Some(Type::Int32), MAX_TYPE);
        check(
            range(doc! { "precision": 2 }),
            Some(Type::Int32),
            PRECISION_TYPE,
        );
        check(range(doc! {}), Some(Type::Double), 0);
        check(
            range(doc! { "min": 1.0, "max": 2.0 }),
            Some(Type::Double),
            PRECISION_WITHOUT_BOUNDS,
        );
        let all = doc! { "min": 1.0, "max": 2.0, "precision": 1 };
        check(range(all), Some(Type::Double), 0);
    }
}
