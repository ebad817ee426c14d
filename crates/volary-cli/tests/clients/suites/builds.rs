//! A C project is built on mounts of Linux's own clients, and comes out as on the host.

use crate::linux::NFS;
use crate::served::{Served, VOLUMES, content};
use std::path::Path;
use std::process::Command;
use volary_testkit::oracle::vm::{self, CIFS};

/// Makes and builds the project of the directory it is told, of as many sources.
const BUILD: &str = include_str!("build.sh");

/// Builds with the host's tools for each of `$VOLUMES`, mounted by `mounted`; what was built is
/// there after a new mount too, and can be removed.
const BUILDS: &str = r#"
built() {
    mount --bind /mnt /host/mnt && chroot /host /bin/sh -c "$1"; rc=$?
    umount /host/mnt && return $rc
}
for volume in $VOLUMES; do
    mounted $volume "$HOW" || { echo "cannot mount $volume"; exit 9; }
    echo "on $volume"
    built "sh /tmp/build.sh /mnt/project $SOURCES" || exit 1
    umount /mnt
    mounted $volume "$HOW" || exit 9
    built "cd /mnt/project && sha256sum -c --quiet sums && make -s clean" || exit 2
    rm -r /mnt/project || exit 3
    umount /mnt
done
"#;

/// Returns how many source files the project has: 30 in the long run, else `few`.
fn sources(few: u32) -> u32 {
    if crate::tree::all() { 30 } else { few }
}

/// Builds it in a guest for these volumes, and on the host.
fn builds(server: &str, mounted: &str, how: &str, volumes: &[&str]) {
    let Some(vmrun) = super::guest() else {
        return;
    };
    let served = Served::start(1);
    let sources = sources(3);
    let script = format!(
        "PORT={} VOLUMES='{}' HOW='{how}' SOURCES={sources}\ncat > /tmp/build.sh <<'END OF IT'\n{BUILD}END OF IT\n{mounted}{BUILDS}",
        served.port(server),
        volumes.join(" "),
    );
    let options = ["--hostroot", "--timeout", "3000"];
    let printed =
        vm::with_network(&vmrun, &options, &script).unwrap_or_else(|words| panic!("{words}"));
    let here = on_host(&served.back("here").join("project"), sources);
    let on = |volume: &&str| format!("on {volume}\n{here}");
    assert_eq!(printed, volumes.iter().map(on).collect::<String>());
    served.stop();
}

/// Returns what the same prints on the host.
fn on_host(project: &Path, sources: u32) -> String {
    let mut sh = Command::new("sh");
    sh.args(["-c", BUILD, "sh"])
        .arg(project)
        .arg(sources.to_string());
    content(&sh.output().unwrap(), "on the host")
}

/// Returns the volumes to build on: in short runs one.
fn volumes(one: &'static str) -> Vec<&'static str> {
    if crate::tree::all() {
        VOLUMES.to_vec()
    } else {
        vec![one]
    }
}

#[test]
fn a_project_is_built_on_a_mount_by_nfs() {
    builds("nfs", NFS, "v3", &volumes("host"));
}

#[test]
fn a_project_is_built_on_a_mount_by_cifs() {
    builds("smb", CIFS, "vers=3.1.1", &volumes("fat"));
}
