//! The `volary` command, with tar archives and the keys of a file beside what is built in.

use volary_cli::volary::Registry;

fn main() -> std::process::ExitCode {
    volary_cli::run(
        Registry::default()
            .with_format(&volary_example_tar::TAR)
            .with(volary_example_kv::scheme()),
    )
}
