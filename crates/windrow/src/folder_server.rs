//! Serves a data folder that a command has open on a free loopback port, so that other commands can
//! use it meanwhile.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use windrow_collection::Engine;
use windrow_document::Value;
use windrow_page::PageServer;
use windrow_server::{
    AccessControl, Config, Connector, Log, Server, Services, UnixSocket, UsersEngine, new_password,
};

use crate::address_file::{AddressFile, Password, ServerAddress};
use crate::command_line::Failure;
use crate::page::{PageContext, RunWatch, WebAddress, WebOptions, start_page};

/// The web page that is served while files are read.
pub struct ServedPage<'o> {
    pub address: &'o WebAddress,
    pub config: Option<PathBuf>,
    pub run: RunWatch,
}

impl ServedPage<'_> {
    /// Starts the page. Dropping the result stops it.
    fn start(
        self,
        connector: Connector,
        password: &str,
        data_folder: &Path,
    ) -> Result<PageServer, Failure> {
        let web = WebOptions {
            address: self.address.clone(),
            is_read_only: false,
        };
        let context = PageContext {
            connector,
            password,
            data_folder,
            config: self.config,
            run: Some(self.run),
        };
        let page = start_page(&web, context).map_err(Failure::runtime)?;
        eprintln!("windrow: the page is at http://{}", page.address());
        Ok(page)
    }
}

/// The clients that may connect to a data folder without users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// All clients of this machine.
    Any,
    /// Commands that can read the password in the data folder.
    OwnCommands,
}

/// Serves the data folder and the page, if any, while `work` runs.
pub fn serve_during<T>(
    engine: &Arc<Engine>,
    data_folder: &Path,
    clients: Clients,
    page: Option<ServedPage<'_>>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let password = new_password().map_err(|error| Failure::runtime(error.message))?;
    let config = Config {
        local_password: Some(password.clone()),
        local_user_by_ip: !engine.is_encrypted(),
        unix_socket: engine.is_encrypted().then(|| UnixSocket {
            is_required: true,
            ..UnixSocket::default()
        }),
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        arguments: std::env::args().collect(),
        ..match clients {
            Clients::Any => Config::default(),
            Clients::OwnCommands => config_with_authentication(),
        }
    };
    let services = Services {
        engine: engine.clone(),
        log: Arc::new(Log::to_nowhere()),
        folder: Some(data_folder.to_path_buf()),
        traces: None,
        users: UsersEngine::Own,
    };
    let server = Server::bind(config, services).map_err(Failure::runtime)?;
    let page = page
        .map(|page| page.start(server.connector(), &password, data_folder))
        .transpose()?;
    let address = server.addresses().first().copied();
    let file = address.map(|address| {
        let mut own = ServerAddress::plain(address);
        own.unix_socket = server.unix_sockets().first().cloned();
        own.password = Some(Password(password));
        AddressFile::write(data_folder, &own)
    });
    let file = file
        .transpose()
        .map_err(|error| Failure::runtime(format!("the address file of this process: {error}")))?;
    let stop = server.stop();
    let served = thread::spawn(move || server.run());
    let result = work();
    stop.request();
    let served = served.join();
    drop((file, page));
    let result = result?;
    match served {
        Ok(served) => served.map(|()| result).map_err(Failure::runtime),
        Err(_) => Err(Failure::runtime("the server of the data folder panicked")),
    }
}

/// Returns a server configuration that requires authentication. The password is stored in the data
/// folder.
fn config_with_authentication() -> Config {
    Config {
        access_control: AccessControl::Always,
        // Without this, a client could create the first user without authentication.
        parameters: vec![("enableLocalhostAuthBypass".to_owned(), Value::Bool(false))],
        ..Config::default()
    }
}
