//! What of volary builds for other systems than this one. Nothing runs there: a compiler's word only.

use crate::run::Step;
use anyhow::Result;
use std::process::Command;

/// A target, and what is checked for it.
const PORTS: &[(&str, &str)] = &[
    // What releases are built for, with another processor and C library than CI's: all but SMB, as below.
    (
        "aarch64-unknown-linux-musl",
        "--package volary-plugin --package volary --no-default-features \
         --features bulk,cedar,ext4,fat,ffs,fuse,host,iso9660,layers,nfs,nfs-client,ntfs,qcow2,v7",
    ),
    // All but what is Linux's own: mounts, directories of the host; and but SMB, whose ciphers want
    // a C compiler for the target.
    (
        "aarch64-apple-darwin",
        "--package volary --no-default-features \
         --features bulk,cedar,ext4,fat,ffs,iso9660,layers,nfs,nfs-client,ntfs,qcow2,v7",
    ),
    // Devices, drivers, layers, sessions and bulk reads. The names of places are those of UNIX yet.
    (
        "x86_64-pc-windows-gnu",
        "--package volary-block --package volary-bulk --package volary-layers \
         --package volary-fat --package volary-ffs --package volary-v7 --package volary-cedar \
         --package volary-iso9660 --package volary-ext4 --package volary-ntfs --package volary-mem",
    ),
];

/// Checks all of it, without a warning. A target that is not there is installed, or left out and
/// named if nothing is to be installed.
///
/// # Errors
/// The first that does not build.
pub(crate) fn check(profile: &str, may_install: bool) -> Result<()> {
    for (target, what) in PORTS {
        if !is_installed(target) {
            if !may_install {
                println!("{target}: left out, as its standard library is not installed");
                continue;
            }
            Step::new(&format!("rustup target add {target}")).run()?;
        }
        let line =
            format!("cargo check --quiet --lib --profile {profile} --target {target} {what}");
        Step::new(&line).env("RUSTFLAGS", "-D warnings").run()?;
    }
    Ok(())
}

/// Returns whether the standard library for a target is there.
fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let place = command.output().map(|told| told.stdout).unwrap_or_default();
    let place = String::from_utf8_lossy(&place).trim().to_owned();
    std::fs::read_dir(place).is_ok_and(|mut files| files.next().is_some())
}
