//! What an export is beside a volume: shared with others, and gone now and then.

use crate::fake::{Fake, Say};
use crate::served::{NAME, Served, attach_fat, fat};
use crate::side::{Side, cx, export_at};
use volary_core::{Caps, Cred, Kind, Lock, Mode, OpenId, Options};
use volary_nfs_client::{Location, NfsOptions};

fn side(served: &Served) -> Side {
    Side(served.attach(&NfsOptions::default()).expect("the export"))
}

/// Returns bytes of which no two blocks are alike.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 511 + i % 251) as u8).collect()
}

#[test]
fn what_one_client_closes_another_sees_when_it_opens() {
    let served = Served::mem();
    let (a, b) = (side(&served), side(&served));
    for round in 1..20_usize {
        let want = bytes(round * 37_000);
        let open = a.create("f");
        for (i, part) in want.chunks(10_000).enumerate() {
            let at = Some(i as u64 * 10_000);
            a.0.write(&a.cx(), open, at, part).expect("write");
        }
        a.0.close(&a.cx(), open).expect("close");
        assert!(b.content("f") == want, "round {round}");
        assert!(a.content("f") == want, "round {round}");
    }
}

#[test]
fn large_files_come_back_in_any_order() {
    let served = Served::mem();
    let a = side(&served);
    let want = bytes(7_000_001);
    let open = a.create("f");
    let part = 100_003;
    let mut parts: Vec<_> = want.chunks(part).enumerate().collect();
    // Some backwards, some twice.
    parts[10..40].reverse();
    let again = parts[20..30].to_vec();
    parts.extend(again);
    for (i, data) in parts {
        let at = Some((i * part) as u64);
        a.0.write(&a.cx(), open, at, data).expect("write");
    }
    a.0.fsync(&a.cx(), open, false).expect("fsync");
    assert!(a.content("f") == want);
    let mut room = vec![0; 5000];
    for at in (0..7_000_000_usize).step_by(333_333).rev() {
        let got = a.0.read(&a.cx(), open, at as u64, &mut room).expect("read");
        let end = want.len().min(at + room.len());
        assert!(room[..got] == want[at..end], "at {at}");
    }
    a.0.close(&a.cx(), open).expect("close");
}

#[test]
fn a_restart_of_the_server_is_not_noticed() {
    // Its handles outlive the server.
    let image = fat();
    let first = Served::of(attach_fat(&image));
    let address = first.address();
    let a = side(&first);
    let want = bytes(3_000_000);
    let open = a.create("f");
    let (early, late) = want.split_at(1_500_000);
    a.0.write(&a.cx(), open, Some(0), early).expect("write");
    first.stop();
    let second = Served::at(attach_fat(&image), address, 2);
    let at = Some(early.len() as u64);
    a.0.write(&a.cx(), open, at, late).expect("write");
    a.0.fsync(&a.cx(), open, false).expect("fsync");
    a.0.close(&a.cx(), open).expect("close");
    assert!(side(&second).content("f") == want);
    assert!(a.content("f") == want);
}

fn lock(
    a: &Side,
    open: OpenId,
    owner: u64,
    offset: u64,
    how: Option<bool>,
) -> volary_core::Result<()> {
    let lock = Lock {
        owner,
        offset,
        len: 10,
        exclusive: how == Some(true),
        unlock: how.is_none(),
        test: false,
    };
    a.0.lock(&a.cx(), open, lock)
}

#[test]
fn locks_are_seen_by_other_clients() {
    let served = Served::mem();
    let (a, b) = (side(&served), side(&served));
    assert!(a.0.caps().has(Caps::SHARED_LOCKS));
    a.0.close(&a.cx(), a.create("f")).expect("close");
    let open = |side: &Side| {
        let node = side.find("f");
        side.0
            .open(&side.cx(), node, Mode::ReadWrite)
            .expect("open")
    };
    let (of_a, of_b) = (open(&a), open(&b));
    lock(&a, of_a, 1, 0, Some(true)).expect("lock");
    assert_eq!(lock(&a, of_a, 2, 5, Some(false)).unwrap_err(), Kind::Locked);
    lock(&a, of_a, 2, 20, Some(false)).expect("beside it");
    lock(&a, of_a, 1, 0, None).expect("unlock");
    lock(&a, of_a, 2, 0, Some(true)).expect("lock");
    a.0.close(&a.cx(), of_a).expect("close");
    lock(&b, of_b, 1, 0, Some(true)).expect("free with the close");
    b.0.close(&b.cx(), of_b).expect("close");
    let without = NfsOptions {
        locks: false,
        ..NfsOptions::default()
    };
    let without = served.attach(&without).expect("the export");
    assert!(!without.caps().has(Caps::SHARED_LOCKS));
}

