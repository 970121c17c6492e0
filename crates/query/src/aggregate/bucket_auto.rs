//! `$bucketAuto`: a given number of groups of about the same size.

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, key};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_mql::expression::{Context, Dependencies, Expression};
use windrow_mql::filter::Environment;
use windrow_mql::interrupt::sort_by;
use windrow_mql::memory::check_document;

use super::granularity::Granularity;
use super::group::{self, GroupField};
use super::operand;
use super::stage::{PipelineContext, StageKind, Transformation};
use super::transform::row_context;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, bytes_max, counted, over_memory};
use crate::row::Row;

/// A parsed `$bucketAuto`.
#[derive(Clone, Debug)]
pub struct BucketAuto {
    group_by: Expression,
    buckets: usize,
    fields: Vec<GroupField>,
    granularity: Option<Granularity>,
}

/// Parses `{groupBy, buckets, output, granularity}`. Fails with 40239 to 40261, one code per rule.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            40240,
            "The argument to $bucketAuto must be an object",
        ));
    };
    let (mut group_by, mut buckets, mut fields, mut granularity) = (None, None, None, None);
    for (name, value) in document {
        match name {
            "groupBy" if !operand::is_expression(value) => {
                return Err(Error::new(
                    40239,
                    "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object",
                ));
            }
            "groupBy" => group_by = Some(operand::expression(value, environment)?),
            "buckets" => buckets = Some(parse_count(value)?),
            "output" => match value.as_document() {
                Some(output) => fields = Some(parse_output(output, environment)?),
                None => {
                    return Err(Error::new(
                        40244,
                        "The $bucketAuto 'output' field must be an object",
                    ));
                }
            },
            "granularity" => granularity = Some(Granularity::parse(value)?),
            other => {
                return Err(Error::new(
                    40245,
                    format!("Unrecognized option to $bucketAuto: {other}."),
                ));
            }
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(Error::new(
            40246,
            "$bucketAuto requires 'groupBy' and 'buckets' to be specified",
        ));
    };
    // An empty output is replaced by the count, as a missing one.
    let fields = fields.filter(|fields| !fields.is_empty()).map_or_else(
        || Ok(vec![group::count_field(environment)?]),
        Ok::<_, Error>,
    )?;
    Ok(vec![StageKind::from_transformation(BucketAuto {
        group_by,
        buckets,
        fields,
        granularity,
    })])
}

/// Fails with 4544714 if an accumulator's initial state depends on its group.
fn parse_output(output: Document<'_>, environment: &Environment) -> Result<Vec<GroupField>, Error> {
    let fields = group::output_fields(output, environment)?;
    if fields
        .iter()
        .all(|field| field.accumulator.has_constant_start())
    {
        Ok(fields)
    } else {
        Err(Error::new(
            4544714,
            "Can't refer to the group key in $bucketAuto",
        ))
    }
}

fn parse_count(value: ValueRef<'_>) -> Result<usize, Error> {
    if !value.is_number() {
        return Err(Error::new(
            40241,
            "The $bucketAuto 'buckets' field must be a numeric value",
        ));
    }
    let count = value
        .as_whole()
        .and_then(|count| i32::try_from(count).ok())
        .ok_or_else(|| {
            Error::new(
                40242,
                "The $bucketAuto 'buckets' field must be representable as a 32-bit integer",
            )
        })?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(
            40243,
            "The $bucketAuto 'buckets' field must be greater than 0",
        )),
    }
}

impl Transformation for BucketAuto {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        Ok(Box::new(BucketAutoOperator::new(
            self.clone(),
            context.environment.clone(),
            context.allow_disk_use,
            input,
        )?))
    }

    fn dependencies(&self) -> Dependencies {
        let mut found = self.group_by.dependencies();
        self.fields
            .iter()
            .for_each(|field| found.extend(field.accumulator.dependencies()));
        found
    }

    fn ends_dependencies(&self) -> bool {
        true
    }
}

/// A row with its sort key.
struct BucketRow {
    key: Vec<u8>,
    value: Value,
    row: Row,
}

/// A bucket and its boundaries.
struct AutoBucket {
    min: Value,
    max: Value,
    rows: std::ops::Range<usize>,
}

pub(super) struct BucketAutoOperator {
    bucket: BucketAuto,
    environment: Environment,
    bytes_max: usize,
    input: BoxOperator,
    result: Option<std::vec::IntoIter<DocumentBuf>>,
    counters: Counters,
}

impl BucketAutoOperator {
    pub fn new(
        bucket: BucketAuto,
        environment: Environment,
        allow_disk_use: bool,
        input: BoxOperator,
    ) -> Result<BucketAutoOperator, Error> {
        let bytes_max = bytes_max(allow_disk_use);
        Ok(BucketAutoOperator {
            bucket,
            environment,
            bytes_max,
            input,
            result: None,
            counters: Counters::default(),
        })
    }

