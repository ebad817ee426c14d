//! Ending an attachment.

use crate::{Make, kind, root, volume};
use volary_core::{Cancel, Kind, Mode, SetAttr};
use volary_session::{LockKind, Range, Wait};

#[test]
fn detach_ends_opens_and_all_later_calls_are_stale() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let (node, open) = s.open_file(top, "f");
    volume.detach().unwrap();
    volume.detach().unwrap();
    assert_eq!(volume.open_count(), 0);
    let stale = [
        kind(s.getattr(node)),
        kind(s.lookup(top, b"f")),
        kind(s.mkdir(top, b"d", &SetAttr::default())),
        kind(s.open(node, Mode::Read)),
        kind(s.read(open, 0, &mut [0; 4])),
        kind(s.write(open, None, b"x")),
        kind(s.close(open)),
        kind(s.sync()),
        kind(s.statfs()),
        kind(volume.sync()),
    ];
    assert_eq!(stale, [Some(Kind::Stale); 10]);
}

#[test]
fn those_who_wait_for_a_lock_are_sent_away() {
    let volume = volume();
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    s.lock(open, 1, Range::ALL, LockKind::Exclusive, Wait::No)
        .unwrap();
    let never = Cancel::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let wait = Wait::Yes(&never);
            s.lock(open, 2, Range::ALL, LockKind::Exclusive, wait)
        });
        while volume.waiting_count() == 0 {
            std::thread::yield_now();
        }
        volume.detach().unwrap();
        assert_eq!(kind(waiting.join().unwrap()), Some(Kind::Stale));
    });
}
