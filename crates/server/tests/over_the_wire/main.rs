//! The server as its clients see it, over sockets: a file a behaviour.

mod client;
mod disconnects;
mod hello;
mod reads_and_writes;
