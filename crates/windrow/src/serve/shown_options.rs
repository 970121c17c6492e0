//! Formats the options for `getCmdLineOpts`, in the form of the configuration file.

use std::net::SocketAddr;

use windrow_document::{DocumentBuf, Value};

use super::given_option::GivenOption;
use super::option_table::{Kind, find};

/// Returns the options in the form of the configuration file. If an option is repeated, the last
/// value is used.
pub fn show(
    given: &[GivenOption],
    listen: &[SocketAddr],
    parameters: &[(String, Value)],
) -> DocumentBuf {
    let hosts: Vec<String> = listen.iter().map(|it| it.ip().to_string()).collect();
    let port = listen.first().map_or(0, SocketAddr::port);
    let mut shown = ShownOptions::default();
    shown.set(&["net", "bindIp"], hosts.join(",").into());
    shown.set(&["net", "port"], i32::from(port).into());
    for GivenOption { option, value, .. } in given {
        let text = value.to_string_lossy();
        let value = match option.kind {
            Kind::Map => continue,
            Kind::Secret => Value::from(HIDDEN),
            Kind::Text => Value::from(text.as_ref()),
            Kind::Switch => Value::from(text == "true"),
            Kind::Number => text
                .parse::<f64>()
                .map_or(Value::from(text.as_ref()), Value::from),
            Kind::Integer => match (text.parse::<i32>(), text.parse::<i64>()) {
                (Ok(number), _) => Value::from(number),
                (_, Ok(number)) => Value::from(number),
                _ => Value::from(text.as_ref()),
            },
        };
        let control = match (option.name, text.as_ref()) {
            ("auth", "true") => Some("enabled"),
            ("no-auth", "true") => Some("disabled"),
            _ => None,
        };
        if let Some(control) = control {
            shown.set(&["security", "authorization"], control.into());
            continue;
        }
        let is_address = ["listen", "bind-ip", "bind-ip-all", "port"].contains(&option.name);
        if option.name == "syslog" {
            shown.set(&["systemLog", "destination"], "syslog".into());
        } else if !is_address {
            shown.set(&Vec::from_iter(option.key.split('.')), value);
        }
    }
    for (name, value) in parameters {
        shown.set(&["setParameter", name], value.clone());
    }
    shown.to_document()
}

/// The replacement of secrets, as in MongoDB.
const HIDDEN: &str = "<password>";

/// Returns the arguments of the command line without secrets.
pub fn show_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut is_secret = false;
    let show = |argument: String| {
        if std::mem::take(&mut is_secret) {
            return HIDDEN.to_owned();
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        let option = name.strip_prefix("--").and_then(find);
        match (option.is_some_and(|it| it.kind == Kind::Secret), value) {
            (true, Some(_)) => format!("{name}={HIDDEN}"),
            (named, _) => {
                is_secret = named;
                argument
            }
        }
    };
    arguments.into_iter().map(show).collect()
}

/// A tree of options.
#[derive(Default)]
struct ShownOptions(Vec<(String, ShownOption)>);

enum ShownOption {
    Value(Value),
    Section(ShownOptions),
}

impl ShownOptions {
    fn set(&mut self, path: &[&str], value: Value) {
        let [name, rest @ ..] = path else {
            return;
        };
        let at = self.0.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            let section = ShownOption::Section(ShownOptions::default());
            self.0.push(((*name).to_owned(), section));
            self.0.len() - 1
        });
        let (_, option) = &mut self.0[at];
        match option {
            ShownOption::Section(section) if !rest.is_empty() => section.set(rest, value),
            _ => *option = ShownOption::Value(value),
        }
    }

    fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        for (name, option) in &self.0 {
            match option {
                ShownOption::Value(value) => document.push(name, value.clone()),
                ShownOption::Section(section) => document.push(name, section.to_document()),
            }
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_command_line_are_hidden() {
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(|argument| (*argument).to_owned());
            assert_eq!(show_arguments(given), expected);
        };
        let (own, mongods) = (
            "--tls-certificate-key-file-password",
            "--tlsCertificateKeyFilePassword",
        );
        check(
            &["windrow", own, "s", "--port", "1"],
            &["windrow", own, HIDDEN, "--port", "1"],
        );
        check(&[mongods, "--port=1"], &[mongods, HIDDEN]);
        check(
            &[&format!("{mongods}=s=t"), "--data=d"],
            &[&format!("{mongods}={HIDDEN}"), "--data=d"],
        );
    }
}
