//! Runs plug-ins in separate processes, for programs that cannot start themselves a second time.
//! They start this one with a connection as its standard input.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    let control = std::io::stdin().as_fd().try_clone_to_owned();
    let done = control
        .map(UnixStream::from)
        .and_then(volary_plugin::run_zygote);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!(
                "volary-plugin-host: its standard input must be the connection of a host: {e}"
            );
            ExitCode::FAILURE
        }
    }
}
