//! Names the shared library by the version of its interface.

/// Grows when a program that was linked with the library before could not use the new one.
const INTERFACE: u32 = 0;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvolary.so.{INTERFACE}");
}
