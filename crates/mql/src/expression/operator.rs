//! The table of operators, and how arguments are read.

use windrow_document::{Document, ValueRef};

use super::array_sort::N;
use super::call::Call;
use super::{Computed, Context, Expression, Scope};
use super::{
    accumulated, arithmetic, array, array_object, array_scope, array_sort, bits, boolean,
    comparison, conditional, convert, date, meta, object, percentile, real, regex, rounding, set,
    string, variable, zip,
};
use crate::Error;

pub(crate) type Evaluate = for<'a> fn(&'a Call, &Context<'a>) -> Result<Computed<'a>, Error>;

type Parse = fn(&'static Operator, ValueRef<'_>, &Scope) -> Result<Expression, Error>;
type Prepare = fn(&mut Call) -> Result<(), Error>;

/// One operator: its name, the form of its arguments, and what it does.
pub(crate) struct Operator {
    pub name: &'static str,
    pub form: Form,
    pub evaluate: Evaluate,
    /// Computes once what constant arguments fix.
    pub prepare: Option<Prepare>,
    /// The same arguments always give the same value.
    pub is_pure: bool,
}

/// How the operand of an operator is read.
pub(crate) enum Form {
    /// An array of so many arguments; a single one may stand without the array. 16020 otherwise.
    Exactly(usize),
    /// From so many to so many arguments. 28667 otherwise.
    Between(usize, usize),
    Any,
    Named(&'static Named),
    /// The operator reads its operand itself.
    Special(Parse),
}

/// Arguments by name: `{input: …, chars: …}`.
pub(crate) struct Named {
    /// The code where the operand is no document.
    pub not_document: i32,
    /// The code of a name that is not one of these.
    pub unknown: i32,
    /// The names, and the code where one that must stand does not.
    pub names: &'static [(&'static str, Option<i32>)],
}

const fn operator(name: &'static str, form: Form, evaluate: Evaluate) -> Operator {
    Operator {
        name,
        form,
        evaluate,
        prepare: None,
        is_pure: true,
    }
}

const fn exactly(name: &'static str, count: usize, evaluate: Evaluate) -> Operator {
    operator(name, Form::Exactly(count), evaluate)
}

const fn between(name: &'static str, least: usize, most: usize, evaluate: Evaluate) -> Operator {
    operator(name, Form::Between(least, most), evaluate)
}

const fn named(name: &'static str, named: &'static Named, evaluate: Evaluate) -> Operator {
    operator(name, Form::Named(named), evaluate)
}

const fn special(name: &'static str, parse: Parse, evaluate: Evaluate) -> Operator {
    operator(name, Form::Special(parse), evaluate)
}

impl Operator {
    /// Not to be computed while parsing.
    const fn impure(self) -> Operator {
        Operator {
            is_pure: false,
            ..self
        }
    }

    const fn prepared(self, prepare: Prepare) -> Operator {
        Operator {
            prepare: Some(prepare),
            ..self
        }
    }
}

const fn any(name: &'static str, evaluate: Evaluate) -> Operator {
    operator(name, Form::Any, evaluate)
}

