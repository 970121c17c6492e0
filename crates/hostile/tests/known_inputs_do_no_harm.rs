//! Every saved input of every target. The line that did harm is named on the way, so that a panic tells
//! which it was.

use windrow_hostile::{TARGETS, corpus};

#[test]
fn known_inputs_do_no_harm() {
    for target in TARGETS {
        let path = corpus::path(target.name);
        let text = std::fs::read_to_string(&path).expect("a corpus for each target");
        for (line, input) in corpus::inputs(&text) {
            let done = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(done.is_ok(), "{} of {}", line, path.display());
        }
    }
}
