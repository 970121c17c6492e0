//! The data sets of a cluster in an object store.
//!
//! The object `data-sets` lists them. Each change creates an object of the next version:
//! `data-sets-2`, `data-sets-3` and so on. If two servers change them at the same time, only one
//! can create it.

use bytes::Bytes;
use windrow_collection::StorageError;
use windrow_server::{DataSetId, Placement, StoredPlacement};
use windrow_storage::{Bucket, Creation};

/// The object of the first version.
const NAME: &str = "data-sets";

/// An object that exists in every database without data sets.
const DATABASE: &str = "database";

/// Returns the address of the objects of a data set.
pub fn data_set_url(url: &str, placement: &Placement, set: DataSetId) -> String {
    let url = url.trim_end_matches('/');
    if placement.is_at_prefix(set) {
        return url.to_owned();
    }
    format!("{url}/sets/{}", placement.name(set))
}

/// The number of changes of the data sets. 0 if nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementVersion(u64);

impl PlacementVersion {
    fn object(self) -> String {
        match self.0 {
            0 | 1 => NAME.to_owned(),
            version => format!("{NAME}-{version}"),
        }
    }

    fn next(self) -> PlacementVersion {
        PlacementVersion(self.0 + 1)
    }

    /// Fails if there is a newer version.
    ///
    /// # Errors
    /// Fails also if the object store fails.
    pub fn check_newest(self, bucket: &dyn Bucket) -> Result<(), StorageError> {
        if bucket.size(&self.next().object())?.is_none() {
            return Ok(());
        }
        let what = "its data sets were changed: each server has to be started with all of them, \
                    by --data-set";
        Err(unsuitable(bucket, what.to_owned()))
    }
}

/// What an object store says about its data sets, and the version of it.
#[derive(Debug, PartialEq)]
pub struct FoundPlacement {
    pub stored: StoredPlacement,
    pub version: PlacementVersion,
}

/// Returns the newest version below a prefix.
///
/// # Errors
/// Fails if an object cannot be read.
pub fn find(bucket: &dyn Bucket) -> Result<FoundPlacement, StorageError> {
    let mut found = FoundPlacement {
        stored: StoredPlacement::Undivided,
        version: PlacementVersion(0),
    };
    loop {
        let version = found.version.next();
        let Some(bytes) = bucket.get(&version.object())? else {
            return Ok(found);
        };
        let text = String::from_utf8_lossy(&bytes);
        let stored = StoredPlacement::from_text(&text).map_err(|what| StorageError::Damaged {
            place: bucket.place(&version.object()),
            what,
        })?;
        found = FoundPlacement { stored, version };
    }
}

/// Creates the version after `version`. Another server may create it at the same time, and with
/// other data sets.
///
/// # Errors
/// Fails if the object store fails.
pub fn store(
    bucket: &dyn Bucket,
    version: PlacementVersion,
    stored: &StoredPlacement,
) -> Result<Creation, StorageError> {
    bucket.create(&version.next().object(), Bytes::from(stored.to_text()))
}

/// How the data sets that a server was given compare with the stored ones.
#[derive(Debug, PartialEq)]
pub enum PlacementComparison {
    /// They are stored.
    Complete {
        placement: Placement,
        version: PlacementVersion,
    },
    /// They are stored as sets that are being added: see [`StoredPlacement::Adding`].
    Adding {
        placement: Placement,
        existing: usize,
        version: PlacementVersion,
    },
    /// They are those of a new cluster or are added to existing ones: this can be stored after
    /// `version`.
    New {
        stored: StoredPlacement,
        version: PlacementVersion,
    },
}

/// Compares the data sets that a server was given with the stored ones.
///
/// # Errors
/// Fails if other data sets are stored, or if the object store fails.
pub fn compare(
    bucket: &dyn Bucket,
    given: &Placement,
) -> Result<PlacementComparison, StorageError> {
    let FoundPlacement { stored, version } = find(bucket)?;
    let refuse = |difference| unsuitable(bucket, difference);
    let check = |placement: &Placement| match given.difference(placement) {
        None => Ok(()),
        Some(difference) => Err(refuse(difference)),
    };
    let stored = match stored {
        StoredPlacement::Undivided if bucket.size(DATABASE)?.is_some() => StoredPlacement::Adding {
            placement: given.clone().with_first_set_at_prefix(),
            existing: 0,
        },
        StoredPlacement::Undivided => StoredPlacement::Complete(given.clone()),
        StoredPlacement::Complete(placement) if given.count() > placement.count() => {
            StoredPlacement::Adding {
                placement: placement.extended(given).map_err(refuse)?,
                existing: placement.count(),
            }
        }
        StoredPlacement::Complete(placement) => {
            check(&placement)?;
            return Ok(PlacementComparison::Complete { placement, version });
        }
        StoredPlacement::Adding {
            placement,
            existing,
        } => {
            check(&placement)?;
            return Ok(PlacementComparison::Adding {
                placement,
                existing,
                version,
            });
        }
    };
    Ok(PlacementComparison::New { stored, version })
}

