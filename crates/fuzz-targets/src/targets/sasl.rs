//! Messages of logins.

use windrow_access::scram::{ClientFirst, ServerConversation};
use windrow_access::{Credentials, Mechanism};

/// The first message, a zero byte and the last message of a client. No message that was not made
/// with the password may log in.
pub fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let first = parts.next().unwrap_or_default();
    let last = parts.next().unwrap_or_default();
    let Ok(parsed) = ClientFirst::parse(first) else {
        return;
    };
    assert!(!parsed.user.is_empty() && !parsed.nonce.is_empty());
    for mechanism in Mechanism::ALL {
        let name = &parsed.user;
        let credentials = Credentials::new_fake(mechanism, b"secret", name, 1);
        let server = ServerConversation::start(mechanism, parsed.clone(), credentials, b"nonce");
        assert!(server.reply().starts_with(b"r="));
        assert!(server.finish(last).is_err());
    }
}
