//! The private key of the server in a PEM file: as it is, or encrypted with a password.
//!
//! Encrypted keys have the form of PKCS #8 (RFC 5958) with PBES2 (RFC 8018) and AES. Older forms
//! derive a key from the password so quickly that it can be guessed, and are refused by name.

use std::fmt;

use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::SecretDocument;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

/// The password of a private key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPassword(Zeroizing<String>);

impl KeyPassword {
    /// Creates a password.
    pub fn new(password: &str) -> KeyPassword {
        KeyPassword(Zeroizing::new(password.to_owned()))
    }
}

impl fmt::Debug for KeyPassword {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyPassword(secret)")
    }
}

const BEGIN_ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END_ENCRYPTED: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// A header of keys that OpenSSL encrypted before PKCS #8.
const TRADITIONAL: &str = "Proc-Type: 4,ENCRYPTED";
const CONVERT: &str = "convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc";

/// Reads the first private key of a PEM file. The error continues a sentence with the file's name.
pub fn parse(pem: &[u8], password: Option<&KeyPassword>) -> Result<PrivateKeyDer<'static>, String> {
    let error = match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => return Ok(key),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(pem);
    let Some(encrypted) = encrypted_block(&text) else {
        return Err(format!("it has no private key, or a damaged one: {error}"));
    };
    let password = password
        .ok_or("its private key is encrypted: --tls-certificate-key-file-password is needed")?;
    decrypt(encrypted, password)
}

/// Fails if a PEM file has a key that was encrypted before PKCS #8. Its headers are an error for
/// all readers of the file.
pub fn refuse_traditional(pem: &[u8]) -> Result<(), String> {
    if String::from_utf8_lossy(pem).contains(TRADITIONAL) {
        return Err(format!(
            "its private key has the traditional encrypted form, which is not supported: {CONVERT}"
        ));
    }
    Ok(())
}

/// Returns the text of the first encrypted key.
fn encrypted_block(text: &str) -> Option<&str> {
    let block = text.get(text.find(BEGIN_ENCRYPTED)?..)?;
    let end = block.find(END_ENCRYPTED)?;
    block.get(..end + END_ENCRYPTED.len())
}

