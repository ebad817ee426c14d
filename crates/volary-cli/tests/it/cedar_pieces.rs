//! Where files of a Cedar volume lie that several writers write side by side, and leaders
//! that are damaged.

use crate::mounting::Mounting;
use crate::sandbox::{Sandbox, noise};
use crate::serving::Serving;
use std::io::Write;
use std::process::Command;
use volary_testkit::nfs::client as nfs;
use volary_testkit::smb::{self, access, disposition};

/// Returns a volume with the smallest log: a record holds parts for 501 pieces.
fn volume(size: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    let line = format!("mkfs -q -t cedar --size {size} -o log=1460k --seed 1 c.img");
    sandbox.run(&line).ok();
    sandbox
}

/// Returns how often a file goes on elsewhere than behind itself, on the whole volume.
fn breaks(sandbox: &Sandbox) -> u64 {
    let map = sandbox.run("map --json c.img").ok();
    let map: serde_json::Value = serde_json::from_str(&map).unwrap();
    map["breaks"].as_u64().unwrap()
}

fn clean(sandbox: &Sandbox) {
    let checked = sandbox.run("fsck -n c.img").ok();
    assert!(checked.contains("clean"), "{checked}");
}

/// Three `dd` at once.
fn three_writers(sandbox: &Sandbox, words: &str) {
    let one = |n: u32| format!("dd if=/dev/zero of=mnt/{n} {words} 2>err{n} & p{n}=$!");
    let all: Vec<String> = (1..4).map(one).collect();
    let line = format!("{}; wait $p1 && wait $p2 && wait $p3", all.join("; "));
    let mut shell = Command::new("timeout");
    shell.args(["100", "sh", "-c", &line]);
    let status = shell.current_dir(sandbox.path("")).status().unwrap();
    let said = |n: u32| String::from_utf8_lossy(&sandbox.read(&format!("err{n}"))).into_owned();
    assert!(status.success(), "{}{}{}", said(1), said(2), said(3));
}

#[test]
fn files_that_three_writers_write_side_by_side_lie_in_eight_pieces_each() {
    for words in ["bs=4k count=700", "bs=64k count=480"] {
        let sandbox = volume("256M");
        let Some(mount) = Mounting::start(&sandbox, &["c.img"]) else {
            return;
        };
        three_writers(&sandbox, words);
        mount.end();
        let found = breaks(&sandbox);
        assert!(found <= 3 * 7, "{words}: {found} pieces more than files");
        clean(&sandbox);
    }
}

#[test]
fn writers_fill_a_volume_to_its_last_page_though_room_was_reserved() {
    let sandbox = volume("24M");
    let Some(mount) = Mounting::start(&sandbox, &["c.img"]) else {
        return;
    };
    let line = "for n in 1 2 3; do dd if=/dev/zero of=mnt/$n bs=4k 2>/dev/null & done; wait; \
                stat -f -c %f mnt";
    let left = sandbox.shell(line).ok();
    assert_eq!(left.trim(), "0");
    mount.end();
    clean(&sandbox);
}

#[test]
fn what_was_reserved_is_free_after_the_server_is_killed() {
    let sandbox = volume("256M");
    let Some(mount) = Mounting::start(&sandbox, &["c.img"]) else {
        return;
    };
    let mut open = std::fs::File::create(sandbox.path("mnt/open")).unwrap();
    for _ in 0..100 {
        open.write_all(&[7; 65_536]).unwrap();
    }
    open.sync_all().unwrap();
    let free = sandbox.shell("stat -f -c %f mnt").ok();
    let free: u64 = free.trim().parse().unwrap();
    drop(mount);
    sandbox.run("fsck -p c.img");
    let info = sandbox.run("info --json c.img").ok();
    assert!(info.contains(&(free * 4096).to_string()), "{free}: {info}");
    drop(open);
    clean(&sandbox);
}

