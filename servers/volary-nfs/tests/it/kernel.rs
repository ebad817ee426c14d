//! Linux's own client, in a guest that vmrun boots: it reaches this host's loop-back
//! as 10.0.2.2.

#[path = "kernel/locks.rs"]
mod locks;

use crate::served::{Served, export, fat, fat_device, mem, options, rest};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use volary_session::Volume;
use volary_testkit::oracle::vm;

/// What a guest needs to mount the export.
const MOUNT: &str = r#"
mounted() {
    mount -t nfs -o "addr=10.0.2.2,vers=3,proto=tcp,port=$PORT,mountport=$PORT,mountproto=tcp,$1" \
        "10.0.2.2:/test" /mnt || exit 9
}
sums() { (cd "$1" && find . -type f | sort | tr '\n' '\0' | xargs -0 sha256sum | sha256sum); }
same() { [ "$1" = "$2" ] || { echo "$3: $1 is not $2"; exit 8; }; }
"#;

/// Begins a script in a guest, by this vmrun, with the server's port in `$PORT`.
fn begin(vmrun: &mut Command, port: u16, script: &str) -> Guest {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&file, format!("PORT={port}\n{MOUNT}\n{script}")).unwrap();
    vmrun.args(["--net", "--timeout", "500"]);
    vmrun.arg("--script").arg(&file);
    vmrun.stdout(Stdio::piped()).stderr(Stdio::piped());
    Guest {
        child: Some(vmrun.process_group(0).spawn().unwrap()),
        _script: file,
    }
}

/// A guest that runs; ended when dropped.
struct Guest {
    child: Option<Child>,
    _script: tempfile::TempPath,
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let group = format!("-{}", child.id());
            // It may have ended by itself.
            let _ = Command::new("kill").args(["--", &group]).status();
            let _ = child.wait();
        }
    }
}

impl Guest {
    /// Waits until the guest has made this file, for as long as the guest runs.
    fn gets_to(&mut self, served: &Served, name: &str) {
        let other = served.other();
        self.waits(name, || other.lookup(other.root(), name.as_bytes()).is_ok());
        // The guest has its answer by then, and does not make the file again.
        rest(3000);
    }

    /// Waits until it is so, for as long as the guest runs.
    fn waits(&mut self, what: &str, is_so: impl Fn() -> bool) {
        while !is_so() {
            let child = self.child.as_mut().unwrap();
            if child.try_wait().unwrap().is_some() {
                panic!("it ended before {what}: {}", self.output().1);
            }
            rest(20);
        }
    }

    /// Waits for its end: its status, and all that it printed.
    fn output(&mut self) -> (ExitStatus, String) {
        let child = self.child.take().unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status,
            String::from_utf8_lossy(&printed).into_owned(),
        )
    }

    /// Waits for its end, which is a good one.
    fn ends_well(mut self) {
        let (status, printed) = self.output();
        assert!(status.success(), "{status}\n{printed}");
    }
}

/// Runs a script in a guest, with the server at this port.
pub(crate) fn run_in_guest(vmrun: &Path, port: u16, script: &str) -> String {
    let script = format!("PORT={port}\n{MOUNT}\n{script}");
    vm::with_network(vmrun, &["--timeout", "500"], &script)
        .unwrap_or_else(|words| panic!("{words}"))
}

/// Makes a tree of `$DIRS` times a hundred files, copies it in and, after a new
/// mount, out.
const TREE: &str = r#"
mkdir /tree /back && cd /tree
for d in $(seq $DIRS); do
    mkdir "dir $d"
    for f in $(seq 100); do echo "$d $f" > "dir $d/file $f.txt"; done
done
dd if=/dev/urandom of=large bs=1M count=20 2>/dev/null
cd /
mounted nolock
time cp -r /tree /mnt/tree || exit 1
umount /mnt
mounted nolock
time cp -r /mnt/tree /back/tree || exit 2
same "$(sums /tree)" "$(sums /back/tree)" "the copy"
same "$(find /mnt/tree | wc -l)" $((DIRS * 101 + 2)) "entries"
"#;

/// What programs do with files.
const WORK: &str = r#"
cd /mnt || exit 3
echo one > a; echo two >> a; same "$(cat a | tr '\n' ' ')" "one two " "appended"
mv a b; [ ! -e a ] || exit 4
ln -s b s; same "$(readlink s)" b "symlink"; same "$(cat s | wc -l)" 2 "through it"
chmod 640 b; same "$(stat -c %a b)" 640 "mode"
touch -d '2001-02-03 04:05:06' b; same "$(stat -c %Y b)" 981173106 "time"
dd if=/dev/zero of=b bs=1 count=0 seek=100000 2>/dev/null; same "$(stat -c %s b)" 100000 "size"
: > b; same "$(stat -c %s b)" 0 "cut"
exec 5> open; echo kept >&5; rm open; echo more >&5; exec 5>&-
mkdir -p d/e; rmdir d 2>/dev/null && exit 5
mv d/e f; rmdir d f; [ ! -e d ] || exit 6
ls -la /mnt > /dev/null || exit 7
df /mnt | tail -1
rm -r /mnt/tree && rm -f b s
same "$(ls -A /mnt | wc -l)" 0 "what is left"
cd /; umount /mnt
"#;

#[test]
fn linux_copies_a_tree_in_and_out_of_memory() {
    copies_in_and_out(mem);
}

#[test]
fn linux_copies_a_tree_in_and_out_of_fat() {
    copies_in_and_out(|| fat(fat_device(256 << 20)));
}

fn copies_in_and_out(volume: impl FnOnce() -> Arc<Volume>) {
    let Some(vmrun) = vm::find() else { return };
    let served = Served::of(volume(), &export(), &options(1));
    // All ten thousand take minutes.
    let dirs = if std::env::var_os("VOLARY_SUITES").is_some() {
        100
    } else {
        5
    };
    let port = served.address().port();
    let printed = run_in_guest(&vmrun, port, &format!("DIRS={dirs}{TREE}{WORK}"));
    println!("{printed}");
    // The guest has left nothing, open files neither.
    let other = served.other();
    let stat = other.statfs().unwrap();
    assert!(stat.size - stat.free < 4 << 20, "{stat:?}");
}

#[test]
fn linux_goes_on_after_a_restart_of_the_server() {
    let Some(vmrun) = vm::find() else { return };
    let dev = fat_device(64 << 20);
    let served = Served::of(fat(dev.clone()), &export(), &options(1));
    let address = served.address();
    let script = r#"
mounted nolock,hard,timeo=10,actimeo=1
cd /mnt
for n in $(seq 50); do echo "$n" > "file$n"; done
exec 5> open; echo before >&5; sync
exec 6< file7
touch restart; echo asked
while [ -e restart ]; do sleep 0.2; done
echo seen; read seven <&6; same "$seven" 7 "read through an open from before"
echo after >&5; exec 5>&-
same "$(cat open | tr '\n' ' ')" "before after " "written through an open from before"
same "$(cat file* | wc -l)" 50 "all files"
"#;
    let mut running = begin(&mut vm::command(&vmrun), address.port(), script);
    running.gets_to(&served, "restart");
    let volume = served.volume.clone();
    drop(served);
    volume.detach().unwrap();
    let mut again = options(2);
    again.listen = vec![address];
    let served = Served::of(fat(dev), &export(), &again);
    let other = served.other();
    other.unlink(other.root(), b"restart").unwrap();
    running.ends_well();
}
