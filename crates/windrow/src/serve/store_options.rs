//! The options of a database in an object store.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use windrow_server::{AccessControl, Placement};

use super::option_table::Draft;
use crate::command_line::Failure;

/// The object store that contains the database.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreOptions {
    pub url: String,
    /// Settings by their names in the crate `object_store`.
    pub options: Vec<(String, String)>,
    pub cache_bytes: u64,
    /// The address to which clients connect.
    pub advertise: String,
    pub election_timeout: Duration,
    /// The data sets. `None` if the object store contains a single database.
    pub data_sets: Option<DataSetOptions>,
}

/// The data sets of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSetOptions {
    pub placement: Placement,
    /// The key file of the cluster. `None` without access control.
    pub key_file: Option<PathBuf>,
}

/// The default of `--cache-bytes`.
const CACHE_BYTES_DEFAULT: u64 = 10 << 30;

/// Returns the object store. The other options of this module need `--store`.
pub fn store_options(
    draft: &Draft,
    listen: &[SocketAddr],
) -> Result<Option<StoreOptions>, Failure> {
    let Some(url) = &draft.store else {
        let given = [
            ("--store-option", !draft.store_options.is_empty()),
            ("--cache-bytes", draft.cache_bytes.is_some()),
            ("--advertise", draft.advertise.is_some()),
            ("--election-timeout", draft.election_timeout.is_some()),
            ("--data-set", !draft.data_sets.is_empty()),
            ("--key-file", draft.key_file.is_some()),
        ];
        return match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Failure::Usage(format!("{name} needs --store URL"))),
            None => Ok(None),
        };
    };
    let own = listen.first().map(SocketAddr::to_string);
    Ok(Some(StoreOptions {
        url: url.clone(),
        options: draft.store_options.clone(),
        cache_bytes: draft.cache_bytes.unwrap_or(CACHE_BYTES_DEFAULT),
        advertise: draft.advertise.clone().or(own).unwrap_or_default(),
        election_timeout: draft.election_timeout.unwrap_or(Duration::from_secs(5)),
        data_sets: data_set_options(draft)?,
    }))
}

/// Returns the data sets, if any. They need a key, except with `--no-auth`.
fn data_set_options(draft: &Draft) -> Result<Option<DataSetOptions>, Failure> {
    if draft.data_sets.is_empty() {
        return match draft.key_file {
            Some(_) => Err(Failure::usage("--key-file needs --data-set NAME")),
            None => Ok(None),
        };
    }
    let placement = Placement::parse(&draft.data_sets);
    let placement = placement.map_err(|error| Failure::Usage(format!("--data-set: {error}")))?;
    if draft.replica_set.is_some() {
        return Err(Failure::usage(
            "--replica-set cannot be combined with --data-set: the servers appear as routers",
        ));
    }
    if draft.key_file.is_none() && draft.access_control != Some(AccessControl::Never) {
        return Err(Failure::usage(
            "--key-file FILE is missing: servers with --data-set log in at each other with it, \
             unless there is --no-auth",
        ));
    }
    if draft.tls.certificate_key_password.is_some() {
        return Err(Failure::usage(
            "--tls-certificate-key-file-password cannot be combined with --data-set: servers \
             connect to each other with a private key that is not encrypted",
        ));
    }
    Ok(Some(DataSetOptions {
        placement,
        key_file: draft.key_file.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_an_object_store_need_its_address() {
        let listen = ["127.0.0.1:1".parse().unwrap()];
        let parse = |draft: Draft| store_options(&draft, &listen);
        assert_eq!(parse(Draft::default()).unwrap(), None);
        let without = parse(Draft {
            cache_bytes: Some(1),
            ..Draft::default()
        });
        assert!(without.unwrap_err().to_string().contains("needs --store"));
        let options = parse(Draft {
            store: Some("s3://b/p".to_owned()),
            ..Draft::default()
        });
        let options = options.unwrap().unwrap();
        assert_eq!(options.advertise, "127.0.0.1:1");
        assert_eq!(options.election_timeout, Duration::from_secs(5));
        assert_eq!(options.data_sets, None);
    }

    #[test]
    fn data_sets_need_a_key() {
        let listen = ["127.0.0.1:1".parse().unwrap()];
        let draft = || Draft {
            store: Some("s3://b/p".to_owned()),
            data_sets: vec!["main".to_owned(), "logs=logs".to_owned()],
            key_file: Some("key".into()),
            ..Draft::default()
        };
        let check = |draft: Draft, expected: Option<&str>| {
            let parsed = store_options(&draft, &listen);
            match expected {
                None => assert_eq!(
                    parsed
                        .unwrap()
                        .unwrap()
                        .data_sets
                        .unwrap()
                        .placement
                        .count(),
                    2
                ),
                Some(part) => {
                    let error = parsed.unwrap_err().to_string();
                    assert!(error.contains(part), "{error}");
                }
            }
        };
        check(draft(), None);
        let mut open = draft();
        open.key_file = None;
        check(open, Some("--key-file FILE is missing"));
        let mut open = draft();
        (open.key_file, open.access_control) = (None, Some(AccessControl::Never));
        check(open, None);
        let mut named = draft();
        named.replica_set = Some("rs0".to_owned());
        check(named, Some("--replica-set"));
        let mut wrong = draft();
        wrong.data_sets.push("main".to_owned());
        check(wrong, Some("two data sets"));
        let mut key_alone = draft();
        key_alone.data_sets.clear();
        check(key_alone, Some("--key-file needs"));
    }
}
