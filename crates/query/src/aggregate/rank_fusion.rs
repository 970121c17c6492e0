//! `$rankFusion`: merges the results of several pipelines by the ranks of the documents.
//!
//! The score of a document is the sum of weight / (60 + rank) over the pipelines that return it.
//! Source of the formula: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
//! Condorcet and individual Rank Learning Methods" (2009), and MongoDB's manual.

mod parse;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc, key};
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Dependencies;
use windrow_mql::sort::Sort;
use windrow_mql::{FusedScore, Meta};

use super::rows::Rows;
use super::stage::{Pipeline, PipelineContext, ScoreMetadata, StageKind, Transformation};
use crate::Error;
use crate::cursor::Cursor;
use crate::operators::{BoxOperator, Counters, Operator, bytes_max, counted, over_memory};
use crate::row::Row;
use crate::source::Source;

pub(super) use parse::{NAME, NOT_FIRST, PipelineParser, SCORE_FUSION, parse};

/// A parsed `$rankFusion`.
#[derive(Clone, Debug)]
pub struct RankFusion {
    inputs: Vec<FusionInput>,
    with_details: bool,
}

/// A pipeline that ranks documents.
#[derive(Clone, Debug)]
struct FusionInput {
    name: String,
    weight: f64,
    pipeline: Pipeline,
}

/// The constant that is added to each rank, to lower the influence of the first ranks.
const RANK_CONSTANT: f64 = 60.0;

impl FusionInput {
    /// Returns the order that decides if two documents have the same rank: the last sort, unless a
    /// random sample follows.
    fn order(&self) -> Option<&Sort> {
        let mut stages = self.pipeline.stages.iter().rev();
        stages.find_map(|stage| match &stage.kind {
            StageKind::Sort { sort, .. } => Some(Some(sort)),
            StageKind::Other(other) if other.shuffles() => Some(None),
            _ => None,
        })?
    }
}

impl Transformation for RankFusion {
    /// Runs each pipeline on the same rows.
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        Ok(Box::new(Fusion::new(
            self.clone(),
            FusionRows::Rows(input),
            context,
        )))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies {
            whole: true,
            ..Dependencies::default()
        }
    }

    /// Runs each pipeline on the collection or view, each with its own plan.
    fn over_source(
        &self,
        source: &Arc<dyn Source>,
        context: &PipelineContext,
    ) -> Option<Result<BoxOperator, Error>> {
        let open = |input: &FusionInput| {
            let rows = input.pipeline.over_source(source, None, context);
            rows.map(Cursor::into_operator)
        };
        let inputs: Result<Vec<BoxOperator>, Error> = self.inputs.iter().map(open).collect();
        Some(inputs.map(|inputs| -> BoxOperator {
            Box::new(Fusion::new(self.clone(), FusionRows::Open(inputs), context))
        }))
    }

    fn scores(&self) -> Option<ScoreMetadata> {
        Some(if self.with_details {
            ScoreMetadata::WithDetails
        } else {
            ScoreMetadata::ScoreOnly
        })
    }
}

/// The rows of the pipelines.
enum FusionRows {
    Open(Vec<BoxOperator>),
    Rows(BoxOperator),
}

/// A document with its rank in each pipeline.
struct RankedDocument {
    row: Row,
    ranks: Vec<Option<u64>>,
}

/// A ranked document with its score and the key of its `_id`.
struct ScoredDocument {
    score: f64,
    key: Vec<u8>,
    ranked: RankedDocument,
}

struct Fusion {
    stage: RankFusion,
    inputs: FusionRows,
    context: PipelineContext,
    /// The rows in the order of the result. `None` before they have been computed.
    rows: Option<std::vec::IntoIter<Row>>,
    counters: Counters,
}

impl Fusion {
    fn new(stage: RankFusion, inputs: FusionRows, context: &PipelineContext) -> Fusion {
        Fusion {
            stage,
            inputs,
            context: context.clone(),
            rows: None,
            counters: Counters::default(),
        }
    }

    /// Opens the operators of the pipelines.
    fn open(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<BoxOperator>, Error> {
        let input = match &mut self.inputs {
            FusionRows::Open(inputs) => return Ok(std::mem::take(inputs)),
            FusionRows::Rows(input) => input,
        };
        let rows = read_all(input, bytes_max(self.context.allow_disk_use), interrupt)?;
        let open = |input: &FusionInput| {
            let rows = Box::new(Rows::new(rows.clone()));
            input.pipeline.over_rows(rows, &self.context)
        };
        self.stage.inputs.iter().map(open).collect()
    }

    fn fuse(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<Row>, Error> {
        let operators = self.open(interrupt)?;
        let mut found = RankedDocuments::new(&self.stage, bytes_max(self.context.allow_disk_use));
        for (input, operator) in operators.into_iter().enumerate() {
            found.add_pipeline(input, operator, interrupt)?;
        }
        Ok(found.into_rows())
    }
}

/// Reads all rows, in a form that is cheap to clone.
fn read_all(
    input: &mut BoxOperator,
    bytes_max: usize,
    interrupt: &dyn Interrupt,
) -> Result<Vec<Row>, Error> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = input.next(interrupt)? {
        bytes += row.content.as_bytes().len();
        if bytes > bytes_max {
            return Err(over_memory(NAME));
        }
        rows.push(row.into_shared());
    }
    Ok(rows)
}

/// The documents that the pipelines have returned, by the key of their `_id`.
struct RankedDocuments<'f> {
    stage: &'f RankFusion,
    ranked: HashMap<Vec<u8>, RankedDocument>,
    bytes: usize,
    bytes_max: usize,
}

