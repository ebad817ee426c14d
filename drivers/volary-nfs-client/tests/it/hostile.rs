//! Servers that lie, stall and go: an error in the end, in bounded memory.

use crate::fake::{Asked, Fake, NFS, Say, attr, no_wcc, reply, results};
use crate::side::{Side, export_at};
use std::time::Duration;
use volary_core::{Cancel, Cookie, Ctx, DirBuf, Kind, Mode, Result};
use volary_nfs_client::NfsOptions;
use volary_rpc::Input;

/// For calls that nobody answers: whatever else is asked for may fail as well.
fn impatient() -> NfsOptions {
    NfsOptions {
        timeout: Duration::from_secs(1),
        ..NfsOptions::default()
    }
}

/// Only this procedure of NFS is answered so.
fn at(procedure: u32, say: impl Fn(&Asked) -> Say + Send + Sync + 'static) -> Fake {
    Fake::start(move |asked| {
        let is_it = asked.program == NFS && asked.procedure == procedure;
        is_it.then(|| say(asked))
    })
}

fn side(fake: &Fake) -> Side {
    Side(export_at(fake.address, &NfsOptions::default()).expect("the export"))
}

fn read(side: &Side) -> Result<Vec<u8>> {
    let node = side.find("f");
    let open = side.0.open(&side.cx(), node, Mode::Read)?;
    let mut room = vec![0; 200];
    let got = side.0.read(&side.cx(), open, 0, &mut room);
    side.0.close(&side.cx(), open)?;
    room.truncate(got?);
    Ok(room)
}

fn write(side: &Side, bytes: &[u8]) -> Result<()> {
    let node = side.find("f");
    let open = side.0.open(&side.cx(), node, Mode::Write)?;
    let wrote = side.0.write(&side.cx(), open, Some(0), bytes);
    let closed = side.0.close(&side.cx(), open);
    wrote.and(closed)
}

fn list(side: &Side) -> Result<usize> {
    let open = side.0.open(&side.cx(), side.0.root(), Mode::Read)?;
    let (mut from, mut count) = (Cookie::START, 0);
    loop {
        let mut out = DirBuf::new(1000, 1 << 20, true);
        let is_end = side.0.readdir(&side.cx(), open, from, &mut out)?;
        count += out.len();
        from = out.last_cookie().unwrap_or(from);
        if is_end {
            side.0.close(&side.cx(), open)?;
            return Ok(count);
        }
    }
}

#[test]
fn the_fake_server_is_honest_unless_told_otherwise() {
    let fake = Fake::start(|_| None);
    let side = side(&fake);
    assert_eq!(read(&side).unwrap(), [7; 100]);
    write(&side, &[1; 300_000]).unwrap();
    assert_eq!(fake.count(7), 5, "writes");
    assert_eq!(fake.count(21), 1, "commits");
}

#[test]
fn what_does_not_answer_is_an_error_in_the_end() {
    let says: [fn(&Asked) -> Say; 5] = [
        |_| Say::Nothing,
        |_| Say::End,
        // Another call's number; many of them; a record without an end.
        |_| Say::Bytes(reply(0xdead_beef, &[])),
        |_| Say::Bytes(reply(0xdead_beef, &[]).repeat(3000)),
        |_| Say::Bytes(vec![0xff; 100]),
    ];
    for say in says {
        let fake = at(1, say);
        let e = export_at(fake.address, &impatient())
            .err()
            .expect("no export");
        assert_eq!(e.kind(), Kind::Io, "{e}");
    }
}

#[test]
fn a_server_that_is_gone_is_an_error_and_then_at_once() {
    let fake = Fake::start(|_| None);
    let side = side(&fake);
    let node = side.find("f");
    let address = fake.address;
    drop(fake);
    // Who listens may take one more.
    while std::net::TcpStream::connect(address).is_ok() {}
    let stops = Fake::start(|_| Some(Say::Nothing));
    drop(stops);
    let open = side.0.open(&side.cx(), node, Mode::Read);
    // Its connection may live on: then it was answered.
    if let Err(e) = open {
        assert_eq!(e.kind(), Kind::Io);
    }
}

#[test]
fn reads_that_lie_are_damage() {
    let says: [fn(&Asked) -> Say; 4] = [
        // Nothing, and not the end.
        |_| {
            Say::Results(results(|out| {
                [0, 0, 0, 0, 0].into_iter().for_each(|n| out.u32(n));
            }))
        },
        // More than was asked for.
        |_| {
            Say::Results(results(|out| {
                [0, 0, 1 << 19, 1].into_iter().for_each(|n| out.u32(n));
                out.opaque(&[0; 1 << 19]);
            }))
        },
        // A count that is another.
        |_| {
            Say::Results(results(|out| {
                [0, 0, 7, 1].into_iter().for_each(|n| out.u32(n));
                out.opaque(&[0; 6]);
            }))
        },
        // A length without bytes.
        |_| {
            Say::Results(results(|out| {
                [0, 0, 100, 1, 100].into_iter().for_each(|n| out.u32(n));
            }))
        },
    ];
    for say in says {
        let fake = at(6, say);
        assert_eq!(read(&side(&fake)).unwrap_err(), Kind::Corrupt);
    }
}

