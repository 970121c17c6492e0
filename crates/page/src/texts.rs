//! All texts of the page. Each section has a module here.

pub mod collections;
pub mod folders;
pub mod indexes;
pub mod queries;
pub mod search;
pub mod state;

/// The frame of all pages.
pub mod frame {
    pub const PRODUCT: &str = "Windrow";
    pub const SKIP: &str = "Skip to the content";
    pub const NAVIGATION: &str = "Sections";
    pub const CANCEL: &str = "Cancel";
    pub const CANCELLED: &str = "Cancelled.";
    pub const LOG_OUT: &str = "Log out";
    pub const READ_ONLY: &str = "Read-only";
    pub const BACK: &str = "Back to the first page";
    pub const OFFLINE: &str =
        "The server does not answer. This page continues when it is available again.";
}

/// Logins.
pub mod login {
    pub const TITLE: &str = "Log in";
    pub const LEAD: &str = "With a user of this database.";
    pub const USER: &str = "User";
    pub const PASSWORD: &str = "Password";
    pub const DATABASE: &str = "Database of the user";
    pub const SUBMIT: &str = "Log in";
    pub const FAILED: &str = "The user does not exist, or the password is wrong.";

    pub const NOT_ENCRYPTED: &str = "This connection is not encrypted: others on the network can read \
        the password.";

    pub const BUSY: &str = "Too many people log in now. Try again.";

    /// Says how long to wait.
    pub fn wait(seconds: u64) -> String {
        format!("Too many logins failed. Try again in {seconds} s.")
    }
}

/// Errors.
pub mod error {
    pub const FORBIDDEN_HOST: &str = "The page has another host name. Use localhost, an IP address, or \
        the name that the server was started with.";
    pub const NOT_FOUND: &str = "This page does not exist.";
    pub const METHOD: &str = "This method is not allowed.";
    pub const TOO_LARGE: &str = "The request is too large.";
    pub const INCOMPLETE: &str = "The request ended too early.";
    pub const NO_TEXT: &str = "the text is not valid UTF-8";
    pub const SLOW: &str = "Nothing was received for a minute.";
    pub const NO_IMPORT: &str = "The number of the import is wrong or known already.";
    pub const IMPORTS_MAX: &str = "Too many imports run at a time.";
    pub const NOT_ENCRYPTED: &str = "This page is encrypted. Its address begins with https.";
    pub const NOT_OWNER: &str = "Only the user of this machine who runs the server can do this, by a \
        browser on this machine and not through a proxy. Where logins are necessary, it needs the role \
        root, hostManager or clusterAdmin, too.";
    pub const WITHOUT_FOLDERS: &str = "This server does not know how folders are indexed.";
    pub const READ_ONLY: &str = "The page is read-only: it was started with --web-read-only.";
    pub const TOKEN: &str = "The form is out of date. Load the page again.";
    pub const ORIGIN: &str = "The form was sent by another web site.";
    pub const LOGIN: &str = "Log in first.";
    pub const FAILED: &str = "The page failed. The log of the server says why.";

    /// Names a status for people.
    pub fn title(status: u16) -> &'static str {
        match status {
            400 => "That cannot be done",
            401 => "A login is needed",
            403 => "Not allowed",
            404 => "Not found",
            504 => "It took too long",
            503 => "Not available",
            _ => "An error",
        }
    }
}

/// The interface for programs.
pub mod api {
    pub const SORT: &str = "sort must be relevance, newest, oldest or largest";
    pub const NOT_INDEXED: &str = "no document with this id is indexed";

    /// Says which numbers a parameter takes.
    pub fn number(name: &str, least: u32, most: u32) -> String {
        format!("{name} must be a whole number from {least} to {most}")
    }

    /// Says which properties are counted.
    pub fn field(names: &str) -> String {
        format!("field must be one of {names}")
    }
}

/// The overview.
pub mod home {
    pub const NAME: &str = "Overview";
    pub const TITLE: &str = "Overview";
    pub const HOST: &str = "Server";
    pub const UPTIME: &str = "Running for";
    pub const CONNECTIONS: &str = "Connections";
    pub const OPERATIONS: &str = "Operations since the start";
    pub const DATABASES: &str = "Databases";
    pub const DATABASE: &str = "Database";
    pub const SIZE: &str = "Size";
    pub const NO_DATABASES: &str = "There are no databases yet.";
}