/// All operators, by name.
static OPERATORS: &[Operator] = &[
    exactly("$abs", 1, rounding::abs),
    exactly("$acos", 1, real::acos),
    exactly("$acosh", 1, real::acosh),
    any("$add", arithmetic::add),
    exactly("$allElementsTrue", 1, set::all_elements_true),
    any("$and", boolean::and),
    exactly("$anyElementTrue", 1, set::any_element_true),
    exactly("$arrayElemAt", 2, array::array_elem_at),
    exactly("$arrayToObject", 1, array_object::array_to_object),
    exactly("$asin", 1, real::asin),
    exactly("$asinh", 1, real::asinh),
    exactly("$atan", 1, real::atan),
    exactly("$atan2", 2, real::atan2),
    exactly("$atanh", 1, real::atanh),
    any("$avg", accumulated::avg),
    exactly("$binarySize", 1, object::binary_size),
    any("$bitAnd", bits::and),
    exactly("$bitNot", 1, bits::not),
    any("$bitOr", bits::or),
    any("$bitXor", bits::xor),
    exactly("$bsonSize", 1, object::bson_size),
    exactly("$ceil", 1, rounding::ceil),
    exactly("$cmp", 2, comparison::cmp),
    any("$concat", string::concat),
    any("$concatArrays", array::concat_arrays),
    special("$cond", conditional::parse_cond, conditional::cond),
    special("$const", variable::parse_literal, variable::literal),
    named("$convert", &convert::CONVERT, convert::convert),
    exactly("$cos", 1, real::cos),
    exactly("$cosh", 1, real::cosh),
    named("$dateAdd", &date::shift::ADD, date::shift::date_add).prepared(date::shift::prepare),
    named("$dateDiff", &date::shift::DIFF, date::shift::date_diff).prepared(date::shift::prepare),
    named(
        "$dateFromParts",
        &date::from_parts::NAMES,
        date::from_parts::date_from_parts,
    )
    .prepared(date::from_parts::prepare),
    named(
        "$dateFromString",
        &date::from_text::NAMES,
        date::from_text::date_from_string,
    )
    .prepared(date::from_text::prepare),
    named("$dateSubtract", &date::shift::ADD, date::shift::date_add).prepared(date::shift::prepare),
    named(
        "$dateToParts",
        &date::to_parts::NAMES,
        date::to_parts::date_to_parts,
    )
    .prepared(date::to_parts::prepare),
    named(
        "$dateToString",
        &date::to_text::NAMES,
        date::to_text::date_to_string,
    )
    .prepared(date::to_text::prepare),
    named("$dateTrunc", &date::shift::TRUNC, date::shift::date_trunc)
        .prepared(date::shift::prepare),
    special("$dayOfMonth", date::part::parse, date::part::day_of_month),
    special("$dayOfWeek", date::part::parse, date::part::day_of_week),
    special("$dayOfYear", date::part::parse, date::part::day_of_year),
    exactly("$degreesToRadians", 1, real::degrees_to_radians),
    exactly("$divide", 2, arithmetic::divide),
    exactly("$eq", 2, comparison::eq),
    exactly("$exp", 1, real::exp),
    special("$filter", array_scope::parse_filter, array_scope::filter),
    exactly("$first", 1, array::first),
    named("$firstN", &N, array_sort::first_n),
    exactly("$floor", 1, rounding::floor),
    special("$getField", object::parse_get_field, object::get_field),
    exactly("$gt", 2, comparison::gt),
    exactly("$gte", 2, comparison::gte),
    special("$hour", date::part::parse, date::part::hour),
    special("$ifNull", conditional::parse_if_null, conditional::if_null),
    exactly("$in", 2, array::contains),
    between("$indexOfArray", 2, 4, array::index_of_array),
    between("$indexOfBytes", 2, 4, string::index_of_bytes),
    between("$indexOfCP", 2, 4, string::index_of_points),
    exactly("$isArray", 1, array::is_array),
    exactly("$isNumber", 1, object::is_number),
    special(
        "$isoDayOfWeek",
        date::part::parse,
        date::part::iso_day_of_week,
    ),
    special("$isoWeek", date::part::parse, date::part::iso_week),
    special("$isoWeekYear", date::part::parse, date::part::iso_week_year),
    exactly("$last", 1, array::last),
    named("$lastN", &N, array_sort::last_n),
    special("$let", variable::parse_let, variable::evaluate_let),
    special("$literal", variable::parse_literal, variable::literal),
    exactly("$ln", 1, real::ln),
    exactly("$log", 2, real::log),
    exactly("$log10", 1, real::log10),
    exactly("$lt", 2, comparison::lt),
    exactly("$lte", 2, comparison::lte),
    named("$ltrim", &string::TRIM, string::trim_start),
    special("$map", array_scope::parse_map, array_scope::map),
    any("$max", accumulated::max),
    named("$maxN", &N, array_sort::max_n),
    special("$median", percentile::parse, percentile::percentile),
    any("$mergeObjects", accumulated::merge_objects),
    special("$meta", meta::parse, meta::meta).impure(),
    special("$millisecond", date::part::parse, date::part::millisecond),
    any("$min", accumulated::min),
    named("$minN", &N, array_sort::min_n),
    special("$minute", date::part::parse, date::part::minute),
    exactly("$mod", 2, arithmetic::modulo),
    special("$month", date::part::parse, date::part::month),
    any("$multiply", arithmetic::multiply),
    exactly("$ne", 2, comparison::ne),
    exactly("$not", 1, boolean::not),
    exactly("$objectToArray", 1, array_object::object_to_array),
    any("$or", boolean::or),
    special("$percentile", percentile::parse, percentile::percentile),
    exactly("$pow", 2, real::pow),
    exactly("$radiansToDegrees", 1, real::radians_to_degrees),
    special("$rand", meta::parse_rand, meta::rand).impure(),
    between("$range", 2, 3, array::range),
    special("$reduce", array_scope::parse_reduce, array_scope::reduce),
    named("$regexFind", &regex::NAMES, regex::regex_find).prepared(regex::prepare),
    named("$regexFindAll", &regex::NAMES, regex::regex_find_all).prepared(regex::prepare),
    named("$regexMatch", &regex::NAMES, regex::regex_match).prepared(regex::prepare),
    named("$replaceAll", &string::REPLACE, string::replace_all),
    named("$replaceOne", &string::REPLACE, string::replace_one),
    exactly("$reverseArray", 1, array::reverse_array),
    between("$round", 1, 2, rounding::round),
    named("$rtrim", &string::TRIM, string::trim_end),
    special("$second", date::part::parse, date::part::second),
    exactly("$setDifference", 2, set::difference),
    any("$setEquals", set::equals).prepared(set::prepare_equals),
    special("$setField", object::parse_set_field, object::set_field),
    any("$setIntersection", set::intersection),
    exactly("$setIsSubset", 2, set::is_subset),
    any("$setUnion", set::union),
    exactly("$sin", 1, real::sin),
    exactly("$sinh", 1, real::sinh),
    exactly("$size", 1, array::size),
    between("$slice", 2, 3, array::slice),
    special(
        "$sortArray",
        array_sort::parse_sort_array,
        array_sort::sort_array,
    ),
    exactly("$split", 2, string::split),
    exactly("$sqrt", 1, real::sqrt),
    any("$stdDevPop", accumulated::std_dev_pop),
    any("$stdDevSamp", accumulated::std_dev_samp),
    exactly("$strLenBytes", 1, string::length_in_bytes),
    exactly("$strLenCP", 1, string::length_in_points),
    exactly("$strcasecmp", 2, string::compare_ignoring_case),
    exactly("$substr", 3, string::substring_by_bytes),
    exactly("$substrBytes", 3, string::substring_by_bytes),
    exactly("$substrCP", 3, string::substring_by_points),
    exactly("$subtract", 2, arithmetic::subtract),
    any("$sum", accumulated::sum),
    special("$switch", conditional::parse_switch, conditional::switch),
    exactly("$tan", 1, real::tan),
    exactly("$tanh", 1, real::tanh),
    special("$toBool", convert::parse_to, convert::convert),
    special("$toDate", convert::parse_to, convert::convert),
    special("$toDecimal", convert::parse_to, convert::convert),
    special("$toDouble", convert::parse_to, convert::convert),
    special("$toInt", convert::parse_to, convert::convert),
    special("$toLong", convert::parse_to, convert::convert),
    exactly("$toLower", 1, string::to_lower),
    special("$toObjectId", convert::parse_to, convert::convert),
    special("$toString", convert::parse_to, convert::convert),
    special("$toUUID", convert::parse_to, convert::convert),
    exactly("$toUpper", 1, string::to_upper),
    named("$trim", &string::TRIM, string::trim),
    between("$trunc", 1, 2, rounding::trunc),
    exactly("$tsIncrement", 1, date::part::ts_increment),
    exactly("$tsSecond", 1, date::part::ts_second),
    exactly("$type", 1, object::type_name),
    special("$unsetField", object::parse_unset_field, object::set_field),
    special("$week", date::part::parse, date::part::week),
    special("$year", date::part::parse, date::part::year),
    special("$zip", zip::parse, zip::zip),
];

