//! The differential runner: the model against a file system of Linux.

use crate::conformance::host_directory;
use volary_testkit::diff::{Diff, NAMES, Rules, Times};

#[test]
fn the_model_equals_a_directory_of_the_host() {
    // Bytes are all that Linux asks of a name.
    let names = NAMES.iter().map(ToString::to_string).collect();
    let rules = Rules {
        names,
        times: Times::None,
        ..Rules::default()
    };
    Diff::new("host directory", host_directory)
        .rules(rules)
        .run(0, 100);
}
