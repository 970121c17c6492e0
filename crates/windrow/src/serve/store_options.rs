//! The options of a database in an object store.

use std::net::SocketAddr;
use std::time::Duration;

use super::option_table::Draft;
use crate::command_line::Failure;

/// The object store that has the database.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreOptions {
    pub url: String,
    /// Settings by their names in the crate `object_store`.
    pub options: Vec<(String, String)>,
    pub cache_bytes: u64,
    /// The address that clients connect to.
    pub advertise: String,
    pub election_timeout: Duration,
}

/// The default of `--cache-bytes`.
const CACHE_BYTES_DEFAULT: u64 = 10 << 30;

/// The object store. Its other options need `--store`.
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
    }
}
