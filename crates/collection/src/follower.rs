//! A server of a database in an object store: it opens the database, follows the log of another
//! server, and takes it over.

use std::sync::Arc;
use std::time::Duration;

use windrow_storage::{FollowOutcome, Promotion, Replica, StaleReason, Storage, StorageError};

use crate::engine::{Engine, FollowingEngine};
use crate::engine_applier::EngineApplier;
use crate::error::Error;
use crate::options::EngineOptions;

/// The decisions of the caller while a database in an object store is opened.
pub trait OpeningPolicy {
    /// Returns `true` if this server takes over the log. Called at its end.
    fn takes_over(&self, replica: &Replica) -> bool;
    /// Checks whether this server may be the primary. Called after it has taken over the log, and
    /// before the first write.
    ///
    /// # Errors
    /// Fails with an error with which the opening ends.
    fn check_primary(&self) -> Result<(), StorageError>;
    /// Loads the copy again, which cannot be continued. See [`Replica::reload`].
    ///
    /// # Errors
    /// Fails as [`Replica::reload`] does.
    fn reload(&self, replica: Replica, stale: StaleReason) -> Result<Replica, StorageError>;
    /// Waits before the next request after a failed one.
    ///
    /// # Errors
    /// Fails with `error` if the opening must end.
    fn wait(&self, error: StorageError) -> Result<(), StorageError>;
}

/// An opened database.
pub enum OpenedDatabase {
    /// This server is the primary.
    Primary(Arc<Engine>),
    /// This server follows another one.
    Follower(Arc<Engine>, Box<Follower>),
}

/// Opens a database in an object store. If `policy` says so, this server becomes the primary.
///
/// # Errors
/// Fails with errors of `policy`, and as [`Engine::open`] does. Fails with `Fenced` if another
/// server has taken over the log at once: the database can be opened again, and follows that server
/// then.
pub fn open_shared(
    mut replica: Replica,
    options: &EngineOptions,
    policy: &dyn OpeningPolicy,
) -> Result<OpenedDatabase, Error> {
    // The position at which a run was missing.
    let mut missing_at = None;
    loop {
        let is_at_end = match replica.follow(&mut ()) {
            Ok(FollowOutcome::Advanced) => false,
            Ok(FollowOutcome::AtEnd) => true,
            Ok(FollowOutcome::Stale(stale)) => {
                replica = policy.reload(replica, stale)?;
                false
            }
            Err(error @ StorageError::Unavailable { .. }) => {
                policy.wait(error)?;
                false
            }
            Err(error) => return Err(error.into()),
        };
        if !is_at_end {
            continue;
        }
        if policy.takes_over(&replica) {
            replica = match replica.take_over()? {
                Promotion::Won(primary) => {
                    policy.check_primary()?;
                    let storage = primary.into_storage()?;
                    let opened = Engine::open_storage(storage.clone(), options.clone());
                    return opened
                        .map(OpenedDatabase::Primary)
                        .map_err(|error| explain_missing_run(&storage, error));
                }
                Promotion::Behind(replica) => *replica,
                Promotion::Stale(replica, stale) => policy.reload(*replica, stale)?,
            };
            continue;
        }
        match Engine::open_following(replica.storage(), options.clone()) {
            // The log has grown by a record that removes the run from the catalog.
            Err(Error::Storage(StorageError::RunDeleted { place })) => {
                if missing_at.replace(replica.written()) == Some(replica.written()) {
                    return Err(missing_run(place));
                }
            }
            opened => {
                let FollowingEngine { engine, applier } = opened?;
                let follower = Follower {
                    replica,
                    applier,
                    engine: engine.clone(),
                };
                return Ok(OpenedDatabase::Follower(engine, Box::new(follower)));
            }
        }
    }
}

/// The longest wait of a new primary for the proof that it is still the primary.
const PROOF_TIME: Duration = Duration::from_secs(30);

/// Returns why a server that has taken over the log cannot read a run: another server has taken
/// over since and has deleted it, or the database is damaged. Returns other errors as they are.
fn explain_missing_run(storage: &Storage, error: Error) -> Error {
    let Error::Storage(StorageError::RunDeleted { place }) = &error else {
        return error;
    };
    match storage.prove_primary(PROOF_TIME) {
        Ok(true) => missing_run(place.clone()),
        Ok(false) => error,
        Err(fenced) => fenced.into(),
    }
}

fn missing_run(place: String) -> Error {
    let what = "the catalog names it, and it is missing".to_owned();
    StorageError::Damaged { place, what }.into()
}

/// A server that follows another one.
pub struct Follower {
    replica: Replica,
    applier: EngineApplier,
    engine: Arc<Engine>,
}

/// The result of [`Follower::take_over`].
pub enum Succession {
    /// This server is the primary. Its engine accepts writes.
    Won,
    /// Another server has extended the log.
    Behind(Box<Follower>),
    /// The copy cannot be continued: the database has to be opened again.
    Stale(StaleReason),
}

impl Follower {
    /// Applies the next object of the log, and adopts sections of the other server.
    ///
    /// # Errors
    /// Fails with `Unavailable` if the object store fails; the call can be repeated then. After
    /// another error, the database has to be opened again.
    pub fn follow(&mut self) -> Result<FollowOutcome, Error> {
        let followed = self.replica.follow(&mut self.applier)?;
        self.applier.adopt()?;
        Ok(followed)
    }

    /// Returns `true` if no server extends the log. To be called at the end of the log.
    pub fn is_without_primary(&self) -> bool {
        self.replica.is_without_primary()
    }

    /// Tries to become the primary. To be called at the end of the log. `check` decides whether
    /// this server may be the primary, after it has taken over the log and before the first write.
    ///
    /// # Errors
    /// Fails if the object store fails for longer than the retry policy of the replica, with
    /// `Fenced` if another server has taken over the log since, and with the error of `check`. The
    /// database has to be opened again.
    pub fn take_over(
        self,
        check: impl FnOnce() -> Result<(), StorageError>,
    ) -> Result<Succession, Error> {
        let Follower {
            replica,
            applier,
            engine,
        } = self;
        Ok(match replica.take_over()? {
            Promotion::Won(primary) => {
                check()?;
                let storage = primary.into_storage()?;
                let begun = engine.begin_writing(applier);
                begun.map_err(|error| explain_missing_run(&storage, error))?;
                Succession::Won
            }
            Promotion::Behind(replica) => Succession::Behind(Box::new(Follower {
                replica: *replica,
                applier,
                engine,
            })),
            Promotion::Stale(_, stale) => Succession::Stale(stale),
        })
    }
}
