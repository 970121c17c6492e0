//! `windrow mcp`: a server of the Model Context Protocol on standard input and output, by which
//! language models search and read indexed files. It is read-only.
//!
//! A message is a line of JSON: a request, a notification or a response of JSON-RPC 2.0. Each call
//! opens the data folder and closes it, so `windrow index` can run between calls.
//!
//! Source: <https://modelcontextprotocol.io/specification>.
//!
//! Modules in reading order:
//!
//! - `options`: the command line
//! - `json_rpc`: messages
//! - `arguments`: arguments of calls
//! - `tools`, `resources`: what clients can call and read

mod arguments;
mod json_rpc;
mod options;
mod resources;
mod tools;

use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::command_line::{Failure, Subcommand};
use json_rpc::{Message, Request, RequestError};
use options::{HELP, parse};

pub const MCP: Subcommand = Subcommand {
    name: "mcp",
    summary: Some("let language models search indexed files"),
    run,
};

/// The supported versions of the protocol, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The maximum size of a message in bytes.
const MESSAGE_BYTES_MAX: u64 = 4 << 20;

const INSTRUCTIONS: &str = "Searches and reads the files that a person has indexed. Use `search` to find \
    documents, `read` with a path of a result to read one, and `facets` to count documents by a property.";

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(data_folder) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let server = McpServer { data_folder };
    let served = server.serve(&mut io::stdin().lock(), &mut io::stdout().lock());
    match served {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::runtime(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Handles the requests of a client.
struct McpServer {
    data_folder: PathBuf,
}

impl McpServer {
    /// Handles all messages until the end of the input.
    fn serve(&self, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
        loop {
            let mut line = Vec::new();
            let read = (&mut *input)
                .take(MESSAGE_BYTES_MAX)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            let is_whole = line.ends_with(b"\n") || (read as u64) < MESSAGE_BYTES_MAX;
            let reply = if is_whole {
                self.reply_to_line(&line)
            } else {
                skip_line(input)?;
                let message = format!("a message may have {MESSAGE_BYTES_MAX} bytes");
                Some(json_rpc::error_reply(
                    Value::Null,
                    &RequestError::invalid(message),
                ))
            };
            if let Some(reply) = reply {
                writeln!(output, "{reply}")?;
                output.flush()?;
            }
        }
    }

    /// Returns the reply to a message or to a batch of messages.
    fn reply_to_line(&self, line: &[u8]) -> Option<Value> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Err(error) => {
                let error = RequestError::parse(error.to_string());
                Some(json_rpc::error_reply(Value::Null, &error))
            }
            // Version 2025-03-26 allows batches.
            Ok(Value::Array(batch)) if !batch.is_empty() => {
                let replies = batch.into_iter().filter_map(|message| self.reply(message));
                let replies: Vec<Value> = replies.collect();
                (!replies.is_empty()).then_some(Value::Array(replies))
            }
            Ok(message) => self.reply(message),
        }
    }

    fn reply(&self, message: Value) -> Option<Value> {
        match Message::parse(message) {
            Err(error) => Some(json_rpc::error_reply(Value::Null, &error)),
            Ok(Message::Notification | Message::Response) => None,
            Ok(Message::Request(request)) => Some(match self.result(&request) {
                Ok(result) => json_rpc::result_reply(request.id, result),
                Err(error) => json_rpc::error_reply(request.id, &error),
            }),
        }
    }

    fn result(&self, request: &Request) -> Result<Value, RequestError> {
        match request.method.as_str() {
            "initialize" => Ok(initialize(request)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": tools::descriptions() })),
            "tools/call" => tools::call(&self.data_folder, request),
            "resources/list" => Ok(json!({ "resources": [] })),
            "resources/templates/list" => {
                Ok(json!({ "resourceTemplates": resources::templates() }))
            }
            "resources/read" => resources::read(&self.data_folder, request),
            method => Err(RequestError::unknown_method(method)),
        }
    }
}

/// Accepts the client's version of the protocol if it is known, otherwise offers the newest one.
fn initialize(request: &Request) -> Value {
    let client_version = request
        .parameters
        .get("protocolVersion")
        .and_then(Value::as_str);
    let version = VERSIONS
        .into_iter()
        .find(|version| client_version == Some(version));
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": {}, "resources": {} },
        "serverInfo": {
            "name": "windrow", "title": "Windrow", "version": env!("CARGO_PKG_VERSION")
        },
        "instructions": INSTRUCTIONS,
    })
}

/// Skips the rest of a line that is too long.
fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(input: &str) -> Vec<Value> {
        let server = McpServer {
            data_folder: "/nowhere".into(),
        };
        let mut output = Vec::new();
        server.serve(&mut input.as_bytes(), &mut output).unwrap();
        let lines = String::from_utf8(output).unwrap();
        let lines = lines.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect()
    }

    fn request(method: &str, parameters: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": parameters }).to_string()
    }

    #[test]
    fn versions_are_agreed_on() {
        let cases = [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("1999-01-01", VERSIONS[0]),
        ];
        for (client_version, expected) in cases {
            let request = request("initialize", &json!({ "protocolVersion": client_version }));
            let [reply] = &replies(&request)[..] else {
                panic!("no single reply");
            };
            assert_eq!(
                reply["result"]["protocolVersion"], expected,
                "{client_version}"
            );
        }
    }

    #[test]
    fn errors_have_codes() {
        let cases = [
            ("{", -32_700),
            ("[]", -32_600),
            ("7", -32_600),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
                -32_600,
            ),
            (&request("nonsense", &json!({})), -32_601),
            (&request("tools/call", &json!({ "name": "write" })), -32_602),
            (&request("tools/call", &json!({})), -32_602),
            (
                &request("resources/read", &json!({ "uri": "http://x" })),
                -32_602,
            ),
            (&"[".repeat(100_000), -32_700),
        ];
        for (line, code) in cases {
            let [reply] = &replies(line)[..] else {
                panic!("no single reply to {line}");
            };
            assert_eq!(reply["error"]["code"], code, "{line:.100}");
        }
    }

    #[test]
    fn only_requests_are_answered() {
        let ping = request("ping", &json!({}));
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let found = replies(&format!(
            "{note}\n\n{response}\n[{ping},{note},{ping}]\n[{note}]\n{ping}"
        ));
        let pong = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
        assert_eq!(found, [json!([pong, pong]), pong]);
    }

    #[test]
    fn long_messages_are_skipped() {
        let ping = request("ping", &json!({}));
        let long = "x".repeat(MESSAGE_BYTES_MAX as usize + 10);
        let found = replies(&format!("{long}\n{ping}\n"));
        assert_eq!(found[0]["error"]["code"], -32_600);
        assert_eq!(found[1]["id"], 7);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn failures_of_tools_are_results() {
        let call = json!({ "name": "search", "arguments": { "query": "bread" } });
        let [reply] = &replies(&request("tools/call", &call))[..] else {
            panic!("no single reply");
        };
        assert_eq!(reply["result"]["isError"], true);
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("/nowhere"), "{text}");
    }
}
