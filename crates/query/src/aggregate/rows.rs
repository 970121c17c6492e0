//! Rows and documents that are held, and how long they may be.

use crate::Error;
use crate::cursor::Cursor;
use crate::operators::{Counters, Operator, Reads, counted};
use crate::row::{Content, Interrupt, Row};

/// Rows between two checks of whether to stop.
const ROWS_PER_CHECK: usize = 1024;

/// Rows that are in memory already. The operators above rely on the checks of those below, so these
/// rows are not read without one.
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
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.rows.len().is_multiple_of(ROWS_PER_CHECK) {
            interrupt.check()?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    struct Stopped;

    impl Interrupt for Stopped {
        fn check(&self) -> Result<(), Error> {
            Err(Error::Interrupted {
                code: 50,
                message: "time is over".to_owned(),
            })
        }
    }

    /// A `$facet` that had read all rows grouped them for seconds after its time was over.
    #[test]
    fn rows_in_memory_are_not_read_without_a_check() {
        let rows = (0..2_000).map(|number| Row::of(doc! { "_id": number }));
        let mut rows = Rows::new(rows.collect());
        let stopped = (0..ROWS_PER_CHECK).find_map(|_| rows.next(&Stopped).err());
        assert!(matches!(stopped, Some(Error::Interrupted { code: 50, .. })));
    }
}
