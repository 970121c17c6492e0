//! Rows and documents that are held, and how long they may be.

use crate::Error;
use crate::cursor::Cursor;
use crate::operators::{Counters, Operator, Reads, counted};
use crate::row::{Content, Interrupt, Row};

/// Rows that are there already.
pub(crate) struct Rows {
    rows: std::vec::IntoIter<Row>,
    counters: Counters,
}

impl Rows {
    pub fn new(rows: Vec<Row>) -> Rows {
        Rows {
            rows: rows.into_iter(),
            counters: Counters::default(),
        }
    }
}

impl Operator for Rows {
    fn next(&mut self, _: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.rows.next();
        self.counters.note(&row);
        Ok(row)
    }

    counted!(counters);
}

/// Takes one document after the other.
pub(crate) type Take<'t> = dyn FnMut(Content) -> Result<(), Error> + 't;

/// Gives the documents of a cursor to `take`, and adds what it has read to `reads`.
pub(crate) fn each(
    mut cursor: Cursor,
    reads: &mut Reads,
    interrupt: &dyn Interrupt,
    take: &mut Take<'_>,
) -> Result<(), Error> {
    while let Some(row) = cursor.next_row(interrupt)? {
        take(row.content)?;
    }
    cursor.add_reads(reads);
    Ok(())
}

/// No array of documents that a stage makes is longer than this: between stages documents may be longer
/// than those that leave.
pub(crate) const ARRAY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Error 10334 where what a stage makes of documents has grown longer than that.
pub(crate) fn check_array(bytes: usize, stage: &str) -> Result<(), Error> {
    match bytes > ARRAY_BYTES_MAX {
        true => {
            let message = format!("the document that {stage} makes is larger than 100 MB");
            Err(Error::new(10334, message))
        }
        false => Ok(()),
    }
}
