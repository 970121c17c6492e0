//! The server as its clients see it, over sockets: a file a behaviour.

mod client;
mod clients_say_hello;
mod connections_end_alone;
