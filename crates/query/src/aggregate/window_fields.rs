//! `$setWindowFields`: fields that are computed from the documents around each document.

use windrow_document::path::Path;
use windrow_document::{Document, ValueRef, key};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_mql::expression::{Context, Dependencies, Expression};
use windrow_mql::filter::Environment;
use windrow_mql::memory::heap_bytes;
use windrow_mql::sort::Sort;
use windrow_mql::window::{Partition, WindowFunction};

use super::computed_fields::ComputedFields;
use super::operand;
use super::stage::{PipelineContext, StageKind, Transformation, sort_dependencies};
use super::transform::row_context;
use crate::Error;
use crate::operators::{
    BoxOperator, Counters, KeyedRow, MemoryLimit, Operator, SortedRows, Sorter, bytes_max, counted,
    over_memory,
};
use crate::row::Row;

/// A parsed `$setWindowFields`.
#[derive(Clone, Debug)]
pub struct WindowFields {
    partition_by: Option<Expression>,
    sort: Option<Sort>,
    fields: Vec<WindowField>,
    /// Adds the values to the documents. `None` if there are no fields.
    computed_fields: Option<ComputedFields>,
}

/// A field that is added to each document.
#[derive(Clone, Debug)]
pub(super) struct WindowField {
    pub path: Path,
    pub function: WindowFunction,
}

/// Parses `{partitionBy, sortBy, output}`. Fails with 9 if the operand is not a document, with
/// 40414 without `output`, with 40415 for unknown fields, with 14 for values of the wrong type, and
/// as window functions do.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        let message = "the $setWindowFields stage specification must be an object";
        return Err(Error::new(9, message));
    };
    let (mut partition_by, mut sort, mut output) = (None, None, None);
    for (name, value) in document {
        match (name, value) {
            ("partitionBy", value) => partition_by = Some(operand::expression(value, environment)?),
            ("sortBy", ValueRef::Document(order)) => {
                sort = Some(Sort::parse(order)?.with_collation(environment.collation.clone()));
            }
            ("sortBy", ValueRef::Null) => {}
            ("output", ValueRef::Document(fields)) => output = Some(fields),
            ("sortBy" | "output", other) => {
                let field = format_args!("$setWindowFields.{name}");
                return Err(operand::wrong_type(field, other));
            }
            _ => {
                return Err(operand::unknown_field(format_args!(
                    "$setWindowFields.{name}"
                )));
            }
        }
    }
    let output = output.ok_or_else(|| operand::missing_field("$setWindowFields.output"))?;
    let sort = sort.filter(|sort| !sort.pattern().is_empty());
    let scope = operand::scope(environment);
    let mut fields = Vec::new();
    for (name, specification) in output {
        check_conflicts(&fields, name)?;
        let function = WindowFunction::parse(specification, sort.as_ref(), &scope)?;
        fields.push(WindowField {
            path: operand::check_path(name)?,
            function,
        });
    }
    WindowFields::new(partition_by, sort, fields)
        .map(|stage| vec![StageKind::from_transformation(stage)])
}

/// Fails with 6307900 if the path of a field overlaps with one of the others.
pub(super) fn check_conflicts(fields: &[WindowField], name: &str) -> Result<(), Error> {
    let path = Path::parse(name);
    if fields.iter().any(|other| other.path.overlaps(&path)) {
        let message = "$setWindowFields 'output' specification contains two conflicting paths";
        Err(Error::new(6307900, message))
    } else {
        Ok(())
    }
}

impl WindowFields {
    /// Returns a stage with these functions, for stages that are built on this one.
    pub(super) fn new(
        partition_by: Option<Expression>,
        sort: Option<Sort>,
        fields: Vec<WindowField>,
    ) -> Result<WindowFields, Error> {
        let paths = fields.iter().map(|field| &field.path);
        let computed_fields = if fields.is_empty() {
            None
        } else {
            Some(ComputedFields::parse(paths)?)
        };
        Ok(WindowFields {
            partition_by,
            sort,
            fields,
            computed_fields,
        })
    }

    /// Appends the key of the row's partition. Fails with 14 if it is an array.
    fn append_partition(&self, context: &Context<'_>, key: &mut Vec<u8>) -> Result<(), Error> {
        let Some(partition_by) = &self.partition_by else {
            return Ok(());
        };
        let value = partition_by.evaluate(context)?;
        if value.as_ref().and_then(ValueRef::as_array).is_some() {
            let message = "An expression used to partition cannot evaluate to value of type array";
            return Err(Error::new(14, message));
        }
        key::append_with_collation(key, value.or_null(), false, context.collation);
        Ok(())
    }
}

impl Transformation for WindowFields {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        Ok(Box::new(WindowFieldsOperator::new(
            self.clone(),
            context.environment.clone(),
            context.allow_disk_use,
            input,
        )))
    }

    fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        if let Some(partition_by) = &self.partition_by {
            found.extend(partition_by.dependencies());
        }
        if let Some(sort) = &self.sort {
            found.extend(sort_dependencies(sort));
        }
        for WindowField { path, function } in &self.fields {
            found.extend(function.dependencies());
            // The types of the values on the path matter, too.
            if let Some((parent, _)) = path.to_string().rsplit_once('.') {
                found.add(parent);
            }
        }
        found
    }
}

