//! The server as its clients see it, over sockets: a file a behaviour.

mod client;
mod clients_say_hello;
mod connections_end_alone;
mod documents_are_written_and_read;
