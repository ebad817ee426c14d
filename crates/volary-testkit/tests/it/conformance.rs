//! The conformance suite on the model, under layers that should not be
//! noticed, and on a directory of the host.

use volary_testkit::{Fresh, Suite, hostfs};

fn host_directory() -> Fresh {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let path = dir.path().to_path_buf();
    let open = move || hostfs::open(&path, hostfs::unix_caps()).expect("the directory");
    Fresh::new(open()).reattach(open).keeping(dir)
}

#[test]
fn a_directory_of_the_host_conforms() {
    Suite::new("host directory", host_directory)
        .own_clock()
        .run();
}
