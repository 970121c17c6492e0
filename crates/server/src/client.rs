//! Clients and their connections.

use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use windrow_access::{Endpoints, UserName};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode};

use crate::access::local_user::is_peer_user;
use crate::access::login::Login;
use crate::network_address::NetworkAddress;
use crate::random;
use crate::socket::Socket;
use crate::sync::lock;

/// A client.
#[derive(Debug)]
pub struct Client {
    pub id: i32,
    pub address: NetworkAddress,
    /// The address of the server to which it is connected.
    pub server_address: NetworkAddress,
    /// The user of the connection.
    pub login: Login,
    metadata: OnceLock<DocumentBuf>,
    encryption: OnceLock<Encryption>,
    /// On a connection of another server: the client whose command it passes on.
    principal: Mutex<Option<Principal>>,
    /// Identifies the connection in the audit log. Generated for its first event.
    uuid: OnceLock<[u8; 16]>,
    /// `true` if a message of the client was complete, or a reply was sent, since the last check.
    is_active: AtomicBool,
    /// The number of checks in a row that have found it inactive.
    silent_checks: AtomicU32,
}

/// The most bytes that a server adds to a message which it passes on to another one: the
/// [`Principal`] and what else the other server has to know.
pub const FORWARDED_BYTES_MAX: usize = 16 << 10;

/// The client of another server whose command this server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Principal {
    /// Its user. `None` if it has not logged in.
    pub user: Option<UserName>,
    /// Both ends of its connection.
    pub endpoints: Endpoints,
    /// `true` if it may create the first user, because it is on the machine of its server.
    pub can_create_first_user: bool,
}

/// The encryption of a connection.
#[derive(Debug)]
struct Encryption {
    certificate_subject: Option<String>,
}

/// The size limits of the `client` document of `hello`, in bytes.
const METADATA_BYTES_MAX: usize = 512;
const APPLICATION_NAME_BYTES_MAX: usize = 128;

impl Client {
    pub fn new(id: i32, address: NetworkAddress, server_address: NetworkAddress) -> Client {
        Client {
            id,
            address,
            server_address,
            login: Login::default(),
            metadata: OnceLock::new(),
            encryption: OnceLock::new(),
            principal: Mutex::default(),
            uuid: OnceLock::new(),
            is_active: AtomicBool::new(true),
            silent_checks: AtomicU32::new(0),
        }
    }

    /// Sets the client of another server whose command runs now.
    pub fn set_principal(&self, principal: Option<Principal>) {
        *lock(&self.principal) = principal;
    }

    /// Returns the client of another server whose command runs now.
    pub fn principal(&self) -> Option<Principal> {
        lock(&self.principal).clone()
    }

    /// Returns `true` if another server of the cluster is logged in.
    pub fn is_peer(&self) -> bool {
        self.login.user().is_some_and(|user| is_peer_user(&user))
    }

    /// Records that a message of the client is complete, or that a reply was sent.
    pub fn record_activity(&self) {
        self.is_active.store(true, Relaxed);
    }

    /// Returns the number of checks in a row, including this one, that found no activity since the
    /// check before. Must be called at regular intervals, by one thread.
    pub fn count_silent_checks(&self) -> u32 {
        let silent = if self.is_active.swap(false, Relaxed) {
            0
        } else {
            self.silent_checks.load(Relaxed).saturating_add(1)
        };
        self.silent_checks.store(silent, Relaxed);
        silent
    }

    /// Marks the connection as encrypted by TLS, with the subject of the client's verified
    /// certificate, if it has one.
    pub fn set_encrypted(&self, certificate_subject: Option<String>) {
        // A connection has one handshake.
        let _ = self.encryption.set(Encryption {
            certificate_subject,
        });
    }

    /// Returns `true` if the connection uses TLS.
    pub fn is_encrypted(&self) -> bool {
        self.encryption.get().is_some()
    }

    /// Returns the subject of the client's certificate as RFC 2253 writes it
    /// (`CN=client,O=Windrow`). `None` without TLS, and if the client has presented no certificate.
    /// The certificate was verified.
    pub fn certificate_subject(&self) -> Option<&str> {
        self.encryption.get()?.certificate_subject.as_deref()
    }

    /// Returns the UUID of the connection in the audit log.
    pub fn uuid(&self) -> [u8; 16] {
        *self.uuid.get_or_init(random::uuid)
    }

    /// Returns the name of the thread, which is also the context of its log lines.
    pub fn name(&self) -> String {
        format!("conn{}", self.id)
    }

