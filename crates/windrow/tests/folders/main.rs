//! Tests of `windrow index` and `windrow search` as programs.

mod bad_files;
mod changed_files;
mod interrupted_runs;
mod program;
mod running_server;
