//! The login of a connection: a SCRAM conversation, then a user.

use std::sync::{Arc, Mutex, MutexGuard};

use windrow_access::scram::{ClientFirst, ServerConversation};
use windrow_access::{Endpoints, Mechanism, StoredCredentials, User, UserName};
use windrow_collection::Engine;
use windrow_wire::{CommandError, ErrorCode};

use super::directory::{Identity, Users};
use crate::sync::lock;

/// The login of a connection.
#[derive(Debug, Default)]
pub struct Login {
    state: Mutex<LoginState>,
}

/// The state of a [`Login`], which its lock protects.
#[derive(Debug, Default)]
struct LoginState {
    logged_in: Option<LoggedIn>,
    conversation: Option<Conversation>,
    conversations_started: i32,
}

/// A user that is logged in.
#[derive(Debug)]
struct LoggedIn {
    user: UserName,
    /// The user as it logged in. Another user with the same name is not logged in.
    logged_in_as: UserInstance,
    /// The user at the state of the directory at which it was read.
    cached: Option<(Arc<Users>, Arc<Identity>)>,
}

/// Distinguishes a user from a later one with the same name.
#[derive(Debug)]
enum UserInstance {
    Id([u8; 16]),
    /// A stored user that has no id, since no command of this version created it. The salts of its
    /// passwords are random. A user of `$external` has none: its name is all that it proves.
    WithoutId(StoredCredentials),
}

impl UserInstance {
    fn new(user: &User) -> UserInstance {
        match user.id {
            Some(id) => UserInstance::Id(id),
            None => UserInstance::WithoutId(user.credentials.clone()),
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            UserInstance::Id(id) => user.id == Some(*id),
            UserInstance::WithoutId(credentials) => {
                user.id.is_none() && user.credentials == *credentials
            }
        }
    }
}

/// A conversation that is not finished.
#[derive(Debug)]
pub struct Conversation {
    pub id: i32,
    pub user: UserName,
    pub mechanism: Mechanism,
    /// `true` if it was started within `hello`.
    pub is_speculative: bool,
    step: Step,
    skips_empty_exchange: bool,
}

#[derive(Debug)]
enum Step {
    /// The client must prove its password. `None` for a user that does not exist.
    Proof(Box<ServerConversation>, Option<Box<User>>),
    /// The client must acknowledge the reply to its proof.
    Acknowledgement,
}

/// The reply to a message of a conversation.
#[derive(Debug)]
pub struct SaslReply {
    pub conversation: i32,
    pub is_done: bool,
    pub payload: Vec<u8>,
}

/// The first message of a conversation, parsed.
#[derive(Debug)]
pub struct StartedConversation {
    pub user: UserName,
    pub mechanism: Mechanism,
    pub is_speculative: bool,
    pub skips_empty_exchange: bool,
    pub first: ClientFirst,
}

/// The result of a message that continues a conversation.
#[derive(Debug)]
pub enum LoginStep {
    Reply(SaslReply),
    /// The client proved its password. The user is logged in.
    LoggedIn(SaslReply),
    /// The login failed for a reason that the client must not know.
    Failed(String),
}

