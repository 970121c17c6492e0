//! The table of operators.

use windrow_document::ValueRef;

use super::array_sort::N_ARGUMENTS;
use super::context::Scope;
use super::parse::{NamedArguments, OperandForm, Parse, Parser, Syntax};
use super::tree::{Evaluate, Expression, Operator, Prepare};
use super::{
    accumulators, arithmetic, array, array_object, array_scope, array_sort, bits, boolean,
    comparison, conditional, convert, date, meta, object, percentile, real, regex, rounding, set,
    string, variable, zip,
};
use crate::Error;

const fn operator(name: &'static str, form: OperandForm, evaluate: Evaluate) -> Syntax {
    let operator = Operator {
        name,
        evaluate,
        prepare: None,
        is_pure: true,
        compares: false,
    };
    Syntax { operator, form }
}

const fn exactly(name: &'static str, count: usize, evaluate: Evaluate) -> Syntax {
    operator(name, OperandForm::Exactly(count), evaluate)
}

const fn between(name: &'static str, least: usize, most: usize, evaluate: Evaluate) -> Syntax {
    operator(name, OperandForm::Between(least, most), evaluate)
}

const fn any(name: &'static str, evaluate: Evaluate) -> Syntax {
    operator(name, OperandForm::Any, evaluate)
}

const fn named(name: &'static str, named: &'static NamedArguments, evaluate: Evaluate) -> Syntax {
    operator(name, OperandForm::NamedArguments(named), evaluate)
}

const fn special(name: &'static str, parse: Parse, evaluate: Evaluate) -> Syntax {
    operator(name, OperandForm::Special(parse), evaluate)
}

impl Syntax {
    /// Marks an operator whose calls are not evaluated while parsing.
    const fn impure(mut self) -> Syntax {
        self.operator.is_pure = false;
        self
    }

    /// Marks an operator whose result for strings depends on the collation.
    const fn comparing(mut self) -> Syntax {
        self.operator.compares = true;
        self
    }

