//! Runs all saved inputs of all targets. A failure names the line of the input.

use windrow_fuzz_targets::{TARGETS, corpus};

#[test]
fn saved_inputs_reveal_no_bugs() {
    for target in TARGETS {
        let path = corpus::path(target.name);
        let text = std::fs::read_to_string(&path).expect("each target has a corpus");
        for (line, input) in corpus::parse_inputs(&text) {
            let result = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(result.is_ok(), "{} of {}", line, path.display());
        }
    }
}
