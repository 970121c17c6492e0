//! Tests of `windrow index` and `windrow search` as programs.

mod bad_files_cost_only_themselves;
mod documents_follow_files;
mod interrupted_runs_go_on;
mod program;
mod servers_are_asked;
