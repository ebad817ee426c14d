//! The `volary` command, with what is built in.

/// That of glibc gets memory page by page, with a fault for each: a fifth of the processor time of a bulk
/// read. That of musl has one lock for all threads.
#[global_allocator]
static ALLOCATOR: volary_cli::Allocator = volary_cli::Allocator;

fn main() -> std::process::ExitCode {
    volary_cli::run(volary::Registry::default())
}
