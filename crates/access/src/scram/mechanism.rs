//! The two mechanisms.

/// A SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// SCRAM-SHA-1. Its password is an MD5 hash of the user's name and password.
    ScramSha1,
    /// SCRAM-SHA-256. Its password is prepared with SASLprep.
    ScramSha256,
}

impl Mechanism {
    /// Both, in the order of `saslSupportedMechs`.
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha256, Mechanism::ScramSha1];

    /// Returns the name in commands and documents.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// Returns the mechanism with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the length of a salt in bytes. As in MongoDB, a salt and the 4 bytes of a block
    /// number have the length of a digest.
    pub fn salt_bytes(self) -> usize {
        self.digest_bytes() - 4
    }

    /// Returns the length of digests and keys in bytes.
    pub fn digest_bytes(self) -> usize {
        match self {
            Mechanism::ScramSha1 => 20,
            Mechanism::ScramSha256 => 32,
        }
    }

    /// Returns the default iteration count.
    pub fn iterations_default(self) -> u32 {
        match self {
            Mechanism::ScramSha1 => 10_000,
            Mechanism::ScramSha256 => 15_000,
        }
    }
}