#[test]
fn files_that_grow_in_turns_over_nfs_lie_in_eight_pieces_each() {
    let sandbox = volume("64M");
    let serving = Serving::start(&sandbox, "--squash none --async c.img");
    let address = serving.said["nfs"].as_str().unwrap().parse().unwrap();
    let mut client = nfs::Client::new(address);
    let root = client.mnt("/c").unwrap();
    let mut file = |name: &str| {
        let how = nfs::How::Guarded(nfs::Set::mode(0o644));
        client.create(&root, name.as_bytes(), how).unwrap().0
    };
    let files = ["one", "two", "three"].map(&mut file);
    for at in (0..200).map(|i| i * 4096) {
        for fh in &files {
            client.write(fh, at, &[7; 4096], 0).unwrap();
        }
    }
    serving.stop("-TERM");
    let found = breaks(&sandbox);
    assert!(found <= 3 * 7, "{found} pieces more than files");
    clean(&sandbox);
}

#[test]
fn files_that_grow_in_turns_over_smb_lie_in_eight_pieces_each() {
    let sandbox = volume("64M");
    let words = [
        "serve",
        "--json",
        "--smb",
        "127.0.0.1:0",
        "--user",
        "me",
        "c.img",
    ];
    let mut command = sandbox.command(&words);
    command.env("VOLARY_PASSWORD", "secret");
    let serving = Serving::of(command);
    let address = serving.said["smb"].as_str().unwrap().parse().unwrap();
    let client = smb::Client::connect(address, "me", "secret", "c", [7; 16]);
    let client = client.unwrap().0;
    let how = smb::How {
        disposition: disposition::CREATE,
        ..smb::How::open(access::WRITE)
    };
    let opens = ["one", "two", "three"].map(|name| client.open(name, &how).unwrap().open);
    for at in (0..200).map(|i| i * 4096) {
        for open in opens {
            client.write(open, at, &[7; 4096]).unwrap();
        }
    }
    for open in opens {
        client.close(open).unwrap();
    }
    serving.stop("-TERM");
    let found = breaks(&sandbox);
    assert!(found <= 3 * 7, "{found} pieces more than files");
    clean(&sandbox);
}

/// Turns a bit over in each leader.
fn damage_leaders(sandbox: &Sandbox) -> usize {
    let mut image = sandbox.read("c.img");
    let pages = image.chunks_mut(4096);
    let leaders = pages.filter(|page| page[..5] == *b"CdFs\x04");
    let count = leaders.map(|page| page[100] ^= 1).count();
    sandbox.write("c.img", &image);
    count
}

#[test]
fn leaders_that_are_damaged_are_told_of_each() {
    let sandbox = volume("16M");
    for n in 0..5 {
        sandbox.write(&format!("file{n}"), &noise(5000));
        sandbox.run(&format!("cp file{n} c.img:/")).ok();
    }
    assert_eq!(damage_leaders(&sandbox), 5);
    let checked = sandbox.run("fsck -n c.img");
    assert_eq!(
        checked.out.matches("leader page").count(),
        5,
        "{}",
        checked.out
    );
    // The data is given, and what is wrong is told.
    let read = sandbox.run("cat c.img:/file0 c.img:/file1");
    assert_eq!(
        (read.code, read.err.matches("[leader]").count()),
        (0, 2),
        "{}",
        read.err
    );
    assert!(
        read.err.contains("c.img: /file1: its leader page"),
        "{}",
        read.err
    );
    assert_eq!(sandbox.run("ls c.img").err, "");
    sandbox.run("fsck -y c.img");
    clean(&sandbox);
}

#[test]
fn a_server_tells_of_a_leader_that_is_damaged_and_writes_it_anew() {
    let sandbox = volume("16M");
    sandbox.write("words", b"words\n");
    sandbox.run("cp words c.img:/").ok();
    assert_eq!(damage_leaders(&sandbox), 1);
    let serving = Serving::start(&sandbox, "--squash none c.img");
    let address = serving.said["nfs"].as_str().unwrap().parse().unwrap();
    let mut client = nfs::Client::new(address);
    let root = client.mnt("/c").unwrap();
    client.mkdir(&root, b"new", &nfs::Set::mode(0o755)).unwrap();
    let (words, _) = client.lookup(&root, b"words").unwrap();
    for _ in 0..2 {
        assert_eq!(client.read(&words, 0, 100).unwrap().0, b"words\n");
    }
    let ended = serving.end("-TERM");
    let told = ended.err;
    assert_eq!(told.matches("/words: its leader page").count(), 1, "{told}");
    assert!(told.contains("it is written anew"), "{told}");
    clean(&sandbox);
}
