//! The conformance suite on plug-ins.

use crate::built;
use volary_testkit::Suite;

#[test]
fn a_rust_driver_that_is_loaded_holds_to_its_word() {
    let library = built::memory();
    Suite::new("memory, loaded", move || built::within(&library, "8M").unwrap()).run();
}

#[test]
fn a_rust_driver_in_a_process_of_its_own_holds_to_its_word() {
    let library = built::memory();
    Suite::new("memory, apart", move || built::apart(&library, "8M").unwrap()).run();
}
