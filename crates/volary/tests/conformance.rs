//! The conformance suite through each server on volumes that the servers' own tests have not:
//! FFS, V7, Cedar, ISO 9660, an NFS export.

mod servers;

use servers::{clock, serve_nfs, serve_smb};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use volary::fuse::{MountOptions, Stop};
use volary::mem::{Mem, MemOptions};
use volary::nfs_client::{self, Location, NfsOptions};
use volary::{BlockDevice, Caps, Format, Fs, Layer, Volume, VolumeOptions};
use volary_testkit::oracle::{Tool, have};
use volary_testkit::volumes::{Shape, attach_read_only, device};
use volary_testkit::{Fresh, Suite, hostfs, nfs, smb};

fn format(name: &str) -> &'static dyn Format {
    let found = volary::formats().iter().find(|f| f.name() == name);
    *found.expect("a format")
}

/// What is served: a new volume for each case.
type Make = Arc<dyn Fn() -> Fs + Send + Sync>;

fn made(shape: Shape) -> (String, Make) {
    let make =
        move || volary_testkit::volumes::attach(shape.format(), shape.device(), shape.attach);
    (shape.name(), Arc::new(move || make().expect("a volume")))
}

fn volume(fs: Fs) -> Arc<Volume> {
    Volume::new(fs, VolumeOptions::new("test", clock))
}

fn through_smb((name, make): &(String, Make)) -> Suite {
    let make = Arc::clone(make);
    let served = move || {
        let fs = make();
        let caps = smb::shown(fs.caps());
        let server = serve_smb(&volume(fs));
        let client = smb::Client::connect(server.address, "tester", "pass", "test", [7; 16]);
        let (client, _) = client.expect("a client");
        Fresh::new(Arc::new(smb::Remote::new(client, caps))).keeping(server)
    };
    smb::through(Suite::new(format!("{name} through smb"), served))
}

fn through_nfs((name, make): &(String, Make)) -> Suite {
    let make = Arc::clone(make);
    let served = move || {
        let fs = make();
        let caps = nfs::shown(fs.caps());
        let server = serve_nfs(&volume(fs));
        let client = nfs::client::Client::new(server.addresses()[0]);
        Fresh::new(Arc::new(nfs::Remote::new(client, caps))).keeping(server)
    };
    nfs::through(Suite::new(format!("{name} through nfs"), served))
}

fn through_fuse((name, make): &(String, Make)) -> Suite {
    let make = Arc::clone(make);
    hostfs::through(&format!("{name} through fuse"), move || {
        let volume = volume(make());
        let caps = volume.caps();
        let dir = TempDir::new().expect("a directory");
        let options = MountOptions::default();
        let mounted = volary::fuse::serve(volume, dir.path(), &options, Stop::Call);
        (
            dir.path().to_owned(),
            caps,
            (mounted.expect("a mount"), dir),
        )
    })
}

fn can_mount() -> bool {
    let able = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !able {
        println!("SKIPPED: no /dev/fuse, or no right to mount");
    }
    able
}

/// Returns an export of a volume in memory, which another server of ours serves on.
fn exported() -> (String, Make) {
    let make = || {
        let mem = Mem::attach(MemOptions::sized(1 << 30), clock());
        let upstream = serve_nfs(&volume(mem.expect("memory")));
        let location = format!("{}/test", upstream.addresses()[0]);
        let location = Location::parse(location.as_bytes()).expect("a location");
        let fs = nfs_client::attach(&location, &NfsOptions::default());
        let fs: Fs = Arc::new(Upstream(fs.expect("the export"), upstream));
        fs
    };
    ("nfs-client".to_owned(), Arc::new(make))
}

/// What is served, with the server that it comes from.
struct Upstream(
    Fs,
    #[expect(dead_code, reason = "only kept")] volary::nfs::Server,
);

impl Layer for Upstream {
    fn below(&self) -> &Fs {
        &self.0
    }
}