/// Returns the version of a database without data sets. A server without data sets would otherwise
/// create a database beside them.
///
/// # Errors
/// Fails if there are data sets, and as [`find`] does.
pub fn check_undivided(bucket: &dyn Bucket) -> Result<PlacementVersion, StorageError> {
    let found = find(bucket)?;
    let placement = match &found.stored {
        StoredPlacement::Undivided => return Ok(found.version),
        StoredPlacement::Adding { placement, .. } | StoredPlacement::Complete(placement) => {
            placement
        }
    };
    let count = placement.count();
    let what = format!("it has {count} data sets, which the server has to be given by --data-set");
    Err(unsuitable(bucket, what))
}

/// Returns an error about the whole prefix.
pub fn unsuitable(bucket: &dyn Bucket, what: String) -> StorageError {
    StorageError::Unsuitable {
        place: bucket.place(""),
        what,
    }
}

#[cfg(test)]
mod tests {
    use windrow_storage::MemoryBucket;

    use super::*;

    fn placement(given: &[&str]) -> Placement {
        Placement::parse(given).unwrap()
    }

    fn refused<T: std::fmt::Debug>(result: Result<T, StorageError>, expected: &str) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    /// What a server does that is given these data sets.
    fn agree(bucket: &MemoryBucket, given: &Placement) -> Result<FoundPlacement, StorageError> {
        loop {
            match compare(bucket, given)? {
                PlacementComparison::New { stored, version } => {
                    store(bucket, version, &stored)?;
                }
                _ => return find(bucket),
            }
        }
    }

    #[test]
    fn the_first_server_decides() {
        let bucket = MemoryBucket::new();
        let single = check_undivided(&bucket).unwrap();
        let sets = placement(&["main", "logs=logs"]);
        let found = agree(&bucket, &sets).unwrap();
        assert_eq!(found.stored, StoredPlacement::Complete(sets.clone()));
        assert_eq!(agree(&bucket, &sets).unwrap(), found);
        refused(
            agree(&bucket, &placement(&["main", "logs"])),
            "data set 2 is",
        );
        refused(agree(&bucket, &placement(&["main"])), "data set 2 is");
        refused(check_undivided(&bucket), "--data-set");
        refused(single.check_newest(&bucket), "--data-set");
        found.version.check_newest(&bucket).unwrap();
    }

    #[test]
    fn sets_are_added() {
        let bucket = MemoryBucket::new();
        let before = agree(&bucket, &placement(&["main", "logs=logs"])).unwrap();
        refused(
            agree(&bucket, &placement(&["main", "more", "logs=logs"])),
            "data set 2 is",
        );
        let more = placement(&["main", "logs=logs", "more"]);
        let adding = agree(&bucket, &more).unwrap();
        let expected = StoredPlacement::Adding {
            placement: more.clone(),
            existing: 2,
        };
        assert_eq!(adding.stored, expected);
        refused(before.version.check_newest(&bucket), "--data-set");
        // Every other server has to be given the same sets meanwhile.
        assert_eq!(agree(&bucket, &more).unwrap(), adding);
        refused(
            agree(&bucket, &placement(&["main", "logs=logs"])),
            "data set 3 is",
        );
        let found = [vec!["shop".to_owned(), "test".to_owned()]];
        let complete = StoredPlacement::Complete(more.clone().keeping(&found).unwrap());
        assert!(matches!(
            store(&bucket, adding.version, &complete).unwrap(),
            Creation::Created
        ));
        assert_eq!(agree(&bucket, &more).unwrap().stored, complete);
        refused(adding.version.check_newest(&bucket), "--data-set");
    }

    #[test]
    fn an_existing_database_is_divided() {
        let bucket = MemoryBucket::new();
        bucket.put(DATABASE, Bytes::from("x")).unwrap();
        let sets = placement(&["main", "more"]);
        let adding = agree(&bucket, &sets).unwrap();
        let expected = StoredPlacement::Adding {
            placement: sets.with_first_set_at_prefix(),
            existing: 0,
        };
        assert_eq!(adding.stored, expected);
        refused(check_undivided(&bucket), "--data-set");
        store(&bucket, adding.version, &StoredPlacement::Undivided).unwrap();
        let version = check_undivided(&bucket).unwrap();
        version.check_newest(&bucket).unwrap();
    }

    #[test]
    fn sets_have_addresses_of_their_own() {
        let sets = placement(&["main", "logs"]);
        let check = |sets: &Placement, url, set, expected| {
            assert_eq!(data_set_url(url, sets, DataSetId(set)), expected);
        };
        check(&sets, "s3://b/p/", 1, "s3://b/p/sets/logs");
        check(&sets, "s3://b", 0, "s3://b/sets/main");
        let divided = sets.with_first_set_at_prefix();
        check(&divided, "s3://b/p/", 0, "s3://b/p");
        check(&divided, "s3://b/p/", 1, "s3://b/p/sets/logs");
    }
}
