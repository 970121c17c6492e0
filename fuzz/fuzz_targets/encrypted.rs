#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_fuzz_targets::run("encrypted", bytes));