type LeftOut = [(&'static [&'static str], &'static str)];

/// Through each server; without some cases of the volume, and some more of its mount.
fn through_all(of: &(String, Make), left_out: &LeftOut, of_mount: &LeftOut) {
    through_smb(of).leave_out_all(left_out).run();
    through_nfs(of).leave_out_all(left_out).run();
    if can_mount() {
        let suite = through_fuse(of).leave_out_all(left_out);
        suite.leave_out_all(of_mount).run();
    }
}

const MIB: u64 = 1 << 20;

const FRAGMENTS: (&[&str], &str) = (
    &["a_full_volume_says_so_and_keeps_what_it_has"],
    "fragments are left in blocks that are partly taken: no large file has them",
);

const BY_PARTS: (&[&str], &str) = (
    &["a_write_past_the_greatest_size_is_too_big"],
    "Linux passes a write on page by page, and the first part may fit",
);

const BY_PAGES: (&[&str], &str) = (&["a_write_that_does_not_fit_changes_nothing"], BY_PARTS.1);

const NUMBERS: (&[&str], &str) = (
    &[
        "a_name_can_be_used_again_at_once",
        "a_new_node_is_none_that_was_there_before",
        "a_replacing_rename_never_leaves_the_name_free",
    ],
    "a mount does not show which of two nodes with one number is meant",
);

#[test]
fn ufs1_keeps_its_word() {
    through_all(
        &made(Shape::new(format("ffs"), "ffs1", 8 * MIB)),
        &[FRAGMENTS],
        &[NUMBERS, BY_PARTS],
    );
}

#[test]
fn ufs2_keeps_its_word() {
    through_all(
        &made(Shape::new(format("ffs"), "ffs2", 8 * MIB)),
        &[FRAGMENTS],
        &[NUMBERS, BY_PARTS],
    );
}

#[test]
fn the_seventh_edition_keeps_its_word() {
    through_all(
        &made(Shape::new(format("v7"), "v7", 8 * MIB)),
        &[],
        &[NUMBERS, BY_PARTS],
    );
}

#[test]
fn cedar_keeps_its_word() {
    through_all(
        &made(Shape::new(format("cedar"), "cedar", 12 * MIB)),
        &[],
        &[BY_PARTS, BY_PAGES],
    );
}

const LOOKS_FIRST: (&[&str], &str) = (
    &["a_read_only_volume_refuses_every_change"],
    "clients look for what they are to remove or rename, and find nothing",
);

#[test]
fn iso_9660_with_rock_ridge_keeps_its_word() {
    const XORRISO: Tool = Tool {
        program: "xorriso",
        package: "xorriso",
    };
    if !have(&[XORRISO]) {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let (tree, image) = (dir.path().join("tree"), dir.path().join("iso"));
    std::fs::create_dir_all(tree.join("dir/sub")).expect("a tree");
    for (name, len) in [
        ("empty", 0),
        ("one", 1),
        ("dir/some", 5000),
        ("large", 300_000),
    ] {
        std::fs::write(tree.join(name), vec![7; len]).expect("a file");
    }
    let mut xorriso = XORRISO.command();
    xorriso
        .args(["-as", "mkisofs", "-quiet", "-o"])
        .arg(&image)
        .arg(&tree);
    assert!(xorriso.status().expect("a run").success());
    let bytes = std::fs::read(&image).expect("an image");
    let make = move || {
        let dev: Arc<dyn BlockDevice> = device(&bytes);
        attach_read_only(format("iso9660"), dev, "").expect("a volume")
    };
    let of = ("iso9660".to_owned(), Arc::new(make) as Make);
    assert!(!of.1().caps().has(Caps::WRITE));
    through_all(&of, &[LOOKS_FIRST], &[]);
}

#[test]
fn a_driver_by_a_read_only_tree_keeps_its_word() {
    const TAR: Tool = Tool {
        program: "tar",
        package: "tar",
    };
    if !have(&[TAR]) {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let (tree, archive) = (dir.path().join("tree"), dir.path().join("tar"));
    std::fs::create_dir_all(tree.join("dir/sub")).expect("a tree");
    for (name, len) in [("empty", 0), ("dir/some", 5000), ("large", 300_000)] {
        std::fs::write(tree.join(name), vec![7; len]).expect("a file");
    }
    let mut tar = TAR.command();
    tar.arg("-C").arg(&tree).arg("-cf").arg(&archive).arg(".");
    assert!(tar.status().expect("a run").success());
    let bytes = std::fs::read(&archive).expect("an archive");
    let make = move || {
        let dev: Arc<dyn BlockDevice> = device(&bytes);
        attach_read_only(&volary_example_tar::TAR, dev, "").expect("a volume")
    };
    let of = ("tar".to_owned(), Arc::new(make) as Make);
    through_all(&of, &[LOOKS_FIRST], &[]);
}

const DEVICES: (&[&str], &str) = (
    &[
        "fifos_sockets_and_devices_are_kept",
        "mknod_over_what_is_there_is_refused",
    ],
    "our server makes fifos and sockets, but no devices",
);

const HOLES: (&[&str], &str) = (
    &["a_punched_hole_reads_as_zeros"],
    "NFS does not punch holes",
);

#[test]
fn an_nfs_export_keeps_its_word() {
    through_all(&exported(), &[DEVICES, HOLES], &[BY_PARTS]);
}