/// Sorts the rows by partition, and computes one partition after the other.
pub(super) struct WindowFieldsOperator {
    stage: WindowFields,
    environment: Environment,
    input: BoxOperator,
    allow_disk_use: bool,
    sorter: Option<Sorter>,
    sorted: SortedRows,
    /// The first row of the next partition.
    first: Option<KeyedRow>,
    result: std::vec::IntoIter<Row>,
    counters: Counters,
}

/// The number of bytes in which the length of the partition key is stored, at the end of the key.
const LENGTH_BYTES: usize = size_of::<u32>();

impl WindowFieldsOperator {
    pub fn new(
        stage: WindowFields,
        environment: Environment,
        allow_disk_use: bool,
        input: BoxOperator,
    ) -> WindowFieldsOperator {
        WindowFieldsOperator {
            stage,
            environment,
            input,
            allow_disk_use,
            sorter: Some(Sorter::new(None, MemoryLimit::new(allow_disk_use))),
            sorted: SortedRows::empty(),
            first: None,
            result: Vec::new().into_iter(),
            counters: Counters::default(),
        }
    }

    fn take_all(&mut self, mut sorter: Sorter, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let (stage, environment) = (&self.stage, &self.environment);
        while let Some(row) = self.input.next(interrupt)? {
            sorter.add_with(row, |row, key| {
                stage.append_partition(&row_context(row, environment), key)?;
                let length = u32::try_from(key.len()).map_err(|_| {
                    let bytes = key.len();
                    Bug::new(format!("the key of a partition has {bytes} bytes"))
                })?;
                if let Some(sort) = &stage.sort {
                    sort.key(row.document(), &row.meta, key)?;
                }
                key.extend_from_slice(&length.to_be_bytes());
                Ok(())
            })?;
        }
        self.sorted = sorter.finish()?;
        self.first = self.sorted.next()?;
        Ok(())
    }

    /// Returns the rows of the next partition. Empty at the end.
    fn next_partition(&mut self) -> Result<Vec<KeyedRow>, Error> {
        let Some(first) = self.first.take() else {
            return Ok(Vec::new());
        };
        let mut bytes = first.row.bytes();
        let mut rows = vec![first];
        while let Some(next) = self.sorted.next()? {
            let is_other = match rows.first() {
                Some(first) => {
                    SortKey::split(&first.key)?.partition != SortKey::split(&next.key)?.partition
                }
                None => true,
            };
            if is_other {
                self.first = Some(next);
                break;
            }
            bytes += next.row.bytes() + size_of::<KeyedRow>();
            if bytes > bytes_max(self.allow_disk_use) {
                return Err(over_memory("$setWindowFields"));
            }
            rows.push(next);
        }
        Ok(rows)
    }

    fn compute(&self, rows: Vec<KeyedRow>, interrupt: &dyn Interrupt) -> Result<Vec<Row>, Error> {
        let mut columns = Vec::with_capacity(self.stage.fields.len());
        {
            let documents: Vec<Document<'_>> = rows.iter().map(|one| one.row.document()).collect();
            let keys = rows.iter().map(|one| Ok(SortKey::split(&one.key)?.order));
            let keys: Vec<&[u8]> = keys.collect::<Result<_, Error>>()?;
            let environment = &self.environment;
            let partition = Partition {
                documents: &documents,
                keys: &keys,
                sort: self.stage.sort.as_ref(),
                context: Context::new(Document::EMPTY)
                    .with_variables(&environment.variables)
                    .with_now(environment.now)
                    .with_collation(environment.collation.as_deref()),
            };
            let mut bytes = 0;
            for WindowField { function, .. } in &self.stage.fields {
                interrupt.check()?;
                let values = function.compute(&partition)?;
                let values_bytes = values.iter().flatten();
                bytes += values_bytes
                    .map(|one| heap_bytes(one.as_ref()))
                    .sum::<usize>();
                if bytes > bytes_max(self.allow_disk_use) {
                    return Err(over_memory("$setWindowFields"));
                }
                columns.push(values.into_iter());
            }
        }
        let Some(computed_fields) = &self.stage.computed_fields else {
            return Ok(rows.into_iter().map(|keyed| keyed.row).collect());
        };
        let with_fields = |keyed: KeyedRow| {
            let values = columns.iter_mut().map(|values| values.next().flatten());
            let document = computed_fields.apply(keyed.row.document(), values)?;
            Ok(keyed.row.with(document))
        };
        rows.into_iter().map(with_fields).collect()
    }
}

/// The parts of the key by which a row is sorted.
struct SortKey<'k> {
    /// The key of the partition.
    partition: &'k [u8],
    /// The key of the row within its partition. Empty without a sort.
    order: &'k [u8],
}

impl SortKey<'_> {
    fn split(key: &[u8]) -> Result<SortKey<'_>, Bug> {
        let parts = key.split_last_chunk::<LENGTH_BYTES>();
        let parts = parts.and_then(|(keys, length)| {
            let length = u32::from_be_bytes(*length) as usize;
            keys.split_at_checked(length)
        });
        let (partition, order) = parts.ok_or_else(|| {
            let bytes = key.len();
            Bug::new(format!(
                "the length at the end of a key of {bytes} bytes exceeds the key"
            ))
        })?;
        Ok(SortKey { partition, order })
    }
}

impl Operator for WindowFieldsOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(sorter) = self.sorter.take() {
            self.take_all(sorter, interrupt)?;
        }
        if self.result.len() == 0 {
            let rows = self.next_partition()?;
            self.result = self.compute(rows, interrupt)?.into_iter();
        }
        let row = self.result.next();
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}
