//! The driver on a server that is not ours: nfs-ganesha, in a network of its own,
//! where it can have a portmapper.
//!
//! The test runs itself again in new network and process namespaces; what it starts
//! there ends with it.

use crate::conformance::{suite, without_room};
use crate::side::Side;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use volary_core::{Caps, Fs, Mode};
use volary_nfs_client::{Location, NfsOptions};
use volary_testkit::Fresh;
use volary_testkit::oracle::{Tool, have};

/// Set where the test runs a second time.
const INSIDE: &str = "VOLARY_GANESHA_INSIDE";
const PROGRAMS: [Tool; 4] = [
    tool("ganesha.nfsd", "nfs-ganesha"),
    tool("rpcbind", "rpcbind"),
    tool("ip", "iproute2"),
    tool("unshare", "util-linux"),
];

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

#[test]
fn what_is_written_through_ganesha_is_there() {
    within("what_is_written_through_ganesha_is_there", large_files);
}

mod suites {
    /// A minute: with `VOLARY_SUITES=1` only.
    #[test]
    fn a_directory_served_by_ganesha_keeps_its_word() {
        if std::env::var_os("VOLARY_SUITES").is_none() {
            println!("skipped: the suite through ganesha, without VOLARY_SUITES=1");
            return;
        }
        let name = "suites::a_directory_served_by_ganesha_keeps_its_word";
        super::within(name, super::conformance);
    }
}

/// Runs `work` on a directory that ganesha serves, for the test of this name.
fn within(name: &str, work: fn(&Path)) {
    if std::env::var_os(INSIDE).is_some() {
        return serve(work);
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a network of its own takes root");
        return;
    }
    if !have(&PROGRAMS) {
        return;
    }
    let me = std::env::current_exe().expect("this program");
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command
        .arg(me)
        .arg("--exact")
        .arg(format!("ganesha::{name}"));
    let output = command.arg("--nocapture").env(INSIDE, "1").output();
    let output = output.expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{err}");
    assert!(said.contains("1 passed"), "{said}");
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status();
    assert!(status.expect(program).success(), "{program} {words:?}");
}

fn start(program: &str, words: &[&str]) {
    let mut command = Command::new(program);
    let command = command.args(words).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    // It ends with the namespace.
    drop(child.expect(program));
}

fn serve(work: fn(&Path)) {
    run("ip", &["link", "set", "lo", "up"]);
    // Where the host's own portmapper would be in the way.
    run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
    let state = TempDir::new().expect("a directory");
    let export = TempDir::new().expect("a directory");
    for dir in ["/var/run/ganesha", "/var/lib/nfs/ganesha"] {
        std::fs::create_dir_all(dir).expect(dir);
    }
    let config = state.path().join("ganesha.conf");
    std::fs::write(&config, configuration(export.path())).expect("the configuration");
    let path = |name: &str| state.path().join(name).display().to_string();
    start("rpcbind", &["-w", "-f"]);
    until("the portmapper listens", || {
        std::net::TcpStream::connect(("127.0.0.1", 111)).is_ok()
    });
    let (log, pid) = (path("log"), path("pid"));
    let config = config.display().to_string();
    start(
        "ganesha.nfsd",
        &[
            "-F", "-N", "NIV_WARN", "-f", &config, "-L", &log, "-p", &pid,
        ],
    );
    // It listens before the portmapper knows of it.
    let registered = ["100003", "100005"].map(|program| ["-T", "tcp", "127.0.0.1", program, "3"]);
    until("ganesha is registered", || {
        registered.iter().all(|words| is_well("rpcinfo", words))
    });
    work(export.path());
}

fn configuration(export: &Path) -> String {
    let arch = std::env::consts::ARCH;
    format!(
        "NFS_CORE_PARAM {{ NFS_Port = 20490; MNT_Port = 20048; NLM_Port = 20032; \
         NFS_Protocols = 3; Enable_RQUOTA = false; Enable_UDP = false; \
         Plugins_Dir = \"/usr/lib/{arch}-linux-gnu/ganesha\"; }}\n\
         NFSv4 {{ Graceless = true; }}\n\
         NFS_KRB5 {{ Active_krb5 = false; }}\n\
         EXPORT_DEFAULTS {{ SecType = sys; Transports = TCP; PrivilegedPort = true; }}\n\
         EXPORT {{ Export_Id = 1; Path = \"{}\"; Pseudo = \"/export\"; Protocols = 3; \
         Access_Type = RW; Squash = No_Root_Squash; Disable_ACL = true; \
         Filesystem_id = 77.77; FSAL {{ Name = VFS; }} }}\n",
        export.display()
    )
}

fn is_well(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    let command = command.args(words).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    status.expect(program).success()
}

/// Waits, two minutes at most, until it is so.
#[expect(clippy::disallowed_methods, reason = "other programs give no sign")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not after two minutes: {what}");
}

/// By the portmapper, as an export is named without a port.
fn attach(export: &Path) -> Fs {
    let location = Location::parse(format!("127.0.0.1{}", export.display()).as_bytes());
    let options = NfsOptions::default();
    let fs = volary_nfs_client::attach(&location.expect("a location"), &options);
    fs.expect("the export")
}

fn large_files(export: &Path) {
    let a = Side(attach(export));
    assert!(
        a.0.caps()
            .has(Caps::SHARED_LOCKS | Caps::HARD_LINKS | Caps::SYMLINKS)
    );
    let want: Vec<u8> = (0..20_000_001)
        .map(|i: usize| (i / 4096 + i) as u8)
        .collect();
    let open = a.create("large");
    for (i, part) in want.chunks(300_001).enumerate() {
        let at = Some(i as u64 * 300_001);
        a.0.write(&a.cx(), open, at, part).expect("write");
    }
    a.0.close(&a.cx(), open).expect("close");
    let on_disk = std::fs::read(export.join("large")).expect("the file");
    assert!(on_disk == want, "what was written is there");
    assert!(a.content("large") == want, "and is read");
    let node = a.find("large");
    let open = a.0.open(&a.cx(), node, Mode::ReadWrite).expect("open");
    a.0.close(&a.cx(), open).expect("close");
    std::fs::remove_file(export.join("large")).expect("remove");
}

fn conformance(export: &Path) {
    let (at, count) = (export.to_owned(), AtomicU32::new(0));
    // A directory for each case: ganesha remembers what we would remove behind it.
    let make = move || {
        let dir = at.join(count.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&dir).expect("a directory");
        Fresh::new(attach(&dir))
    };
    let ext4 = "ganesha says that it keeps more than the host's file system does";
    without_room(suite("ganesha", make))
        .leave_out("a_name_of_the_greatest_length_can_be_had", ext4)
        .leave_out("the_greatest_size_can_be_had", ext4)
        .leave_out("an_append_past_the_greatest_size_is_too_big", ext4)
        .leave_out(
            "listing_while_others_come_and_go",
            "now and then a listing through ganesha is empty meanwhile; whose fault is not found out",
        )
        .leave_out(
            "a_lock_can_be_taken_and_given_back",
            "without rpc.statd beside it, ganesha has no room for locks",
        )
        .leave_out(
            "a_time_comes_back_rounded_down",
            "ganesha says that it keeps times in steps of 100 ns, and keeps them all",
        )
        .run();
}
