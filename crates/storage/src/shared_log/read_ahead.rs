//! [`ReadAhead`]: reads many log objects with several requests at once, since each takes as long as
//! the way to the object store and back.

use std::collections::VecDeque;

use super::log_object::{self, LogObject};
use super::uploader::{ClusterOptions, Uploads};
use crate::bucket::retry;
use crate::error::StorageError;

/// The number of concurrent requests.
const REQUESTS: usize = 16;

/// Reads the log objects from a number on, in order, until there is no further one.
pub(crate) struct ReadAhead<'o> {
    options: &'o ClusterOptions,
    /// The number of the next object.
    number: u64,
    /// The number of the newest object that was listed. Others can follow it.
    listed: u64,
    /// The objects from `number` on that were read already.
    read: VecDeque<LogObject>,
}

impl<'o> ReadAhead<'o> {
    /// Begins with the object `number`.
    ///
    /// # Errors
    /// Fails if the object store does.
    pub fn begin(options: &'o ClusterOptions, number: u64) -> Result<Self, StorageError> {
        let listed = match options.uploads {
            Uploads::Threads => newest_listed(options, number)?,
            Uploads::Caller => 0,
        };
        Ok(Self {
            options,
            number,
            listed,
            read: VecDeque::new(),
        })
    }

    /// Returns the next object, or `None` if there is none.
    ///
    /// # Errors
    /// Fails as [`read`](super::read) does.
    pub fn next(&mut self) -> Result<Option<LogObject>, StorageError> {
        if self.read.is_empty() && self.number < self.listed {
            self.read_several()?;
        }
        let next = match self.read.pop_front() {
            Some(object) => Some(object),
            None => read(self.options, self.number)?,
        };
        self.number += 1;
        Ok(next)
    }

    /// Reads the next objects at once, up to the first one that is missing.
    fn read_several(&mut self) -> Result<(), StorageError> {
        let numbers: Vec<u64> = (self.number..=self.listed).take(REQUESTS).collect();
        let options = self.options;
        let objects = std::thread::scope(|scope| {
            let requests: Vec<_> = numbers
                .into_iter()
                .map(|number| scope.spawn(move || read(options, number)))
                .collect();
            let ended = requests.into_iter().map(|request| request.join());
            ended
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<_>, _>>()
        })?;
        self.read
            .extend(objects.into_iter().map_while(|object| object));
        Ok(())
    }
}

fn read(options: &ClusterOptions, number: u64) -> Result<Option<LogObject>, StorageError> {
    retry(options.retry_policy.as_ref(), || {
        super::read(options.bucket.as_ref(), number)
    })
}

/// Returns the number of the newest object at or after `number` that the object store lists.
fn newest_listed(options: &ClusterOptions, number: u64) -> Result<u64, StorageError> {
    let after = format!("{:020}", number.saturating_sub(1));
    let names = retry(options.retry_policy.as_ref(), || {
        options.bucket.list(log_object::FOLDER, &after)
    })?;
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    Ok(numbers.max().unwrap_or(0))
}
