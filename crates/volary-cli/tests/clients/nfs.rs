//! NFS: libnfs, by a program that copies a tree with it.

use crate::served::{Served, VOLUMES, content};
use crate::tree;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the program; `None` where there is no libnfs.
fn copier(dir: &Path) -> Option<PathBuf> {
    if !Path::new("/usr/include/nfsc/libnfs.h").is_file() {
        let missing = "no libnfs: apt-get install libnfs-dev";
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        println!("skipped: {missing}");
        return None;
    }
    let source = dir.join("libnfs.c");
    fs::write(&source, include_str!("libnfs.c")).unwrap();
    let program = dir.join("libnfs");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-lnfs");
    content(&cc.output().unwrap(), "cc");
    Some(program)
}

#[test]
fn libnfs_copies_in_and_out() {
    let dir = tempfile::TempDir::new().unwrap();
    let Some(copier) = copier(dir.path()) else {
        return;
    };
    let served = Served::start(3);
    let port = served.port("nfs");
    for export in VOLUMES {
        let url = format!("nfs://127.0.0.1/{export}?version=3&nfsport={port}&mountport={port}");
        let back = served.back(export).join("tree");
        let mut command = Command::new(&copier);
        let output = command
            .arg(url)
            .arg(served.tree())
            .arg("/libnfs")
            .arg(&back)
            .output();
        content(&output.unwrap(), export);
        tree::same(&served.tree(), &back, export);
    }
    served.is_on_host("libnfs");
    served.stop();
}
