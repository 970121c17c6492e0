//! The documents of events, and the lines that show them.

use std::time::SystemTime;

use windrow_access::{RoleName, UserName};
use windrow_document::json::{BASE64, to_base64};
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};

use crate::clock;
use crate::network_address::NetworkAddress;

/// The origin of an event: a connection with its users and their roles, or the server.
#[derive(Debug)]
pub struct AuditOrigin {
    uuid: [u8; 16],
    local: DocumentBuf,
    remote: DocumentBuf,
    users: Vec<UserName>,
    roles: Vec<RoleName>,
}

impl AuditOrigin {
    /// A connection between two addresses.
    pub fn connection(
        uuid: [u8; 16],
        local: &NetworkAddress,
        remote: &NetworkAddress,
    ) -> AuditOrigin {
        AuditOrigin {
            uuid,
            local: address(local),
            remote: address(remote),
            users: Vec::new(),
            roles: Vec::new(),
        }
    }

    /// Returns the same connection with a user, which has these roles.
    pub fn with_user(self, user: UserName, roles: Vec<RoleName>) -> AuditOrigin {
        AuditOrigin {
            users: vec![user],
            roles,
            ..self
        }
    }

    /// The server itself.
    pub fn server(uuid: [u8; 16]) -> AuditOrigin {
        AuditOrigin {
            uuid,
            local: doc! { "isSystemUser": true },
            remote: doc! { "isSystemUser": true },
            users: Vec::new(),
            roles: Vec::new(),
        }
    }
}

/// Returns the document of an address in events. A Unix domain socket has the path of the listener.
pub fn address(address: &NetworkAddress) -> DocumentBuf {
    match address {
        NetworkAddress::Ip(address) => {
            doc! { "ip": (address.ip().to_string()), "port": (i32::from(address.port())) }
        }
        NetworkAddress::Unix(path) => doc! { "unix": (path.display().to_string()) },
    }
}

/// Returns the document of an event, which the filter sees.
pub fn event_document(
    origin: &AuditOrigin,
    kind: &str,
    param: DocumentBuf,
    result: i32,
) -> DocumentBuf {
    let users = origin.users.iter().map(|user| user.to_document().into());
    let roles = origin.roles.iter().map(|role| role.to_document().into());
    let uuid = Value::Binary {
        subtype: 4,
        bytes: origin.uuid.to_vec(),
    };
    doc! {
        "atype": kind, "ts": (clock::date(SystemTime::now())), "uuid": uuid,
        "local": (origin.local.clone()), "remote": (origin.remote.clone()),
        "users": (users.collect::<Vec<Value>>()), "roles": (roles.collect::<Vec<Value>>()),
        "param": param, "result": result,
    }
}

/// Returns the line of an event: JSON, with the time and the UUID as MongoDB writes them.
pub fn line(event: Document<'_>) -> String {
    let field = |(name, value): (&str, ValueRef<'_>)| {
        let shown = match (name, value) {
            ("ts", ValueRef::DateTime(millis)) => {
                format!(r#"{{"$date":"{}"}}"#, clock::iso_of_millis(millis))
            }
            ("uuid", ValueRef::Binary { bytes, .. }) => {
                let text = to_base64(bytes, BASE64, true);
                format!(r#"{{"$binary":"{text}","$type":"04"}}"#)
            }
            (_, value) => value.to_string(),
        };
        format!("{}:{shown}", ValueRef::String(name))
    };
    let fields: Vec<String> = event.iter().map(field).collect();
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_mongodbs_fields() {
        let remote = NetworkAddress::Ip(([127, 0, 0, 1], 7).into());
        let local = NetworkAddress::Unix("/tmp/mongodb-1.sock".into());
        let origin = AuditOrigin::connection([0xAB; 16], &local, &remote);
        let role = RoleName::new("read", "d");
        let origin = origin.with_user(UserName::new("ann", "d"), vec![role]);
        let event = event_document(&origin, "dropUser", doc! { "user": "\n" }, 13);
        let line = line(event.as_document());
        let (start, rest) = line.split_once(r#""ts":{"$date":""#).unwrap();
        assert_eq!(start, r#"{"atype":"dropUser","#);
        let expected = concat!(
            r#"+00:00"},"uuid":{"$binary":"q6urq6urq6urq6urq6urqw==","$type":"04"},"#,
            r#""local":{"unix":"/tmp/mongodb-1.sock"},"remote":{"ip":"127.0.0.1","port":7},"#,
            r#""users":[{"user":"ann","db":"d"}],"roles":[{"role":"read","db":"d"}],"#,
            r#""param":{"user":"\n"},"result":13}"#
        );
        assert_eq!(&rest["2026-11-21T06:38:01.161".len()..], expected);
    }
}
