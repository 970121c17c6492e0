//! SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677), as MongoDB uses them.
//!
//! ```text
//! client                                          server
//!   n,,n=USER,r=CLIENT                       →                      client-first
//!                                            ←  r=CLIENT SERVER,s=SALT,i=ITERATIONS
//!   c=biws,r=CLIENT SERVER,p=PROOF           →                      client-final
//!                                            ←  v=SIGNATURE         server-final
//! ```
//!
//! The server stores no password: it stores the `StoredKey`, with which it checks a proof, and the
//! `ServerKey`, with which it signs. A login costs it a few HMACs. Only the client repeats them by
//! the iteration count.

mod client;
mod credentials;
mod hash;
mod mechanism;
mod messages;
mod server;

pub use client::{ClientConversation, ClientProof};
pub use credentials::{Credentials, prepare_password};
pub use hash::keyed_hash;
pub use mechanism::Mechanism;
pub use messages::ClientFirst;
pub use server::ServerConversation;