    const fn prepared(mut self, prepare: Prepare) -> Syntax {
        self.operator.prepare = Some(prepare);
        self
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// - 168: an operator is unknown.
    /// - 16020: an operator has a wrong number of arguments.
    /// - Other numbers of the single operators.
    ///
    /// ```
    /// use windrow_document::{ValueRef, doc};
    /// use windrow_mql::expression::{Expression, Scope};
    /// let source = doc! { "$multiply": [2, 3] };
    /// let six = Expression::parse(ValueRef::Document(source.as_document()), &Scope::new())?;
    /// assert_eq!(six.constant(), Some(&6.into()));
    /// # Ok::<(), windrow_mql::Error>(())
    /// ```
    pub fn parse(value: ValueRef<'_>, scope: &Scope) -> Result<Expression, Error> {
        let parsed = Parser::new(find, scope).parse(value)?;
        if !scope.constants_may_fail {
            parsed.check_constants()?;
        }
        Ok(parsed)
    }
}

/// All operators, sorted by name for binary search.
static OPERATORS: &[Syntax] = &[
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
    any("$avg", accumulators::avg),
    exactly("$binarySize", 1, object::binary_size),
    any("$bitAnd", bits::and),
    exactly("$bitNot", 1, bits::not),
    any("$bitOr", bits::or),
    any("$bitXor", bits::xor),
    exactly("$bsonSize", 1, object::bson_size),
    exactly("$ceil", 1, rounding::ceil),
    exactly("$cmp", 2, comparison::cmp).comparing(),
    any("$concat", string::concat),
    any("$concatArrays", array::concat_arrays),
    special("$cond", conditional::parse_cond, conditional::cond),
    special("$const", variable::parse_literal, variable::literal),
    named("$convert", &convert::CONVERT, convert::convert),
    exactly("$cos", 1, real::cos),
    exactly("$cosh", 1, real::cosh),
    named("$dateAdd", &date::shift::ADD, date::shift::date_add).prepared(date::argument::prepare),
    named("$dateDiff", &date::shift::DIFF, date::shift::date_diff)
        .prepared(date::argument::prepare),
    named(
        "$dateFromParts",
        &date::from_parts::ARGUMENTS,
        date::from_parts::date_from_parts,
    )
    .prepared(date::from_parts::prepare),
    named(
        "$dateFromString",
        &date::from_text::ARGUMENTS,
        date::from_text::date_from_string,
    )
    .prepared(date::from_text::prepare),
    named("$dateSubtract", &date::shift::ADD, date::shift::date_add)
        .prepared(date::argument::prepare),
    named(
        "$dateToParts",
        &date::to_parts::ARGUMENTS,
        date::to_parts::date_to_parts,
    )
    .prepared(date::argument::prepare),
    named(
        "$dateToString",
        &date::to_text::ARGUMENTS,
        date::to_text::date_to_string,
    )
    .prepared(date::to_text::prepare),
    named("$dateTrunc", &date::shift::TRUNC, date::shift::date_trunc)
        .prepared(date::argument::prepare),
    special("$dayOfMonth", date::part::parse, date::part::day_of_month),
    special("$dayOfWeek", date::part::parse, date::part::day_of_week),
    special("$dayOfYear", date::part::parse, date::part::day_of_year),
    exactly("$degreesToRadians", 1, real::degrees_to_radians),
    exactly("$divide", 2, arithmetic::divide),
    exactly("$eq", 2, comparison::eq).comparing(),
    exactly("$exp", 1, real::exp),
    special("$filter", array_scope::parse_filter, array_scope::filter),
    exactly("$first", 1, array::first),
    named("$firstN", &N_ARGUMENTS, array_sort::first_n),
    exactly("$floor", 1, rounding::floor),
    special("$getField", object::parse_get_field, object::get_field),
    exactly("$gt", 2, comparison::gt).comparing(),
    exactly("$gte", 2, comparison::gte).comparing(),
    special("$hour", date::part::parse, date::part::hour),
    special("$ifNull", conditional::parse_if_null, conditional::if_null),
    exactly("$in", 2, array::contains)
        .prepared(array::prepare_contains)
        .comparing(),
    between("$indexOfArray", 2, 4, array::index_of_array).comparing(),
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
    named("$lastN", &N_ARGUMENTS, array_sort::last_n),
    special("$let", variable::parse_let, variable::evaluate_let),
    special("$literal", variable::parse_literal, variable::literal),
    exactly("$ln", 1, real::ln),
    exactly("$log", 2, real::log),
    exactly("$log10", 1, real::log10),
    exactly("$lt", 2, comparison::lt).comparing(),
    exactly("$lte", 2, comparison::lte).comparing(),
    named("$ltrim", &string::TRIM, string::trim_start),
    special("$map", array_scope::parse_map, array_scope::map),
    any("$max", accumulators::max).comparing(),
    named("$maxN", &N_ARGUMENTS, array_sort::max_n).comparing(),
    special("$median", percentile::parse, percentile::percentile),
    any("$mergeObjects", accumulators::merge_objects),
    special("$meta", meta::parse, meta::meta).impure(),
    special("$millisecond", date::part::parse, date::part::millisecond),
    any("$min", accumulators::min).comparing(),
    named("$minN", &N_ARGUMENTS, array_sort::min_n).comparing(),
    special("$minute", date::part::parse, date::part::minute),
    exactly("$mod", 2, arithmetic::modulo),
    special("$month", date::part::parse, date::part::month),
    any("$multiply", arithmetic::multiply),
    exactly("$ne", 2, comparison::ne).comparing(),
    exactly("$not", 1, boolean::not),
    exactly("$objectToArray", 1, array_object::object_to_array),
    any("$or", boolean::or),
    special("$percentile", percentile::parse, percentile::percentile),
    exactly("$pow", 2, real::pow),
    exactly("$radiansToDegrees", 1, real::radians_to_degrees),
    special("$rand", meta::parse_rand, meta::rand).impure(),
    between("$range", 2, 3, array::range),
    special("$reduce", array_scope::parse_reduce, array_scope::reduce),
    named("$regexFind", &regex::ARGUMENTS, regex::regex_find).prepared(regex::prepare),
    named("$regexFindAll", &regex::ARGUMENTS, regex::regex_find_all).prepared(regex::prepare),
    named("$regexMatch", &regex::ARGUMENTS, regex::regex_match).prepared(regex::prepare),
    named("$replaceAll", &string::REPLACE, string::replace_all),
    named("$replaceOne", &string::REPLACE, string::replace_one),
    exactly("$reverseArray", 1, array::reverse_array),
    between("$round", 1, 2, rounding::round),
    named("$rtrim", &string::TRIM, string::trim_end),
    special("$second", date::part::parse, date::part::second),
    exactly("$setDifference", 2, set::difference).comparing(),
    any("$setEquals", set::equals)
        .prepared(set::prepare_equals)
        .comparing(),
    special("$setField", object::parse_set_field, object::set_field),
    any("$setIntersection", set::intersection).comparing(),
    exactly("$setIsSubset", 2, set::is_subset).comparing(),
    any("$setUnion", set::union).comparing(),
    special("$sigmoid", real::parse_sigmoid, real::sigmoid),
    exactly("$sin", 1, real::sin),
    exactly("$sinh", 1, real::sinh),
    exactly("$size", 1, array::size),
    between("$slice", 2, 3, array::slice),
    special(
        "$sortArray",
        array_sort::parse_sort_array,
        array_sort::sort_array,
    )
    .comparing(),
    exactly("$split", 2, string::split),
    exactly("$sqrt", 1, real::sqrt),
    any("$stdDevPop", accumulators::std_dev_pop),
    any("$stdDevSamp", accumulators::std_dev_samp),
    exactly("$strLenBytes", 1, string::length_in_bytes),
    exactly("$strLenCP", 1, string::length_in_points),
    exactly("$strcasecmp", 2, string::compare_ignoring_case),
    exactly("$substr", 3, string::substring_by_bytes),
    exactly("$substrBytes", 3, string::substring_by_bytes),
    exactly("$substrCP", 3, string::substring_by_points),
    exactly("$subtract", 2, arithmetic::subtract),
    any("$sum", accumulators::sum),
    special("$switch", conditional::parse_switch, conditional::switch),
    exactly("$tan", 1, real::tan),
    exactly("$tanh", 1, real::tanh),
    special("$toBool", convert::parse_to, convert::convert),
    special("$toDate", convert::parse_to, convert::convert),
    special("$toDecimal", convert::parse_to, convert::convert),
    special("$toDouble", convert::parse_to, convert::convert),
    exactly("$toHashedIndexKey", 1, convert::to_hashed_index_key),
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

/// Returns `true` if an operator has this name. The name includes the dollar sign.
pub(crate) fn is_operator(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the operator with this name. The name includes the dollar sign.
fn find(name: &str) -> Option<&'static Syntax> {
    let index = OPERATORS
        .binary_search_by(|one| one.operator.name.cmp(name))
        .ok()?;
    OPERATORS.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_operators_is_sorted() {
        for pair in OPERATORS.windows(2) {
            assert!(
                pair[0].operator.name < pair[1].operator.name,
                "{} {}",
                pair[0].operator.name,
                pair[1].operator.name
            );
        }
        OPERATORS
            .iter()
            .for_each(|one| assert!(find(one.operator.name).is_some()));
    }
}
