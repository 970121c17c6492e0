//! The messages of the client, parsed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;

/// Messages, names and nonces above these sizes in bytes are refused.
const MESSAGE_BYTES_MAX: usize = 4096;
const NONCE_BYTES_MAX: usize = 512;

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    /// The name of the user.
    pub user: String,
    /// The random text of the client.
    pub nonce: String,
    /// The header about channel binding, which the last message repeats.
    pub header: String,
    /// The message without the header, which the proof covers.
    pub bare: String,
}

impl ClientFirst {
    /// Parses `n,,n=USER,r=NONCE`.
    pub fn parse(message: &[u8]) -> Result<ClientFirst, Error> {
        let message = text(message)?;
        let invalid = || Error::Malformed("the first message must be n,,n=USER,r=NONCE");
        let (binding, rest) = message.split_once(',').ok_or_else(invalid)?;
        if !matches!(binding, "n" | "y") {
            return Err(Error::Malformed("channel binding is not supported"));
        }
        let (identity, bare) = rest.split_once(',').ok_or_else(invalid)?;
        let mut attributes = bare.split(',');
        let name = attribute(attributes.next(), "n=").ok_or_else(invalid)?;
        let user = unescape(name)?;
        let acts_for = match identity {
            "" => None,
            other => Some(unescape(other.strip_prefix("a=").ok_or_else(invalid)?)?),
        };
        if acts_for.is_some_and(|name| name != user) {
            return Err(Error::Malformed("a user cannot act for another one"));
        }
        let nonce = attribute(attributes.next(), "r=").ok_or_else(invalid)?;
        check_nonce(nonce)?;
        if user.is_empty() {
            return Err(invalid());
        }
        // Extensions may follow. RFC 5802 lets a server ignore those that it does not know.
        Ok(ClientFirst {
            user,
            nonce: nonce.to_owned(),
            header: format!("{binding},{identity},"),
            bare: bare.to_owned(),
        })
    }
}

/// The last message of a client.
#[derive(Debug)]
pub struct ClientFinal<'a> {
    /// The message without the proof.
    pub without_proof: &'a str,
    pub header: Vec<u8>,
    pub nonce: &'a str,
    pub proof: Vec<u8>,
}

impl<'a> ClientFinal<'a> {
    /// Parses `c=HEADER,r=NONCE,p=PROOF`.
    pub fn parse(message: &'a [u8]) -> Result<ClientFinal<'a>, Error> {
        let message = text(message)?;
        let invalid = || Error::Malformed("the last message must be c=HEADER,r=NONCE,p=PROOF");
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(invalid)?;
        let mut attributes = without_proof.split(',');
        let header = attribute(attributes.next(), "c=").ok_or_else(invalid)?;
        let nonce = attribute(attributes.next(), "r=").ok_or_else(invalid)?;
        Ok(ClientFinal {
            without_proof,
            header: STANDARD.decode(header).map_err(|_| invalid())?,
            nonce,
            proof: STANDARD.decode(proof).map_err(|_| invalid())?,
        })
    }
}

fn text(message: &[u8]) -> Result<&str, Error> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(Error::Malformed("it is longer than 4,096 bytes"));
    }
    std::str::from_utf8(message).map_err(|_| Error::Malformed("it is not UTF-8"))
}

fn attribute<'a>(part: Option<&'a str>, name: &str) -> Option<&'a str> {
    part?.strip_prefix(name)
}

fn check_nonce(nonce: &str) -> Result<(), Error> {
    // RFC 5802: printable characters without the comma.
    let is_printable = nonce.bytes().all(|byte| byte.is_ascii_graphic());
    if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !is_printable {
        return Err(Error::Malformed(
            "the nonce must be 1 to 512 printable characters",
        ));
    }
    Ok(())
}

/// Returns the name with `=2C` and `=3D` in place of comma and equals sign.
pub fn escape(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

fn unescape(name: &str) -> Result<String, Error> {
    let mut parts = name.split('=');
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (letter, rest) = if let Some(rest) = part.strip_prefix("2C") {
            (',', rest)
        } else if let Some(rest) = part.strip_prefix("3D") {
            ('=', rest)
        } else {
            return Err(Error::Malformed("the name has an = without 2C or 3D"));
        };
        unescaped.push(letter);
        unescaped.push_str(rest);
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_messages_are_parsed() {
        let check = |message: &[u8], expected: Option<(&str, &str, &str)>| {
            let found = ClientFirst::parse(message).ok();
            let found = found
                .as_ref()
                .map(|it| (&*it.user, &*it.nonce, &*it.header));
            assert_eq!(found, expected, "{}", message.escape_ascii());
        };
        check(b"n,,n=user,r=abc", Some(("user", "abc", "n,,")));
        check(b"y,,n=user,r=abc", Some(("user", "abc", "y,,")));
        check(b"n,a=user,n=user,r=abc", Some(("user", "abc", "n,a=user,")));
        check(b"n,,n=a=3Db=2Cc,r=x,ext=1", Some(("a=b,c", "x", "n,,")));
        check(b"n,a=other,n=user,r=abc", None);
        check(b"p=tls-unique,,n=user,r=abc", None);
        check(b"n,,n=user", None);
        check(b"n,,n=,r=abc", None);
        check(b"n,,n=user,r=", None);
        check(b"n,,n=us=er,r=abc", None);
        check(b"n,,n=us=2,r=abc", None);
        check(b"n,,m=1,n=user,r=abc", None);
        check(b"n,,n=us\xFFer,r=abc", None);
        check(b"n,,n=user,r=a\x01", None);
        check(b"", None);
        check(&[b'n'; 5000], None);
        assert_eq!(unescape(&escape("a=b,c")).unwrap(), "a=b,c");
    }
}
