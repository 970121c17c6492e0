//! The data sets of a cluster in an object store. The object `data-sets` lists them. Each one is a
//! database below `sets/NAME`.

use bytes::Bytes;
use windrow_collection::StorageError;
use windrow_server::Placement;
use windrow_storage::Bucket;

/// The object that lists the data sets.
const NAME: &str = "data-sets";

/// An object that exists in every database without data sets.
const DATABASE: &str = "database";

/// Returns the address of a data set.
pub fn data_set_url(url: &str, set: &str) -> String {
    format!("{}/sets/{set}", url.trim_end_matches('/'))
}

/// Returns the data sets below a prefix. `None` if it is empty or contains a database without data
/// sets.
///
/// # Errors
/// Fails if the object cannot be read.
pub fn find(bucket: &dyn Bucket) -> Result<Option<Placement>, StorageError> {
    let bytes = bucket.get(NAME)?;
    bytes.map(|bytes| read(bucket, &bytes)).transpose()
}

fn read(bucket: &dyn Bucket, bytes: &[u8]) -> Result<Placement, StorageError> {
    let text = String::from_utf8_lossy(bytes);
    Placement::from_text(&text).map_err(|what| StorageError::Damaged {
        place: bucket.place(NAME),
        what,
    })
}

/// Stores the data sets of a new cluster, or compares them with those of an existing one.
///
/// # Errors
/// Fails if they differ, if there is a database without data sets, or if the object store fails.
pub fn agree(bucket: &dyn Bucket, placement: &Placement) -> Result<(), StorageError> {
    let unsuitable = |what: String| StorageError::Unsuitable {
        place: bucket.place(""),
        what,
    };
    let stored = match find(bucket)? {
        Some(stored) => stored,
        None if bucket.get(DATABASE)?.is_some() => {
            let what = "it has a database without data sets, which cannot be divided";
            return Err(unsuitable(what.to_owned()));
        }
        None => {
            // Another server may create the object at the same time, so the stored one is compared.
            bucket.create(NAME, Bytes::from(placement.to_text()))?;
            find(bucket)?
                .ok_or_else(|| unsuitable("an object that was created cannot be read".to_owned()))?
        }
    };
    match placement.difference(&stored) {
        None => Ok(()),
        Some(difference) => Err(unsuitable(difference)),
    }
}

/// Fails if there are data sets. A server without data sets would otherwise create a database
/// beside them.
///
/// # Errors
/// Fails as [`agree`] does.
pub fn check_absent(bucket: &dyn Bucket) -> Result<(), StorageError> {
    let Some(stored) = find(bucket)? else {
        return Ok(());
    };
    let count = stored.count();
    Err(StorageError::Unsuitable {
        place: bucket.place(""),
        what: format!("it has {count} data sets, which the server has to be given by --data-set"),
    })
}

#[cfg(test)]
mod tests {
    use windrow_storage::MemoryBucket;

    use super::*;

    #[test]
    fn the_first_server_decides() {
        let bucket = MemoryBucket::new();
        let placement = |given: &[&str]| Placement::parse(given).unwrap();
        check_absent(&bucket).unwrap();
        assert_eq!(find(&bucket).unwrap(), None);
        agree(&bucket, &placement(&["main", "logs=logs"])).unwrap();
        agree(&bucket, &placement(&["main", "logs=logs"])).unwrap();
        let error = agree(&bucket, &placement(&["main", "logs"])).unwrap_err();
        assert!(error.to_string().contains("data set 2 is"), "{error}");
        let error = check_absent(&bucket).unwrap_err().to_string();
        assert!(error.contains("--data-set"), "{error}");
        let stored = find(&bucket).unwrap().unwrap();
        assert_eq!(stored.count(), 2);
    }

    #[test]
    fn an_existing_database_is_not_divided() {
        let bucket = MemoryBucket::new();
        bucket.put(DATABASE, Bytes::from("x")).unwrap();
        let error = agree(&bucket, &Placement::parse(&["main"]).unwrap()).unwrap_err();
        assert!(error.to_string().contains("without data sets"), "{error}");
    }

    #[test]
    fn sets_have_addresses_of_their_own() {
        assert_eq!(data_set_url("s3://b/p/", "logs"), "s3://b/p/sets/logs");
        assert_eq!(data_set_url("s3://b", "logs"), "s3://b/sets/logs");
    }
}
