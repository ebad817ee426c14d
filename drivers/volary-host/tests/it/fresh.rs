//! What the conformance suite is given, and what it does not ask of any host.

use std::path::Path;
use volary_host::HostOptions;
use volary_testkit::{Fresh, Suite};

/// Returns the directory at `path`, attached as `options` say.
pub(crate) fn fresh(path: &Path, options: &HostOptions) -> Fresh {
    let attach = |path: &Path, options: &HostOptions| {
        volary_host::attach(path, options).expect("the directory")
    };
    let read_only = HostOptions {
        read_only: true,
        ..options.clone()
    };
    let options = options.clone();
    let (again, once_more) = (path.to_owned(), path.to_owned());
    Fresh::new(attach(path, &options))
        .reattach(move || attach(&again, &options))
        .read_only(move || attach(&once_more, &read_only))
}

/// Returns the suite, without what Linux does otherwise and what takes root.
pub(crate) fn suite(name: &str, make: impl Fn() -> Fresh + Send + Sync + 'static) -> Suite {
    let mut suite = Suite::new(name, make).own_clock().leave_out(
        "a_reader_sees_each_write_whole_or_not_at_all",
        "Linux's page cache takes a write page by page while others read",
    );
    if !rustix::process::geteuid().is_root() {
        for case in [
            "owner_and_mode_come_back",
            "create_open_leaves_attributes_alone",
            "fifos_sockets_and_devices_are_kept",
        ] {
            suite = suite.leave_out(case, "to give files away and to make devices takes root");
        }
    }
    suite
}
