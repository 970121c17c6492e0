//! `$graphLookup`: the documents that can be reached from a row, step by step.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_document::path::Path;
use windrow_document::{
    ArrayBuf, ArrayBuilder, Collation, Document, DocumentBuf, Value, ValueRef, key,
};
use windrow_interrupt::Interrupt;
use windrow_mql::FieldLineage;
use windrow_mql::expression::{Dependencies, Expression};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::memory::check_growth;

use super::chain::matching;
use super::operand;
use super::path_values::{visit, with_value};
use super::rows::check_array;
use super::stage::{PipelineContext, StageKind, Transformation};
use super::transform::row_context;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, SORT_BYTES_MAX, counted};
use crate::row::{Content, Row};
use crate::source::Source;

/// A parsed `$graphLookup`.
#[derive(Clone, Debug)]
pub struct GraphLookup {
    from: String,
    start: Expression,
    from_field: Path,
    to_field: Path,
    into: Path,
    depth_max: Option<u64>,
    depth_field: Option<Path>,
    restriction: Option<DocumentBuf>,
}

fn wrong<T>(code: i32, message: &str) -> Result<T, Error> {
    Err(Error::new(code, message))
}

impl Transformation for GraphLookup {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = GraphLookupOperator::new(self.clone(), context.deeper(), input)?;
        Ok(Box::new(operator))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies {
            whole: true,
            ..Dependencies::default()
        }
    }

    fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        FieldLineage::outside(path, &self.into)
    }

    fn has_lineage(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn collect_collections(&self, names: &mut Vec<String>) {
        names.push(self.from.clone());
    }
}

/// Parses the operand. Fails with 40100 to 40105 or 40185 for wrong and missing fields, with 9 if
/// the operand is not a document or `from` is wrong.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return wrong(9, "the $graphLookup stage specification must be an object");
    };
    let (mut from, mut start, mut into) = (None, None, None);
    let (mut from_field, mut to_field, mut depth_field) = (None, None, None);
    let (mut depth_max, mut restriction) = (None, None);
    for (name, value) in document {
        match (name, value) {
            ("startWith", value) => start = Some(operand::expression(value, environment)?),
            ("maxDepth", value) => depth_max = Some(parse_depth(value)?),
            ("restrictSearchWithMatch", value) => {
                restriction = Some(parse_restriction(value, environment)?);
            }
            ("from", ValueRef::String(text)) => from = Some(text.to_owned()),
            ("from", _) => return wrong(9, "$graphLookup argument 'from' must be a string"),
            ("as", value) => into = Some(parse_path(name, value)?),
            ("connectFromField", value) => from_field = Some(parse_path(name, value)?),
            ("connectToField", value) => to_field = Some(parse_path(name, value)?),
            ("depthField", value) => depth_field = Some(parse_path(name, value)?),
            _ => {
                return Err(Error::new(
                    40104,
                    format!("Unknown argument to $graphLookup: {name}"),
                ));
            }
        }
    }
    let Some(from) = from else {
        return wrong(9, "must specify 'from' field for a $graphLookup");
    };
    match (start, from_field, to_field, into) {
        (Some(start), Some(from_field), Some(to_field), Some(into)) => {
            Ok(vec![StageKind::from_transformation(GraphLookup {
                from,
                start,
                from_field,
                to_field,
                into,
                depth_max,
                depth_field,
                restriction,
            })])
        }
        _ => wrong(
            40105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' \
             to be specified.",
        ),
    }
}

fn parse_path(name: &str, value: ValueRef<'_>) -> Result<Path, Error> {
    match value {
        ValueRef::String(text) => operand::check_path(text),
        _ => Err(Error::new(
            40103,
            format!("expected string as argument for {name}"),
        )),
    }
}

fn parse_restriction(value: ValueRef<'_>, environment: &Environment) -> Result<DocumentBuf, Error> {
    let ValueRef::Document(filter) = value else {
        return wrong(
            40185,
            "$graphLookup argument 'restrictSearchWithMatch' must be an object",
        );
    };
    let parsed = Filter::parse_with(filter, environment)?.without_near()?;
    match parsed.text() {
        Some(_) => wrong(2, "$text is not allowed within restrictSearchWithMatch"),
        None => Ok(filter.to_buf()),
    }
}

fn parse_depth(value: ValueRef<'_>) -> Result<u64, Error> {
    if !value.is_number() {
        return wrong(40100, "maxDepth requires a numeric argument");
    }
    match value.as_f64() {
        Some(number) if number < 0.0 => wrong(40101, "maxDepth requires a nonnegative argument"),
        _ => match value.as_whole() {
            Some(depth) => Ok(depth.unsigned_abs()),
            None => wrong(40102, "maxDepth could not be represented as a long long"),
        },
    }
}

pub(super) struct GraphLookupOperator {
    lookup: GraphLookup,
    context: PipelineContext,
    source: Arc<dyn Source>,
    input: BoxOperator,
    counters: Counters,
}

/// The documents that have been reached from one row.
#[derive(Default)]
struct ReachedDocuments {
    documents: Vec<ReachedDocument>,
    /// The keys of the `_id`s of the documents.
    ids: HashSet<Vec<u8>, RandomState>,
    /// The keys of the values that have been searched for.
    searched: HashSet<Vec<u8>, RandomState>,
    /// The memory of the documents, in bytes.
    bytes: usize,
}