    fn rows(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<BucketRow>, Error> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = self.input.next(interrupt)? {
            let value = {
                let context = row_context(&row, &self.environment);
                self.bucket
                    .group_by
                    .evaluate(&context)?
                    .to_value()
                    .unwrap_or(Value::Null)
            };
            if let Some(granularity) = &self.bucket.granularity {
                granularity.check(value.as_ref())?;
            }
            let mut key = Vec::new();
            let collation = self.environment.collation.as_deref();
            key::append_with_collation(&mut key, value.as_ref(), false, collation);
            bytes += key.len() + row.content.as_bytes().len() + size_of::<BucketRow>();
            if bytes > self.bytes_max {
                return Err(over_memory("$bucketAuto"));
            }
            rows.push(BucketRow { key, value, row });
        }
        sort_by(&mut rows, |one, other| one.key.cmp(&other.key))?;
        Ok(rows)
    }

    fn print(&self, bucket: &AutoBucket, rows: &[BucketRow]) -> Result<DocumentBuf, Error> {
        let mut builder = DocumentBuilder::new();
        builder.begin_document("_id");
        builder.append("min", bucket.min.as_ref());
        builder.append("max", bucket.max.as_ref());
        builder.end();
        let empty = Context::new(windrow_document::Document::EMPTY);
        for field in &self.bucket.fields {
            let mut state = field.accumulator.start(&empty)?;
            for keyed in rows_of(bucket, rows)? {
                field
                    .accumulator
                    .add(&mut state, &row_context(&keyed.row, &self.environment))?;
            }
            check_document(builder.len() + state.document_bytes())?;
            builder.append(&field.name, state.finish().as_ref());
        }
        Ok(builder.finish())
    }

    fn run(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<DocumentBuf>, Error> {
        let rows = self.rows(interrupt)?;
        let buckets = divide(&self.bucket, &rows)?;
        buckets
            .iter()
            .map(|bucket| self.print(bucket, &rows))
            .collect()
    }
}

fn rows_of<'r>(bucket: &AutoBucket, rows: &'r [BucketRow]) -> Result<&'r [BucketRow], Bug> {
    rows.get(bucket.rows.clone()).ok_or_else(|| {
        let (range, count) = (&bucket.rows, rows.len());
        Bug::new(format!("a bucket has the rows {range:?} of {count}"))
    })
}

/// Divides sorted rows into buckets. Each takes its share of the rows, and then those that equal
/// its last value or are below its rounded boundary.
fn divide(specification: &BucketAuto, rows: &[BucketRow]) -> Result<Vec<AutoBucket>, Error> {
    let share = ((rows.len() as f64 / specification.buckets as f64).round() as usize).max(1);
    let mut buckets: Vec<AutoBucket> = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let is_last = buckets.len() + 1 == specification.buckets;
        let mut end = if is_last {
            rows.len()
        } else {
            rows.len().min(start + share)
        };
        let (Some(first), Some(last)) = (rows.get(start), rows.get(end - 1)) else {
            let count = rows.len();
            let message = format!("a bucket has the rows from {start} to {end} of {count}");
            return Err(Bug::new(message).into());
        };
        let equal = |position: usize| rows.get(position).is_some_and(|row| row.key == last.key);
        while equal(end) {
            end += 1;
        }
        let mut max = last.value.clone();
        if let Some(granularity) = &specification.granularity {
            max = granularity.above(last.value.as_ref())?;
            let below = |position: usize| {
                rows.get(position)
                    .is_some_and(|row| row.value.as_ref().compare(max.as_ref()).is_lt())
            };
            while below(end) {
                end += 1;
            }
        }
        let min = match (buckets.last(), &specification.granularity) {
            (Some(before), Some(_)) => before.max.clone(),
            (None, Some(granularity)) => granularity.below(first.value.as_ref())?,
            _ => first.value.clone(),
        };
        buckets.push(AutoBucket {
            min,
            max,
            rows: start..end,
        });
        start = end;
    }
    if specification.granularity.is_none() {
        join_ends(&mut buckets);
    }
    Ok(buckets)
}

/// The upper boundary of a bucket is the lower one of the next. The last bucket ends with its
/// largest value.
fn join_ends(buckets: &mut [AutoBucket]) {
    let mins: Vec<Value> = buckets
        .iter()
        .skip(1)
        .map(|bucket| bucket.min.clone())
        .collect();
    buckets
        .iter_mut()
        .zip(mins)
        .for_each(|(bucket, next)| bucket.max = next);
}

impl Operator for BucketAutoOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.result.is_none() {
            self.result = Some(self.run(interrupt)?.into_iter());
        }
        let row = self.result.as_mut().and_then(Iterator::next).map(Row::new);
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}