    /// Returns the addresses of both ends, which the restrictions of users name.
    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            client: self.address.ip(),
            server: self.server_address.ip(),
        }
    }

    /// Returns the metadata that the driver sent in `hello`.
    pub fn metadata(&self) -> Option<&DocumentBuf> {
        self.metadata.get()
    }

    /// Returns the application name, if the driver sent it.
    pub fn application(&self) -> Option<&str> {
        let application = self.metadata()?.get("application")?.as_document()?;
        application.get("name")?.as_str()
    }

    /// Returns the fields of the client in `currentOp`, before those of the operation.
    pub fn describe(&self, host: &str) -> DocumentBuf {
        let mut described = doc! {
            "type": "op", "host": host, "desc": (self.name()),
            "connectionId": (self.id), "client": (self.address.to_string()),
        };
        if let Some(metadata) = self.metadata() {
            if let Some(name) = self.application() {
                described.push("appName", name);
            }
            described.push("clientMetadata", metadata.clone());
        }
        described
    }

    /// Stores the `client` document of the first `hello`. Fails if there is one already.
    pub fn set_metadata(&self, metadata: Document<'_>) -> Result<(), CommandError> {
        check_metadata(metadata)?;
        self.metadata.set(metadata.to_buf()).map_err(|_| {
            CommandError::new(
                ErrorCode::ClientMetadataCannotBeMutated,
                "The client metadata document may only be sent in the first hello",
            )
        })
    }

    #[cfg(test)]
    pub fn for_tests() -> Arc<Client> {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let address = NetworkAddress::Ip(address);
        Arc::new(Client::new(1, address.clone(), address))
    }
}

fn check_metadata(metadata: Document<'_>) -> Result<(), CommandError> {
    let bytes = metadata.as_bytes().len();
    if bytes > METADATA_BYTES_MAX {
        return Err(CommandError::new(
            ErrorCode::ClientMetadataDocumentTooLarge,
            format!(
                "The client metadata document must be less then or equal to {METADATA_BYTES_MAX} bytes"
            ),
        ));
    }
    let field = |outer: &str, inner: &str| {
        metadata
            .get(outer)
            .and_then(|value| value.as_document()?.get(inner)?.as_str())
    };
    if field("application", "name").is_some_and(|name| name.len() > APPLICATION_NAME_BYTES_MAX) {
        return Err(CommandError::new(
            ErrorCode::ClientMetadataAppNameTooLarge,
            format!(
                "The 'client.application.name' field must be less then or equal to {APPLICATION_NAME_BYTES_MAX} bytes in the client metadata document"
            ),
        ));
    }
    for (outer, inner) in [("driver", "name"), ("driver", "version"), ("os", "type")] {
        if field(outer, inner).is_none() {
            return Err(CommandError::new(
                ErrorCode::ClientMetadataMissingField,
                format!("Missing required field '{outer}.{inner}' in the client metadata document"),
            ));
        }
    }
    Ok(())
}

/// The open connections. They are counted, and closed at shutdown.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<HashMap<i32, OpenConnection>>,
    /// The id of the newest connection.
    newest: AtomicI32,
}

#[derive(Debug)]
struct OpenConnection {
    client: Arc<Client>,
    socket: Arc<Socket>,
}

impl Connections {
    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Returns the id of a new connection. The first one is 1.
    pub(crate) fn next_id(&self) -> i32 {
        self.newest.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Returns the clients of the connections, in ascending order of their ids.
    pub fn clients(&self) -> Vec<Arc<Client>> {
        let open = lock(&self.open);
        let mut clients: Vec<Arc<Client>> = open.values().map(|one| one.client.clone()).collect();
        drop(open);
        clients.sort_by_key(|one| one.id);
        clients
    }

    pub(crate) fn add(&self, client: Arc<Client>, socket: Arc<Socket>) {
        lock(&self.open).insert(client.id, OpenConnection { client, socket });
    }

    pub(crate) fn remove(&self, id: i32) {
        lock(&self.open).remove(&id);
    }

    /// Closes a connection in both directions.
    pub(crate) fn close(&self, id: i32) {
        if let Some(connection) = lock(&self.open).get(&id) {
            // The connection may already be closed, which is not an error here.
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns `true` if the client closed the connection, or if it broke.
    pub(crate) fn is_gone(&self, id: i32) -> bool {
        let open = lock(&self.open);
        let Some(connection) = open.get(&id) else {
            return false;
        };
        let (client, socket) = (connection.client.clone(), connection.socket.clone());
        drop(open);
        // The last bytes of an encrypted connection are an alert that says that it ends.
        if client.is_encrypted() {
            socket.is_closed_by_peer()
        } else {
            socket.is_at_end()
        }
    }

    /// Closes all connections: for reading, so that each finishes its command, or in both
    /// directions.
    pub(crate) fn close_all(&self, how: Shutdown) {
        lock(&self.open)
            .values()
            .for_each(|one| drop(one.socket.shutdown(how)));
    }
}
