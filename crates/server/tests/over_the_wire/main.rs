//! Tests of the server over sockets, one file per behaviour.

mod client;
mod disconnects;
mod hello;
mod reads_and_writes;
mod search_index_renewal;