struct ReachedDocument {
    content: Content,
    /// The value of `depthField`: 0 for the documents to which the start values lead.
    depth: u64,
}

impl GraphLookupOperator {
    pub fn new(
        lookup: GraphLookup,
        context: PipelineContext,
        input: BoxOperator,
    ) -> Result<GraphLookupOperator, Error> {
        let source = context.source(&lookup.from)?;
        Ok(GraphLookupOperator {
            lookup,
            context,
            source,
            input,
            counters: Counters::default(),
        })
    }

    /// Searches breadth first: all documents of one depth before those of the next.
    fn reach(&self, row: &Row, interrupt: &dyn Interrupt) -> Result<ReachedDocuments, Error> {
        let mut reached = ReachedDocuments::default();
        let mut frontier: VecDeque<Value> = VecDeque::new();
        let start = self
            .lookup
            .start
            .evaluate(&row_context(row, &self.context.environment))?;
        match start.to_value() {
            Some(Value::Array(array)) => frontier.extend(array.iter().map(ValueRef::to_value)),
            Some(value) => frontier.push_back(value),
            None => {}
        }
        let mut depth = 0;
        while !frontier.is_empty() && self.lookup.depth_max.is_none_or(|max| depth <= max) {
            let collation = self.context.environment.collation.as_deref();
            frontier.retain(|value| reached.mark_searched(value.as_ref(), collation));
            let found = self.step(frontier.drain(..).collect(), interrupt)?;
            for content in found {
                if reached.insert(&content, depth)? {
                    let document = ValueRef::Document(content.as_document());
                    visit(
                        document,
                        self.lookup.from_field.components(),
                        &mut |value| {
                            frontier.push_back(value.to_value());
                        },
                    );
                }
            }
            depth += 1;
        }
        Ok(reached)
    }

    /// Returns the documents that one of the values leads to.
    fn step(&self, values: Vec<Value>, interrupt: &dyn Interrupt) -> Result<Vec<Content>, Error> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        // Each step has its own cursor, which may have too few rows to check the interrupt.
        interrupt.check()?;
        let list: ArrayBuf = values.into_iter().collect();
        let mut condition = DocumentBuf::new();
        condition.push("$in", list);
        let mut reachable = DocumentBuf::new();
        reachable.push(&self.lookup.to_field.to_string(), condition);
        let filter = match &self.lookup.restriction {
            None => reachable,
            Some(restriction) => {
                let both: ArrayBuf = [restriction.clone(), reachable]
                    .into_iter()
                    .map(Value::from)
                    .collect();
                let mut filter = DocumentBuf::new();
                filter.push("$and", both);
                filter
            }
        };
        let document = filter.as_document();
        let filter = Filter::parse_with(document, &self.context.environment)?;
        let mut cursor = matching(document, filter, &self.source, &self.context)?;
        let mut found = Vec::new();
        while let Some(content) = cursor.next(interrupt)? {
            found.push(content);
        }
        Ok(found)
    }

    fn list(&self, reached: &ReachedDocuments) -> Result<ArrayBuf, Error> {
        let mut list = ArrayBuilder::new();
        for ReachedDocument { content, depth } in &reached.documents {
            let document = content.as_document();
            match &self.lookup.depth_field {
                Some(path) => {
                    let depth = ValueRef::Int64(*depth as i64);
                    let with_depth = with_value(document, path, Some(depth));
                    list.push(ValueRef::Document(with_depth.as_document()));
                }
                None => list.push(ValueRef::Document(document)),
            }
            check_array(list.len(), "$graphLookup")?;
        }
        Ok(list.finish())
    }
}

impl ReachedDocuments {
    /// Returns `true` if the value has not been searched for before. Marks it as searched.
    fn mark_searched(&mut self, value: ValueRef<'_>, collation: Option<&Collation>) -> bool {
        let mut bytes = Vec::new();
        key::append_with_collation(&mut bytes, value, false, collation);
        self.searched.insert(bytes)
    }

    /// Adds a document. Returns `false` if it has been reached before. Fails with 40099 if the
    /// documents take too much memory.
    fn insert(&mut self, content: &Content, depth: u64) -> Result<bool, Error> {
        let document: Document<'_> = content.as_document();
        let mut id = Vec::new();
        key::append(&mut id, document.get("_id").unwrap_or(ValueRef::Null));
        if !self.ids.insert(id) {
            return Ok(false);
        }
        self.bytes += document.as_bytes().len() + 64;
        if self.bytes > SORT_BYTES_MAX {
            return Err(Error::new(
                40099,
                "$graphLookup reached maximum memory consumption",
            ));
        }
        self.documents.push(ReachedDocument {
            content: content.clone(),
            depth,
        });
        Ok(true)
    }
}

impl Operator for GraphLookupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let Some(row) = self.input.next(interrupt)? else {
            return Ok(None);
        };
        let list = self.list(&self.reach(&row, interrupt)?)?;
        let value = ValueRef::Array(list.as_array());
        check_growth(row.document().as_bytes().len(), "", value)?;
        let document = with_value(row.document(), &self.lookup.into, Some(value));
        self.counters.returned += 1;
        Ok(Some(row.with(document)))
    }

    counted!(counters, input);
}
