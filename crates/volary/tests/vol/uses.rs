//! Trees in and out, bulk reads, servers and mounts.

use super::{Image, kind};
use tempfile::TempDir;
use volary::{Kind, Vol};

#[test]
fn whole_trees_are_read_in_bulk() {
    let image = Image::new();
    let vol = image.ffs();
    vol.mkdir_all("/in/a").unwrap();
    vol.mkdir_all("/out").unwrap();
    for n in 0..200 {
        vol.write(format!("/in/a/{n}"), vec![n as u8; 3000])
            .unwrap();
    }
    vol.write("/out/b", "x").unwrap();
    let files = |vol: &Vol| {
        let mut found = Vec::new();
        for read in vol.bulk(["/in"]).files().unwrap() {
            if let volary::bulk::Content::Whole(bytes) = read.content {
                assert_eq!(bytes.len(), 3000);
                found.push((read.path, bytes[0]));
            }
        }
        found.sort();
        found
    };
    // What was written just now is seen, while it is open for changes too.
    let before = files(&vol);
    assert_eq!(before.len(), 200);
    vol.close().unwrap();
    let vol = Vol::open(image.path()).unwrap();
    assert_eq!(files(&vol), before);
    let order = |seed| -> Vec<Vec<u8>> {
        let files = vol.bulk(["/in"]).shuffle(seed, 1 << 20).files().unwrap();
        files.map(|read| read.path).collect()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn trees_are_copied_in_and_out_and_what_fails_is_an_error() {
    let image = Image::new();
    let dir = image.0.path();
    std::fs::create_dir_all(dir.join("tree/below")).unwrap();
    std::fs::write(dir.join("tree/below/a"), "content").unwrap();
    let vol = image.fat();
    let copied = vol.copy_in(dir.join("tree"), "/").unwrap();
    assert_eq!(
        (copied.files, copied.bytes, copied.is_whole()),
        (1, 7, true)
    );
    assert_eq!(vol.read("/tree/below/a").unwrap(), b"content");
    vol.copy_out("/tree", dir.join("out")).unwrap();
    assert_eq!(std::fs::read(dir.join("out/below/a")).unwrap(), b"content");
    assert_eq!(kind(vol.copy_in(dir.join("none"), "/")), Kind::NotFound);
    assert_eq!(kind(vol.copy_out("/none", dir.join("out"))), Kind::NotFound);
    // FAT keeps no symlinks: the rest is copied, and the caller knows.
    std::os::unix::fs::symlink("below", dir.join("tree/link")).unwrap();
    let e = vol.copy_in(dir.join("tree/."), "/").unwrap_err();
    assert_eq!(e.kind(), Kind::Unsupported);
    assert!(e.to_string().contains("/link: a symlink"), "{e}");
    assert_eq!(vol.read("/below/a").unwrap(), b"content");
}

#[test]
fn servers_end_when_they_are_dropped_and_give_no_rights_of_the_program() {
    let image = Image::new();
    let vol = image.ffs();
    vol.write("/secret", "of the program").unwrap();
    vol.set_owner("/secret", 4711, 4711).unwrap();
    vol.set_mode("/secret", 0o600).unwrap();
    vol.write("/open", "to all").unwrap();
    vol.set_mode("/open", 0o644).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let nfs = vol.serve().name("export").nfs(any).unwrap();
    let address = nfs.address().unwrap();
    let url = format!("nfs://{address}/export");
    let client = Vol::open(&url).unwrap();
    assert_eq!(client.read("/open").unwrap(), b"to all");
    // What the program writes is seen; what it may read by its own rights is not to be read by others.
    vol.write("/open", "anew").unwrap();
    assert_eq!(client.read("/open").unwrap(), b"anew");
    assert_eq!(kind(client.read("/secret")), Kind::Access);
    drop(client);
    nfs.stop().unwrap();
    assert!(Vol::open(&url).is_err());

    assert_eq!(kind(vol.serve().smb(any, "me", "")), Kind::Invalid);
    let smb = vol.serve().smb(any, "me", "password").unwrap();
    let address = smb.address().unwrap();
    std::net::TcpStream::connect(address).unwrap();
    assert_eq!(kind(vol.serve().nfs(address)), Kind::Busy);
    drop(smb);
    assert!(std::net::TcpStream::connect(address).is_err());
    vol.close().unwrap();
    assert!(Vol::check(image.path()).unwrap().is_clean());
}

#[test]
fn a_mount_ends_when_it_is_dropped() {
    let image = Image::new();
    let vol = image.ffs();
    let dir = TempDir::new().unwrap();
    vol.write("/before", "x").unwrap();
    let mounted = match vol.mount(dir.path()) {
        Ok(mounted) => mounted,
        // Not every host has it.
        Err(e) if matches!(e.kind(), Kind::Unsupported | Kind::NotPermitted) => return,
        Err(e) => panic!("{e}"),
    };
    assert_eq!(std::fs::read(dir.path().join("before")).unwrap(), b"x");
    std::fs::write(dir.path().join("after"), "y").unwrap();
    assert_eq!(vol.read("/after").unwrap(), b"y");
    drop(mounted);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(vol.read("/after").unwrap(), b"y");
    vol.close().unwrap();
    assert!(Vol::check(image.path()).unwrap().is_clean());
}
