//! Prints the tree as a query document in normal form, which explain shows as `parsedQuery`.

use windrow_document::{ArrayBuf, Document, DocumentBuf, DocumentBuilder, Value, ValueRef};

use super::node::{Node, TextQuery};

pub(super) fn document(node: &Node) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    append(node, &mut builder);
    builder.finish()
}

fn append(node: &Node, builder: &mut DocumentBuilder) {
    match node {
        Node::AlwaysTrue => {}
        Node::AlwaysFalse => builder.append("$alwaysFalse", ValueRef::Int32(1)),
        Node::And(children) => append_list("$and", children, builder),
        Node::Or(children) => append_list("$or", children, builder),
        Node::Nor(children) => append_list("$nor", children, builder),
        Node::Text(query) => append_text(query, builder),
        Node::Expr(condition) => builder.append("$expr", condition.source()),
        Node::Schema(schema) => builder.append("$jsonSchema", schema.source()),
        other => {
            let path = path_text(other);
            let condition = condition(other);
            builder.append(&path, ValueRef::Document(condition.as_document()));
        }
    }
}

fn append_list(name: &str, children: &[Node], builder: &mut DocumentBuilder) {
    let list: ArrayBuf = children
        .iter()
        .map(|child| Value::Document(document(child)))
        .collect();
    builder.append(name, ValueRef::Array(list.as_array()));
}

fn append_text(query: &TextQuery, builder: &mut DocumentBuilder) {
    builder.begin_document("$text");
    builder.append("$search", ValueRef::String(&query.search));
    builder.append(
        "$language",
        ValueRef::String(query.language.as_deref().unwrap_or("")),
    );
    builder.append("$caseSensitive", ValueRef::Bool(query.case_sensitive));
    builder.append(
        "$diacriticSensitive",
        ValueRef::Bool(query.diacritic_sensitive),
    );
    builder.end();
}

/// Returns the path of a condition. For a negation or a conjunction it is the path of its first
/// child.
fn path_text(node: &Node) -> String {
    match node {
        Node::Not(_) | Node::And(_) => node.children().first().map(path_text).unwrap_or_default(),
        other => other.path().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Returns the operators of a condition, without the path.
fn condition(node: &Node) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    append_condition(node, &mut builder);
    builder.finish()
}

fn append_condition(node: &Node, builder: &mut DocumentBuilder) {
    let mut document = |name: &str, inner: Document<'_>| {
        builder.append(name, ValueRef::Document(inner));
    };
    match node {
        Node::Not(child) => document("$not", condition(child).as_document()),
        Node::ElemMatchObject { condition, .. } => {
            document("$elemMatch", self::document(condition).as_document());
        }
        Node::ElemMatchValue { conditions, .. } => {
            let mut inner = DocumentBuilder::new();
            conditions
                .iter()
                .for_each(|one| append_condition(one, &mut inner));
            document("$elemMatch", inner.finish().as_document());
        }
        Node::And(children) => {
            children
                .iter()
                .for_each(|child| append_condition(child, builder));
        }
        Node::Geo { condition, .. } => append_all(condition.source(), builder),
        Node::Near { near, .. } => append_all(near.source(), builder),
        other => append_plain(other, builder),
    }
}

fn append_all(fields: Document<'_>, builder: &mut DocumentBuilder) {
    fields
        .iter()
        .for_each(|(name, value)| builder.append(name, value));
}

fn append_plain(node: &Node, builder: &mut DocumentBuilder) {
    match node {
        Node::Compare {
            operator, value, ..
        } => builder.append(operator.name(), value.as_ref()),
        Node::In {
            values, regexes, ..
        } => {
            let regexes = regexes.iter().map(|regex| Value::Regex {
                pattern: regex.pattern().to_owned(),
                options: regex.options().to_owned(),
            });
            let list: ArrayBuf = values.iter().cloned().chain(regexes).collect();
            builder.append("$in", ValueRef::Array(list.as_array()));
        }
        Node::Exists { .. } => builder.append("$exists", ValueRef::Bool(true)),
        Node::Type { types, .. } => {
            let numbers = types
                .iter()
                .filter(|one| !(types.number && one.is_number()));
            let number = types.number.then(|| Value::from("number"));
            let numbers = numbers.map(|one| Value::Int32(one.number()));
            let list: ArrayBuf = number.into_iter().chain(numbers).collect();
            builder.append("$type", ValueRef::Array(list.as_array()));
        }
        Node::Regex { regex, .. } => {
            builder.append("$regex", ValueRef::String(regex.pattern()));
            if !regex.options().is_empty() {
                builder.append("$options", ValueRef::String(regex.options()));
            }
        }
        Node::Size { size, .. } => builder.append("$size", Value::whole(*size).as_ref()),
        Node::Mod {
            divisor, remainder, ..
        } => {
            let list: ArrayBuf = [Value::whole(*divisor), Value::whole(*remainder)]
                .into_iter()
                .collect();
            builder.append("$mod", ValueRef::Array(list.as_array()));
        }
        Node::Bits { bits, .. } => {
            let positions = bits.positions.iter().map(|one| Value::Int32(*one as i32));
            let list: ArrayBuf = positions.collect();
            builder.append(bits.test.name(), ValueRef::Array(list.as_array()));
        }
        _ => {}
    }
}
