//! libFuzzer's entry to [`volary_fuzz::plugin::paths`].
#![no_main]

#[global_allocator]
static HEAP: volary_fuzz::heap::Bounded = volary_fuzz::heap::Bounded;

libfuzzer_sys::fuzz_target!(|input: &[u8]| volary_fuzz::plugin::paths(input));