/// Whether there is an operator of that name, with its dollar sign.
pub(crate) fn is_operator(name: &str) -> bool {
    find(name).is_some()
}

/// The operator of that name, with its dollar sign.
pub(crate) fn find(name: &str) -> Option<&'static Operator> {
    let place = OPERATORS
        .binary_search_by(|operator| operator.name.cmp(name))
        .ok()?;
    OPERATORS.get(place)
}

/// Parses `{name: operand}`. 168 InvalidPipelineOperator for a name that is not known.
pub(crate) fn parse(name: &str, operand: ValueRef<'_>, scope: &Scope) -> Result<Expression, Error> {
    let Some(operator) = find(name) else {
        return Err(Error::new(168, format!("Unrecognized expression '{name}'")));
    };
    let arguments = match operator.form {
        Form::Exactly(count) => list(operator.name, operand, scope, count..=count, 16020)?,
        Form::Between(least, most) => list(operator.name, operand, scope, least..=most, 28667)?,
        Form::Any => list(operator.name, operand, scope, 0..=usize::MAX, 0)?,
        Form::Named(named) => named.parse(operator.name, operand, scope)?,
        Form::Special(parse) => return parse(operator, operand, scope),
    };
    finish(Call::new(operator, arguments))
}

/// Prepares and folds a call.
pub(crate) fn finish(mut call: Call) -> Result<Expression, Error> {
    if let Some(prepare) = call.operator.prepare {
        prepare(&mut call)?;
    }
    Expression::call(call)
}

