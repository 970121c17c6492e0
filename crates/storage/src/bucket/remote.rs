//! [`RemoteBucket`]: an object store that is reached over HTTP.
//!
//! The crate `object_store` is asynchronous. Its work runs on the threads of a runtime of this
//! module, and callers wait for it.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutMode,
    PutPayload, RetryConfig,
};
use tokio::runtime::Runtime;
use url::Url;

use super::{Bucket, Creation};
use crate::disk::DiskFile;
use crate::error::StorageError;

const UNKNOWN_SCHEME: &str = "it should begin with s3://, gs:// or az://";
/// Larger files are uploaded in parts of this size, in bytes.
const PART_BYTES: u64 = 16 << 20;
/// A request that is not answered after this time has failed.
const REQUEST_TIME: Duration = Duration::from_secs(30);
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The objects below a prefix of an object store, named by a URL: `s3://bucket/prefix` (Amazon S3
/// and compatible), `gs://bucket/prefix` (Google Cloud Storage) or `az://container/prefix` (Azure).
pub struct RemoteBucket {
    runtime: Runtime,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    url: String,
}

impl RemoteBucket {
    /// Opens the object store at `url`. Credentials and other settings are those of the
    /// environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`), of the files of the AWS command line, and of
    /// `options`, which have the names of the crate `object_store`, such as `aws_endpoint`.
    ///
    /// # Errors
    /// Fails with `Unsuitable` if the URL or an option is unknown or incomplete. No request is
    /// sent.
    pub fn open(url: &str, options: &[(String, String)]) -> Result<Self, StorageError> {
        let unsuitable = |what: String| StorageError::Unsuitable {
            place: url.to_owned(),
            what,
        };
        let parsed = Url::parse(url).map_err(|error| unsuitable(error.to_string()))?;
        let named = ObjectStoreScheme::parse(&parsed);
        let (scheme, prefix) = named.map_err(|_| unsuitable(UNKNOWN_SCHEME.to_owned()))?;
        // Fails if it was done before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = build(&scheme, url, options).map_err(unsuitable)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("object store")
            .enable_all()
            .build()
            .map_err(|error| StorageError::from_io("the threads of the object store", error))?;
        Ok(Self {
            runtime,
            store,
            prefix,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    fn path(&self, name: &str) -> Path {
        let parts = name.split('/').filter(|part| !part.is_empty());
        self.prefix.parts().chain(parts.map(Into::into)).collect()
    }

    fn unavailable(&self, name: &str, error: &object_store::Error) -> StorageError {
        StorageError::Unavailable {
            place: self.place(name),
            what: sources(error),
        }
    }

    async fn put_parts(
        &self,
        name: &str,
        file: &dyn DiskFile,
        bytes: u64,
    ) -> object_store::Result<()> {
        let mut upload = self.store.put_multipart(&self.path(name)).await?;
        let mut offset = 0;
        while offset < bytes {
            let part =
                read_part(file, offset, bytes).map_err(|error| object_store::Error::Generic {
                    store: "the local disk",
                    source: Box::new(error),
                });
            let sent = match part {
                Ok(part) => upload.put_part(part.into()).await,
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                // Parts that remain are removed by the rules of the bucket.
                let _ = upload.abort().await;
                return Err(error);
            }
            offset += PART_BYTES;
        }
        upload.complete().await.map(drop)
    }
}

fn read_part(file: &dyn DiskFile, offset: u64, end: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; PART_BYTES.min(end - offset) as usize];
    let count = file.read_at(offset, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Returns the message of an error with those of its causes.
fn sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Returns the store of a scheme. The error says what is wrong with the settings.
fn build(
    scheme: &ObjectStoreScheme,
    url: &str,
    options: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, String> {
    let text = |error: object_store::Error| sources(&error);
    let unknown = |name: &str| format!("the option {name:?} of the object store is unknown");
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 3,
        retry_timeout: REQUEST_TIME,
    };
    let client = ClientOptions::new()
        .with_timeout(REQUEST_TIME)
        .with_connect_timeout(CONNECT_TIME)
        .with_pool_max_idle_per_host(64);
    match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let mut builder = object_store::aws::AmazonS3Builder::from_env();
            let mut settings: Vec<(String, String)> = profile_settings();
            settings.extend_from_slice(options);
            let mut allows_http = false;
            for (name, value) in &settings {
                let key = name.parse().map_err(|_| unknown(name))?;
                builder = builder.with_config(key, value);
                allows_http |= name.contains("endpoint") && value.starts_with("http://");
            }
            let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
                .iter()
                .find_map(|name| std::env::var(name).ok());
            if let Some(endpoint) = endpoint.filter(|_| !has_endpoint(options)) {
                allows_http |= endpoint.starts_with("http://");
                builder = builder.with_endpoint(endpoint);
            }
            let client = client.with_allow_http(allows_http);
            let mut builder = builder.with_url(url).with_retry(retry);
            if !allows_http && !names_unsigned_payload(&settings) {
                // TLS protects the payload. Its hash would cost processor time at both ends.
                builder = builder.with_unsigned_payload(true);
            }
            let store = builder.with_client_options(client).build().map_err(text)?;
            Ok(Arc::new(store))
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let mut builder = object_store::gcp::GoogleCloudStorageBuilder::from_env();
            for (name, value) in options {
                let key = name.parse().map_err(|_| unknown(name))?;
                builder = builder.with_config(key, value);
            }
            let builder = builder.with_url(url).with_retry(retry);
            let store = builder.with_client_options(client).build().map_err(text)?;
            Ok(Arc::new(store))
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let mut builder = object_store::azure::MicrosoftAzureBuilder::from_env();
            for (name, value) in options {
                let key = name.parse().map_err(|_| unknown(name))?;
                builder = builder.with_config(key, value);
            }
            let builder = builder.with_url(url).with_retry(retry);
            let store = builder.with_client_options(client).build().map_err(text)?;
            Ok(Arc::new(store))
        }
        _ => Err(UNKNOWN_SCHEME.to_owned()),
    }
}

fn names_unsigned_payload(settings: &[(String, String)]) -> bool {
    let is_named = |(name, _): &(String, String)| name.contains("unsigned_payload");
    settings.iter().any(is_named) || std::env::var_os("AWS_UNSIGNED_PAYLOAD").is_some()
}

fn has_endpoint(options: &[(String, String)]) -> bool {
    options.iter().any(|(name, _)| name.contains("endpoint"))
}

/// Returns the settings of the profile in the files of the AWS command line that the environment
/// does not have.
fn profile_settings() -> Vec<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok();
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let file = |name: &str, default: &str| {
        let path = variable(name).map_or_else(|| home.join(".aws").join(default), PathBuf::from);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let config = file("AWS_CONFIG_FILE", "config");
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let mut found = sections(&config)
        .remove(format!("profile {profile}").as_str())
        .or_else(|| sections(&config).remove(profile.as_str()))
        .unwrap_or_default();
    found.extend(
        sections(&credentials)
            .remove(profile.as_str())
            .unwrap_or_default(),
    );
    let names = [
        ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
        ("aws_secret_access_key", "AWS_ACCESS_KEY_ID"),
        ("aws_session_token", "AWS_ACCESS_KEY_ID"),
        ("region", "AWS_REGION"),
        ("endpoint_url", "AWS_ENDPOINT_URL"),
    ];
    let missing = names
        .into_iter()
        .filter(|(_, variable)| std::env::var(variable).is_err());
    let setting = |(name, _): (&str, &str)| {
        let key = name.strip_prefix("aws_").unwrap_or(name);
        Some((format!("aws_{key}"), (*found.get(name)?).to_owned()))
    };
    missing.filter_map(setting).collect()
}

/// Returns the settings of each section of an INI file.
fn sections(text: &str) -> HashMap<&str, HashMap<&str, &str>> {
    let mut sections: HashMap<&str, HashMap<&str, &str>> = HashMap::new();
    let mut current = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            current = name.trim();
        } else if let Some((name, value)) = line.split_once('=')
            && !line.starts_with(['#', ';'])
        {
            let section = sections.entry(current).or_default();
            section.insert(name.trim(), value.trim());
        }
    }
    sections
}

impl Bucket for RemoteBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError> {
        let path = self.path(name);
        let put = self
            .store
            .put_opts(&path, bytes.into(), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(Creation::Created),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Creation::Exists),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(name);
        let put = self.store.put(&path, PutPayload::from(bytes));
        match self.runtime.block_on(put) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError> {
        let io = |error| StorageError::from_io(name, error);
        let bytes = file.len().map_err(io)?;
        if bytes <= PART_BYTES {
            return self.put(name, read_part(file, 0, bytes).map_err(io)?.into());
        }
        let put = self.runtime.block_on(self.put_parts(name, file, bytes));
        put.map_err(|error| self.unavailable(name, &error))
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        let path = self.path(name);
        let get = async { self.store.get(&path).await?.bytes().await };
        match self.runtime.block_on(get) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError> {
        let path = self.path(name);
        match self.runtime.block_on(self.store.get_range(&path, range)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
        match self.runtime.block_on(self.store.head(&self.path(name))) {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
        let prefix = self.path(folder);
        let offset = self.path(&format!("{folder}/{after}"));
        let list = match after {
            "" => self.store.list(Some(&prefix)),
            _ => self.store.list_with_offset(Some(&prefix), &offset),
        };
        let name = |meta: object_store::ObjectMeta| {
            let parts = meta.location.prefix_match(&prefix)?;
            let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        let listed: object_store::Result<Vec<_>> = self.runtime.block_on(list.try_collect());
        match listed {
            Ok(metas) => Ok(metas.into_iter().filter_map(name).collect()),
            Err(error) => Err(self.unavailable(folder, &error)),
        }
    }

    fn delete(&self, name: &str) -> Result<(), StorageError> {
        match self.runtime.block_on(self.store.delete(&self.path(name))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.unavailable(name, &error)),
        }
    }

    fn place(&self, name: &str) -> String {
        match name {
            "" => self.url.clone(),
            name => format!("{}/{name}", self.url),
        }
    }
}