impl<'f> RankedDocuments<'f> {
    fn new(stage: &'f RankFusion, bytes_max: usize) -> RankedDocuments<'f> {
        RankedDocuments {
            stage,
            ranked: HashMap::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds the rows of one pipeline. Rows that are equal in the sort order have the same rank, and
    /// the rank of the next row is its position.
    fn add_pipeline(
        &mut self,
        input: usize,
        mut operator: BoxOperator,
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        let order = self.stage.inputs.get(input).and_then(FusionInput::order);
        let (mut rank, mut number, mut last) = (0, 0, Vec::new());
        while let Some(row) = operator.next(interrupt)? {
            number += 1;
            let mut key = Vec::new();
            if let Some(order) = order {
                order.key(row.document(), &row.meta, &mut key)?;
            }
            if order.is_none() || number == 1 || key != last {
                rank = number;
            }
            last = key;
            self.add(input, rank, row)?;
        }
        Ok(())
    }

    fn add(&mut self, input: usize, rank: u64, row: Row) -> Result<(), Error> {
        let id = row.document().get("_id").unwrap_or(ValueRef::Null);
        let mut key = Vec::new();
        key::append(&mut key, id);
        self.bytes += row.content.as_bytes().len() + key.len();
        if self.bytes > self.bytes_max {
            return Err(over_memory(NAME));
        }
        let ranked = match self.ranked.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(RankedDocument {
                row,
                ranks: vec![None; self.stage.inputs.len()],
            }),
        };
        if let Some(slot) = ranked.ranks.get_mut(input) {
            // If a pipeline returns a document twice, the better rank counts.
            slot.get_or_insert(rank);
        }
        Ok(())
    }

    /// Returns the rows with their scores: the highest score first, equal scores by `_id`.
    fn into_rows(self) -> Vec<Row> {
        let stage = self.stage;
        let scored = self.ranked.into_iter().map(|(key, ranked)| ScoredDocument {
            score: stage.score(&ranked.ranks),
            key,
            ranked,
        });
        let mut scored: Vec<ScoredDocument> = scored.collect();
        scored.sort_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then_with(|| one.key.cmp(&other.key))
        });
        let rows = scored
            .into_iter()
            .map(|ScoredDocument { score, ranked, .. }| {
                let details = stage
                    .with_details
                    .then(|| stage.details(score, &ranked.ranks));
                let fused = Some(Box::new(FusedScore { score, details }));
                Row {
                    meta: Meta {
                        fused,
                        ..Meta::default()
                    },
                    ..ranked.row
                }
            });
        rows.collect()
    }
}

impl RankFusion {
    fn score(&self, ranks: &[Option<u64>]) -> f64 {
        let parts = self.inputs.iter().zip(ranks);
        let parts = parts.filter_map(|(input, rank)| {
            rank.map(|rank| input.weight * (1.0 / (rank as f64 + RANK_CONSTANT)))
        });
        // Starts with 0.0, because an empty sum would be -0.0.
        parts.fold(0.0, |sum, part| sum + part)
    }

    /// Returns the document that `{$meta: "scoreDetails"}` shows.
    fn details(&self, score: f64, ranks: &[Option<u64>]) -> DocumentBuf {
        let describe = |(input, rank): (&FusionInput, &Option<u64>)| -> Value {
            let name = input.name.as_str();
            match rank {
                None => doc! { "inputPipelineName": name, "rank": "NA" }.into(),
                Some(rank) => doc! {
                    "inputPipelineName": name, "rank": (Value::whole(*rank as i64)), "weight": (input.weight),
                    "details": [],
                }
                .into(),
            }
        };
        let details: ArrayBuf = self.inputs.iter().zip(ranks).map(describe).collect();
        doc! {
            "value": score,
            "description": "value output by reciprocal rank fusion algorithm, computed as sum of \
                            (weight * (1 / (60 + rank))) across input pipelines from which this \
                            document is output, from:",
            "details": details,
        }
    }
}

impl Operator for Fusion {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.rows.is_none() {
            self.rows = Some(self.fuse(interrupt)?.into_iter());
        }
        let row = self.rows.as_mut().and_then(Iterator::next);
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters);
}