/// Arguments as a list; one alone needs no array around it.
pub(crate) fn list(
    name: &str,
    operand: ValueRef<'_>,
    scope: &Scope,
    counts: std::ops::RangeInclusive<usize>,
    code: i32,
) -> Result<Vec<Expression>, Error> {
    let arguments: Vec<Expression> = match operand {
        ValueRef::Array(array) => array
            .iter()
            .map(|value| Expression::parse(value, scope))
            .collect::<Result<_, _>>()?,
        single => vec![Expression::parse(single, scope)?],
    };
    if counts.contains(&arguments.len()) {
        return Ok(arguments);
    }
    let (least, most) = counts.into_inner();
    let expected = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    let found = arguments.len();
    let message = format!("Expression {name} takes {expected} arguments. {found} were passed in.");
    Err(Error::new(code, message))
}

impl Named {
    /// Reads the arguments into the order of the table.
    pub fn parse(
        &self,
        operator: &str,
        operand: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<Vec<Expression>, Error> {
        let values = self.values(operator, operand)?;
        let parse = |value: Option<ValueRef<'_>>| match value {
            Some(value) => Expression::parse(value, scope),
            None => Ok(super::ABSENT.clone()),
        };
        values.into_iter().map(parse).collect()
    }

    /// The arguments unparsed, in the order of the table.
    pub fn values<'v>(
        &self,
        operator: &str,
        operand: ValueRef<'v>,
    ) -> Result<Vec<Option<ValueRef<'v>>>, Error> {
        let document = self.document(operator, operand)?;
        let mut values = vec![None; self.names.len()];
        for (name, value) in document {
            let place = self.names.iter().position(|(known, _)| *known == name);
            match place.and_then(|place| values.get_mut(place)) {
                Some(slot) => *slot = Some(value),
                None => {
                    let message = format!("Unrecognized argument to {operator}: {name}");
                    return Err(Error::new(self.unknown, message));
                }
            }
        }
        for ((name, required), value) in self.names.iter().zip(&values) {
            if let (Some(code), None) = (required, value) {
                let message = format!("Missing '{name}' parameter to {operator}");
                return Err(Error::new(*code, message));
            }
        }
        Ok(values)
    }

    fn document<'v>(&self, operator: &str, operand: ValueRef<'v>) -> Result<Document<'v>, Error> {
        operand.as_document().ok_or_else(|| {
            let found = operand.type_of().name();
            let message =
                format!("{operator} only supports an object as its argument, found {found}");
            Error::new(self.not_document, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_every_operator_is_found() {
        for pair in OPERATORS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} {}",
                pair[0].name,
                pair[1].name
            );
        }
        OPERATORS
            .iter()
            .for_each(|operator| assert!(find(operator.name).is_some()));
    }
}
