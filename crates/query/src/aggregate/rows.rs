//! Rows in memory, and size limits of documents between stages.

use windrow_interrupt::Interrupt;

use crate::Error;
use crate::cursor::Cursor;
use crate::operators::{Counters, Operator, ReadCounters, counted};
use crate::row::{Content, Row};

/// The number of rows between two checks of the interrupt.
const ROWS_PER_CHECK: usize = 1024;

/// Rows in memory, as the input of operators. It checks the interrupt, because operators rely on
/// the checks of their inputs.
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
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters);
}

/// A function that receives documents.
pub(crate) type DocumentConsumer<'t> = dyn FnMut(Content) -> Result<(), Error> + 't;

/// Passes the documents of a cursor to `take`, and adds its counters to `reads`.
pub(crate) fn each(
    mut cursor: Cursor,
    reads: &mut ReadCounters,
    interrupt: &dyn Interrupt,
    take: &mut DocumentConsumer<'_>,
) -> Result<(), Error> {
    while let Some(row) = cursor.next_row(interrupt)? {
        take(row.content)?;
    }
    cursor.add_reads(reads);
    Ok(())
}

/// The largest size of an array that a stage builds. Between stages, documents may be larger than
/// in replies.
pub(crate) const ARRAY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Fails with 10334 if an array that a stage builds has more than `ARRAY_BYTES_MAX` bytes.
pub(crate) fn check_array(bytes: usize, stage: &str) -> Result<(), Error> {
    if bytes > ARRAY_BYTES_MAX {
        let message = format!("the document that {stage} builds is larger than 100 MB");
        Err(Error::new(10334, message))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;
    use windrow_interrupt::Interrupted;

    struct Stopped;

    impl Interrupt for Stopped {
        fn check(&self) -> Result<(), Interrupted> {
            Err(Interrupted::with_code(50, "time is over"))
        }
    }

    /// A `$facet` that had read all rows continued to group them for seconds after its time limit.
    #[test]
    fn rows_in_memory_are_not_read_without_a_check() {
        let rows = (0..2_000).map(|number| Row::new(doc! { "_id": number }));
        let mut rows = Rows::new(rows.collect());
        let stopped = (0..ROWS_PER_CHECK).find_map(|_| rows.next(&Stopped).err());
        assert_eq!(stopped.and_then(|error| error.code()), Some(50));
    }
}