fn decrypt(block: &str, password: &KeyPassword) -> Result<PrivateKeyDer<'static>, String> {
    let (_, document) = SecretDocument::from_pem(block)
        .map_err(|error| format!("its encrypted private key is damaged: {error}"))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|error| {
        format!("its private key is encrypted in a form that is not supported ({error}): {CONVERT}")
    })?;
    let decrypted = encrypted.decrypt(password.0.as_bytes());
    let key = decrypted.map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(error) if error != pkcs8::pkcs5::Error::DecryptFailed => {
            format!(
                "its private key is encrypted in a form that is not supported ({error}): {CONVERT}"
            )
        }
        // A wrong password can leave bytes that are no key.
        _ => "the password of its private key is wrong, or the key is damaged".to_owned(),
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Keys that OpenSSL has made. The password is "secret".
    /// A key of Ed25519.
    const PLAIN: &str = "MC4CAQAwBQYDK2VwBCIEIOKCGYIppR8mX0Wjy7tG1sEdDbVNL4g4AApQYTXjY+mX";
    /// The same with PBKDF2, HMAC-SHA-256 and AES-256-CBC.
    const AES: &str = "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjwar30S1Kk3gICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECSzCr/nPPyDViqSoWS82wYEQLaQ6KJ/hGN0F6Ew2J3CcaOeIJFmPjj4Z38wAdkd569oNS55YvHlYd8CnrBvIZ/KsSHsSD6QfyjYR3jyTMa/35o=";
    /// The same with scrypt.
    const SCRYPT: &str = "MIGTME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAiLtl38FS4swgICBAACAQgCAQEwHQYJYIZIAWUDBAEqBBC1LB/L87fVs+aF4weynKduBEBe/CQGypdmEaJN31f68cv2vU1vmHoSjdzlA0/4EoErs3fWNB0/45YCiK0ve4rB9y0CohyX6iwEiaibeTVq7Nlq";
    /// The same with Triple DES.
    const DES3: &str = "MIGKME4GCSqGSIb3DQEFDTBBMCkGCSqGSIb3DQEFDDAcBAgdAgzyq5ZIlwICCAAwDAYIKoZIhvcNAgkFADAUBggqhkiG9w0DBwQIW3s0kF048icEOPeagww+pLzSCkr1THhMOlcDc1yVNMUKAvkQgst/MZUyWkCs0o0USIPS8cZFDRxSGDJ34v7FC+SX";
    /// The same with PBES1.
    const PBES1: &str = "MFgwHAYKKoZIhvcNAQwBAzAOBAhmoWP4IMKdJgICCAAEOFTWs3ZVv+nNYBQvvMVXs5ezhm539gjq5EvMFVLiyFwFrk1lLOKfPMs7N7EDOqV5roJG7KfFvSkW";
    /// The same with HMAC-SHA-1.
    const SHA1: &str = "MIGNMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAjhsEs+EqVDaAICCAAwHQYJYIZIAWUDBAEqBBC2XIDc1CJc7+a9wB2tkTY9BED7ELQKi+ohnxpGGOeVFmyPkrL5grP7Con3eHlAQSmwAK7sdVDg6lsW9a6NwYbJTOWbtwQo6gMwX1OZLS/gd3bl";

    fn pem(label: &str, content: &str) -> String {
        let lines: Vec<&str> = (0..content.len())
            .step_by(64)
            .filter_map(|at| content.get(at..content.len().min(at + 64)))
            .collect();
        let lines = lines.join("\n");
        format!("text\n-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
    }

    fn check(pem: &str, password: Option<&str>, expected: Result<(), &str>) {
        let password = password.map(KeyPassword::new);
        match (parse(pem.as_bytes(), password.as_ref()), expected) {
            (Ok(key), Ok(())) => {
                let plain = PrivateKeyDer::from_pem_slice(plain().as_bytes()).unwrap();
                assert_eq!(key.secret_der(), plain.secret_der());
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (Ok(_), Err(part)) => panic!("no error with {part:?}"),
            (Err(error), Ok(())) => panic!("{error}"),
        }
    }

    fn plain() -> String {
        pem("PRIVATE KEY", PLAIN)
    }

    fn encrypted(content: &str) -> String {
        pem("ENCRYPTED PRIVATE KEY", content)
    }

    #[test]
    fn encrypted_keys_are_read_with_their_password() {
        check(&plain(), None, Ok(()));
        check(&plain(), Some("secret"), Ok(()));
        for content in [AES, SCRYPT] {
            let pem = encrypted(content);
            check(&pem, Some("secret"), Ok(()));
            check(&pem, Some("Secret"), Err("the password"));
            check(&pem, Some(""), Err("the password"));
            check(&pem, None, Err("--tls-certificate-key-file-password"));
        }
        let password = KeyPassword::new("secret");
        assert_eq!(format!("{password:?}"), "KeyPassword(secret)");
    }

    #[test]
    fn other_forms_are_refused_by_name() {
        for content in [DES3, PBES1, SHA1] {
            check(&encrypted(content), Some("secret"), Err("not supported ("));
        }
        let traditional = pem(
            "EC PRIVATE KEY",
            "Proc-Type: 4,ENCRYPTED\nDEK-Info: A,B\n\nAAAA",
        );
        let refused = refuse_traditional(traditional.as_bytes()).unwrap_err();
        assert!(refused.contains("traditional"), "{refused}");
        assert_eq!(refuse_traditional(encrypted(AES).as_bytes()), Ok(()));
        check("", Some("secret"), Err("no private key"));
        check(&encrypted("AAAA"), Some("secret"), Err("damaged"));
        check(&encrypted("A*"), Some("secret"), Err("damaged"));
        let cut = encrypted(AES).replace("-----END", "");
        check(&cut, Some("secret"), Err("no private key"));
    }
}