impl Login {
    fn lock(&self) -> MutexGuard<'_, LoginState> {
        lock(&self.state)
    }

    /// Returns the user that is logged in.
    pub fn user(&self) -> Option<UserName> {
        self.lock().logged_in.as_ref().map(|it| it.user.clone())
    }

    /// Returns `true` if a user is logged in.
    pub fn is_logged_in(&self) -> bool {
        self.lock().logged_in.is_some()
    }

    /// Returns the user that is logged in, as it is now. Logs it out if it was dropped, or if its
    /// restrictions or those of its roles do not allow the connection any more.
    pub fn identity(
        &self,
        engine: &Engine,
        users: &Arc<Users>,
        endpoints: Endpoints,
    ) -> Result<Option<Arc<Identity>>, CommandError> {
        let mut state = self.lock();
        let Some(logged_in) = &mut state.logged_in else {
            return Ok(None);
        };
        if let Some((known, identity)) = &logged_in.cached
            && Arc::ptr_eq(known, users)
        {
            return Ok(Some(Arc::clone(identity)));
        }
        let found = users.get(engine, &logged_in.user)?;
        let is_same = |identity: &Arc<Identity>| {
            logged_in.logged_in_as.is(&identity.user)
                && identity.resolved.allow(&identity.user, endpoints)
        };
        match found.filter(is_same) {
            Some(identity) => {
                logged_in.cached = Some((Arc::clone(users), Arc::clone(&identity)));
                Ok(Some(identity))
            }
            None => {
                state.logged_in = None;
                Ok(None)
            }
        }
    }

    /// Logs the user out, if it is one of this database. Returns the user.
    pub fn log_out(&self, database: &str) -> Option<UserName> {
        let mut state = self.lock();
        let is_of = |one: &&mut LoggedIn| one.user.database == database;
        state.logged_in.as_mut().filter(is_of)?;
        state.logged_in.take().map(|one| one.user)
    }

    /// Fails if another user is logged in. A connection has one user.
    pub fn check_only_user(&self, user: &UserName) -> Result<(), CommandError> {
        let state = self.lock();
        let Some(known) = state.logged_in.as_ref().map(|it| &it.user) else {
            return Ok(());
        };
        if known == user {
            return Ok(());
        }
        // MongoDB's codes for one and for several databases.
        let code = if known.database == user.database {
            5_626_501
        } else {
            5_626_502
        };
        let message = format!(
            "Each client connection may only be authenticated once. Previously authenticated as: \
             {known}"
        );
        Err(CommandError::new(ErrorCode(code), message))
    }

    /// Starts a conversation, in place of one that is not finished. `stored` is the user with its
    /// credentials, `nonce` a random text.
    pub fn start(
        &self,
        started: StartedConversation,
        server: impl FnOnce(ClientFirst) -> ServerConversation,
        stored: Option<User>,
    ) -> SaslReply {
        let server = server(started.first);
        let payload = server.reply().to_vec();
        let mut state = self.lock();
        state.conversations_started = state.conversations_started.wrapping_add(1).max(1);
        let id = state.conversations_started;
        state.conversation = Some(Conversation {
            id,
            user: started.user,
            mechanism: started.mechanism,
            is_speculative: started.is_speculative,
            step: Step::Proof(Box::new(server), stored.map(Box::new)),
            skips_empty_exchange: started.skips_empty_exchange,
        });
        SaslReply {
            conversation: id,
            is_done: false,
            payload,
        }
    }

    /// Logs in a user that has proved its identity.
    pub fn log_in(&self, user: &User) {
        self.lock().logged_in = Some(LoggedIn {
            user: user.name.clone(),
            logged_in_as: UserInstance::new(user),
            cached: None,
        });
    }

    /// Takes the conversation with this id, if it is the open one.
    pub fn take(&self, id: i64) -> Option<Conversation> {
        let mut state = self.lock();
        let conversation = state.conversation.take();
        conversation.filter(|it| i64::from(it.id) == id)
    }

    /// Continues a conversation that [`take`](Self::take) returned.
    pub fn proceed(
        &self,
        mut conversation: Conversation,
        payload: &[u8],
        is_allowed: impl FnOnce(&User) -> Result<bool, CommandError>,
    ) -> Result<LoginStep, CommandError> {
        let id = conversation.id;
        let reply = |is_done, payload| SaslReply {
            conversation: id,
            is_done,
            payload,
        };
        let failed = |reason: &str| Ok(LoginStep::Failed(reason.to_owned()));
        let (server, stored) = match conversation.step {
            Step::Acknowledgement if payload.is_empty() => {
                return Ok(LoginStep::Reply(reply(true, Vec::new())));
            }
            Step::Acknowledgement => return failed("a message after the end"),
            Step::Proof(server, stored) => (server, stored),
        };
        let proved = match server.finish(payload) {
            Ok(proved) => proved,
            Err(error) => return Ok(LoginStep::Failed(error.to_string())),
        };
        let Some(user) = stored else {
            return failed("the user does not exist");
        };
        if !is_allowed(&user)? {
            return failed("the authentication restrictions do not allow the addresses");
        }
        let is_done = conversation.skips_empty_exchange;
        self.log_in(&user);
        if !is_done {
            conversation.step = Step::Acknowledgement;
            self.lock().conversation = Some(conversation);
        }
        Ok(LoginStep::LoggedIn(reply(is_done, proved)))
    }
}
