//! Programs of others as clients: libnfs's tools.

use crate::served::{Served, fat, fat_device};
use crate::served::{export, options};
use std::process::{Command, Output};
use volary_testkit::oracle::{Tool, have};

const TOOLS: [Tool; 3] = [
    Tool {
        program: "nfs-ls",
        package: "libnfs-utils",
    },
    Tool {
        program: "nfs-cp",
        package: "libnfs-utils",
    },
    Tool {
        program: "nfs-cat",
        package: "libnfs-utils",
    },
];

fn url(served: &Served, path: &str) -> String {
    let port = served.address().port();
    format!("nfs://127.0.0.1/test{path}?version=3&nfsport={port}&mountport={port}")
}

fn run(program: &str, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).args(args);
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {words}");
    output
}

#[test]
fn libnfs_copies_lists_and_prints() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::TempDir::new().unwrap();
    let data: Vec<u8> = (0..3_000_003u32).map(|n| (n % 253) as u8).collect();
    let host = dir.path().join("data");
    std::fs::write(&host, &data).unwrap();
    let host = host.to_str().unwrap();
    let on_fat = Served::of(fat(fat_device(64 << 20)), &export(), &options(1));
    for served in [Served::mem(), on_fat] {
        run("nfs-cp", &[host, &url(&served, "/data")]);
        let printed = run("nfs-cat", &[&url(&served, "/data")]).stdout;
        assert!(printed == data);
        let back = dir.path().join("back");
        run("nfs-cp", &[&url(&served, "/data"), back.to_str().unwrap()]);
        assert!(std::fs::read(&back).unwrap() == data);
        std::fs::remove_file(&back).unwrap();
        let listed = run("nfs-ls", &[&url(&served, "")]).stdout;
        let listed = String::from_utf8_lossy(&listed);
        assert!(listed.contains("3000003 data"), "{listed}");
        let other = served.other();
        let entry = other.lookup(other.root(), b"data").unwrap();
        assert_eq!(entry.attr.size, data.len() as u64);
    }
}
