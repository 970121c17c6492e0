//! Tests of `windrow index` and `windrow search` as programs.

mod bad_files;
mod changed_files;
mod interrupted_ingestions;
mod running_server;
mod test_folder;