#[test]
fn writes_that_lie_are_damage_told_by_close() {
    for count in [0, 101] {
        let fake = at(7, move |_| {
            Say::Results(results(|out| {
                out.u32(0);
                no_wcc(out);
                out.u32(count);
                out.u32(2);
                out.u64(0);
            }))
        });
        assert_eq!(write(&side(&fake), &[1; 100]).unwrap_err(), Kind::Corrupt);
    }
}

/// Returns a page of a listing with an entry for each cookie, and no end.
fn page(cookies: impl IntoIterator<Item = u64>, name: &str) -> Say {
    Say::Results(results(|out| {
        out.u32(0);
        out.bool(false);
        out.u64(0);
        for cookie in cookies {
            out.bool(true);
            out.u64(cookie);
            out.opaque(name.as_bytes());
            out.u64(cookie);
            out.bool(true);
            attr(out, false);
            out.bool(true);
            out.opaque(&cookie.to_be_bytes());
        }
        out.bool(false);
        out.bool(false);
    }))
}

#[test]
fn listings_that_never_end_are_damage() {
    let from = |asked: &Asked| {
        let mut input = Input::new(&asked.args);
        input.opaque(64).expect("a handle");
        input.u64().expect("a cookie")
    };
    let fakes = [
        // The same page again and again; a circle; nothing and no end.
        at(17, |_| page([1, 2, 3], "x")),
        at(17, move |asked| page([from(asked) % 1000 + 1], "x")),
        at(17, |_| page([], "x")),
        // Names that are none, and a cookie that is the start.
        at(17, |_| page([1], "a/b")),
        at(17, |_| page([1], "")),
        at(17, |_| page([0], "x")),
    ];
    for fake in &fakes {
        assert_eq!(list(&side(fake)).unwrap_err(), Kind::Corrupt);
    }
}

#[test]
fn what_a_server_lost_when_it_was_restarted_is_written_again() {
    // Each COMMIT has another verifier than the WRITEs before.
    let fake = at(21, |_| {
        Say::Results(results(|out| {
            out.u32(0);
            no_wcc(out);
            out.raw(b"restart!");
        }))
    });
    write(&side(&fake), &[1; 200_000]).unwrap();
    let asked = fake.asked.lock();
    let writes = asked
        .iter()
        .filter(|a| a.program == NFS && a.procedure == 7);
    let of = |a: &Asked| {
        let mut input = Input::new(&a.args);
        input.opaque(64).expect("a handle");
        let offset = input.u64().expect("an offset");
        let (count, stable) = (input.u32().expect("a count"), input.u32().expect("how"));
        (stable, offset, count)
    };
    let mut all: Vec<_> = writes.map(of).collect();
    all.sort_unstable();
    let parts = [
        (0, 65_536),
        (65_536, 65_536),
        (131_072, 65_536),
        (196_608, 3392),
    ];
    let want = [0, 2].into_iter().flat_map(|stable| {
        let part = move |(offset, count): (u64, u32)| (stable, offset, count);
        parts.into_iter().map(part)
    });
    assert_eq!(all, want.collect::<Vec<_>>());
}

/// The caller was told that it is written: Ctrl-C in `fsync` must not lose it.
#[test]
fn what_was_written_is_sent_though_fsync_is_cancelled() {
    const WRITE: u32 = 7;
    const COMMIT: u32 = 21;
    // The reply to the one WRITE of a small file, or to the COMMIT of a large one, is lost.
    for (len, lost) in [(1000, WRITE), (200_000, COMMIT)] {
        let fake = Fake::start(move |asked| {
            let is_it = asked.program == NFS && asked.procedure == lost && asked.nth == 0;
            is_it.then_some(Say::End)
        });
        let side = side(&fake);
        let node = side.find("f");
        let open = side.0.open(&side.cx(), node, Mode::Write).expect("open");
        let bytes = vec![1; len];
        side.0
            .write(&side.cx(), open, Some(0), &bytes)
            .expect("write");
        let cancel = Cancel::new();
        cancel.set();
        let cancelled = Ctx {
            cancel: &cancel,
            ..side.cx()
        };
        side.0.fsync(&cancelled, open, false).expect("fsync");
        assert_eq!(fake.count(lost), 2, "{len} bytes");
        side.0.close(&side.cx(), open).expect("close");
    }
}

#[test]
fn a_call_without_a_reply_comes_again_as_it_was_and_from_the_same_port() {
    // Every other call to remove is not answered, and its connection ends.
    let fake = at(12, |asked| {
        if asked.nth.is_multiple_of(2) {
            return Say::End;
        }
        Say::Results(results(|out| {
            out.u32(0);
            no_wcc(out);
        }))
    });
    let side = side(&fake);
    for _ in 0..3 {
        let name = volary_core::Name::new(b"f").expect("a name");
        let root = side.0.root();
        side.0.unlink(&side.cx(), root, name).expect("unlink");
    }
    let asked = fake.asked.lock();
    let removes = asked
        .iter()
        .filter(|a| a.program == NFS && a.procedure == 12);
    let removes: Vec<_> = removes.map(|a| ((a.xid, &a.args), a.peer)).collect();
    assert_eq!(removes.len(), 6);
    assert!(removes.chunks(2).all(|pair| pair[0].0 == pair[1].0));
    // Somebody else may have had the port in between, but not each time.
    assert!(removes.chunks(2).any(|pair| pair[0].1 == pair[1].1));
}