#[test]
fn attachments_of_one_host_are_other_owners() {
    let served = Served::mem();
    let (a, b) = (side(&served), side(&served));
    let of_a = a.create("f");
    let node = b.find("f");
    let of_b = b.0.open(&b.cx(), node, Mode::ReadWrite).expect("open");
    lock(&a, of_a, 1, 0, Some(true)).expect("lock");
    assert_eq!(lock(&b, of_b, 1, 0, Some(true)).unwrap_err(), Kind::Locked);
    lock(&b, of_b, 1, 0, None).expect("nothing of its own to unlock");
    assert_eq!(lock(&b, of_b, 1, 0, Some(true)).unwrap_err(), Kind::Locked);
    b.0.close(&b.cx(), of_b).expect("close");
    let of_b = b.0.open(&b.cx(), node, Mode::ReadWrite).expect("open");
    let held = lock(&b, of_b, 1, 0, Some(true));
    assert_eq!(held.unwrap_err(), Kind::Locked, "the close of another");
    lock(&a, of_a, 1, 0, None).expect("unlock");
    lock(&b, of_b, 1, 0, Some(true)).expect("lock");
}

#[test]
fn lock_owners_have_numbers_of_their_attachment() {
    // Linux tells owners of one host apart by their numbers alone.
    const NLM: u32 = 100_021;
    let fake = Fake::start(|asked| {
        // The cookie of the call, and DENIED.
        let denied = [
            &6_u32.to_be_bytes()[..],
            b"volary\0\0",
            &1_u32.to_be_bytes(),
        ]
        .concat();
        (asked.program == NLM && asked.procedure == 2).then_some(Say::Results(denied))
    });
    for _ in 0..2 {
        let a = Side(export_at(fake.address, &NfsOptions::default()).expect("the export"));
        let open = a.0.open(&a.cx(), a.find("file"), Mode::Read).expect("open");
        assert_eq!(lock(&a, open, 1, 0, Some(true)).unwrap_err(), Kind::Locked);
    }
    let asked = fake.asked.lock();
    let of_locks = asked
        .iter()
        .filter(|a| (a.program, a.procedure) == (NLM, 2));
    let svids = of_locks.map(|asked| {
        let mut input = volary_rpc::Input::new(&asked.args);
        input.opaque(100).expect("the cookie");
        input.bool().expect("whether to block");
        input.bool().expect("whether it is exclusive");
        for of in ["machine", "handle", "owner"] {
            input.opaque(1024).expect(of);
        }
        input.u32().expect("the number")
    });
    let svids: Vec<u32> = svids.collect();
    assert_eq!(svids.len(), 2);
    assert_ne!(svids[0], svids[1]);
}

#[test]
fn calls_are_whose_the_options_say() {
    let served = Served::mem();
    let location =
        Location::parse(format!("{}/{NAME}?uid=1000&gid=100", served.address()).as_bytes());
    let location = location.expect("a location");
    let options = NfsOptions::default().with(&location, &Options::new());
    let theirs = volary_nfs_client::attach(&location, &options.expect("options"));
    let theirs = Side(theirs.expect("the export"));
    assert_eq!(theirs.0.caller(&Cred::root()), Some(Cred::new(1000, 100)));
    let other = Cred::new(5, 5);
    // The root is root's.
    let name = volary_core::Name::new(b"f").expect("a name");
    let set = volary_core::SetAttr::mode(0o600);
    let (root, cx) = (theirs.0.root(), cx(&other));
    let made = theirs
        .0
        .create(&cx, root, name, volary_core::Create::New, &set);
    assert_eq!(made.map(drop).unwrap_err(), Kind::Access);
    let ours = side(&served);
    let wide = volary_core::SetAttr::mode(0o777);
    ours.0
        .setattr(&ours.cx(), ours.0.root(), &wide)
        .expect("chmod");
    let made = theirs
        .0
        .create(&cx, root, name, volary_core::Create::New, &set);
    let (entry, open) = made.expect("create");
    theirs.0.close(&cx, open).expect("close");
    assert_eq!((entry.attr.uid, entry.attr.gid), (1000, 100));
}

#[test]
fn what_cannot_be_attached_says_why() {
    let served = Served::mem();
    let attach = |text: String| {
        let location = Location::parse(text.as_bytes()).expect("a location");
        volary_nfs_client::attach(&location, &NfsOptions::default())
            .err()
            .expect("no volume")
    };
    let address = served.address();
    let e = attach(format!("{address}/nothing"));
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.to_string().contains("has no export /nothing"), "{e}");
    drop(served);
    let e = attach(format!("{address}/test"));
    assert_eq!(e.kind(), Kind::Io);
    assert!(e.to_string().contains("cannot connect to"), "{e}");
    let e = attach("no-such-host.invalid/test".to_owned());
    assert_eq!(e.kind(), Kind::NotFound);
}

#[test]
fn an_export_that_is_left_has_everything() {
    let served = Served::mem();
    let want = bytes(5_000_000);
    let a = side(&served);
    let open = a.create("f");
    a.0.write(&a.cx(), open, Some(0), &want).expect("write");
    // Neither closed nor detached.
    drop(a);
    assert!(side(&served).content("f") == want);
}
