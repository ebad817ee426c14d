//! read and write: the content of files.

use crate::memory::takes_little;
use crate::reference::LARGE;
use crate::rng::{Rng, pattern};
use crate::suite::{Case, case_list};
use volary_core::{Kind, Mode, SetAttr};

case_list! {
    about Read | Write | SetAttr | Allocate;
    what_is_written_is_read with WRITE;
    reading_stops_at_the_end with WRITE;
    writes_at_odd_offsets_change_nothing_else with WRITE;
    a_write_past_the_end_leaves_zeros_between with WRITE;
    a_write_far_past_the_end_leaves_zeros_between with WRITE;
    a_gap_after_a_cut_is_zero_too with WRITE;
    append_goes_to_the_end_as_it_is_then with WRITE;
    appends_by_two_opens_take_turns with WRITE;
    a_write_of_nothing_changes_nothing with WRITE;
    a_write_past_the_greatest_size_is_too_big with WRITE;
    an_append_past_the_greatest_size_is_too_big with WRITE | HOLES;
    a_large_file_in_odd_pieces with WRITE;
    files_written_in_turns_do_not_mix with WRITE;
    random_writes_equal_a_vector with WRITE;
    content_is_there_after_reattaching with WRITE;
    content_written_before_sync_survives_it with WRITE;
    an_open_for_reading_only_reads with WRITE;
    a_byte_of_a_large_hole_takes_little_memory with WRITE | HOLES;
}

fn what_is_written_is_read(c: &Case) {
    for len in [
        0, 1, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_537, 200_000,
    ] {
        let content = pattern(len as u64, len);
        let node = c.file(c.root(), format!("f{len}"), &content);
        assert_eq!(c.attr(node).size, len as u64);
        assert!(c.content(node) == content, "{len} bytes");
    }
}

fn reading_stops_at_the_end(c: &Case) {
    let open = c.open_to_read(c.file(c.root(), "f", b"0123456789"));
    assert_eq!(c.read(open, 8, 10).expect("read"), b"89");
    assert_eq!(c.read(open, 10, 10).expect("read"), b"");
    assert_eq!(c.read(open, 11, 10).expect("read"), b"");
    assert_eq!(c.read(open, 1 << 40, 10).expect("read"), b"");
    assert_eq!(c.read(open, u64::MAX, 10).expect("read"), b"");
    assert_eq!(c.read(open, 3, 0).expect("read"), b"");
    c.close(open);
}

fn writes_at_odd_offsets_change_nothing_else(c: &Case) {
    let mut want = pattern(1, 40_000);
    let node = c.file(c.root(), "f", &want);
    let open = c.open(node);
    for (offset, len) in [
        (0, 1),
        (1, 511),
        (511, 2),
        (512, 512),
        (1000, 5000),
        (4095, 1),
        (4096, 4096),
        (8191, 20_000),
        (39_999, 1),
    ] {
        let data = pattern(offset as u64 + 7, len);
        let end = c.write(open, offset as u64, &data).expect("write");
        assert_eq!(end, (offset + len) as u64);
        want[offset..offset + len].copy_from_slice(&data);
        assert!(c.content(node) == want, "{len} bytes at {offset}");
    }
    c.close(open);
}

fn a_write_past_the_end_leaves_zeros_between(c: &Case) {
    for (len, offset) in [
        (0, 1),
        (3, 4),
        (3, 512),
        (511, 513),
        (512, 4096),
        (600, 70_000),
    ] {
        let name = format!("{len} to {offset}");
        let node = c.file(c.root(), name, &vec![0xee; len]);
        let open = c.open(node);
        c.write(open, offset as u64, b"end").expect("write");
        c.close(open);
        let mut want = vec![0; offset];
        want[..len].fill(0xee);
        want.extend(b"end");
        assert!(c.content(node) == want, "from {len} to {offset}");
    }
}

fn a_write_far_past_the_end_leaves_zeros_between(c: &Case) {
    // Frees blocks with old content, which a faulty volume would expose in the gap.
    c.file(c.root(), "old", &vec![0xff; 1 << 20]);
    c.unlink(c.root(), "old").expect("unlink");
    c.fs().sync(&c.cx()).expect("sync");
    let node = c.file(c.root(), "f", b"begin");
    let open = c.open(node);
    c.write(open, 1 << 20, b"end").expect("write");
    c.close(open);
    let content = c.content(node);
    assert_eq!(content.len(), (1 << 20) + 3);
    assert!(content[5..1 << 20].iter().all(|&b| b == 0));
    assert_eq!(&content[1 << 20..], b"end");
}

fn a_gap_after_a_cut_is_zero_too(c: &Case) {
    let node = c.file(c.root(), "f", &[0xff; 20_000]);
    let open = c.open(node);
    for (cut, offset) in [(5000, 10_000), (100, 19_000), (0, 3000)] {
        c.resize(node, cut as u64);
        c.write(open, offset as u64, &[0xff]).expect("write");
        let content = c.content(node);
        assert_eq!(content.len(), offset + 1);
        assert!(content[..cut].iter().all(|&b| b == 0xff));
        assert!(content[cut..offset].iter().all(|&b| b == 0));
        c.write(open, 0, &[0xff; 20_000]).expect("write");
    }
    c.close(open);
}

fn append_goes_to_the_end_as_it_is_then(c: &Case) {
    let node = c.file(c.root(), "f", b"one");
    let open = c.open(node);
    assert_eq!(c.append(open, b" two").expect("append"), 7);
    c.resize(node, 2);
    assert_eq!(c.append(open, b"!").expect("append"), 3);
    c.resize(node, 5);
    assert_eq!(c.append(open, b"?").expect("append"), 6);
    c.close(open);
    assert_eq!(c.content(node), b"on!\0\0?");
}

fn appends_by_two_opens_take_turns(c: &Case) {
    let node = c.touch(c.root(), "f");
    let (a, b) = (c.open(node), c.open(node));
    let mut want = Vec::new();
    for i in 0..50_u8 {
        let part = vec![i; usize::from(i) * 13];
        want.extend(&part);
        let end = c
            .append(if i.is_multiple_of(2) { a } else { b }, &part)
            .expect("append");
        assert_eq!(end, want.len() as u64);
    }
    c.close(a);
    c.close(b);
    assert!(c.content(node) == want);
}

fn a_write_of_nothing_changes_nothing(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    assert_eq!(c.write(open, 3, b"").expect("write"), 3);
    assert_eq!(c.append(open, b"").expect("append"), 7);
    c.write(open, 5000, b"").expect("write past the end");
    assert_eq!(c.attr(node).size, 7);
    c.close(open);
    assert_eq!(c.content(node), b"content");
}

fn a_write_past_the_greatest_size_is_too_big(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let open = c.open(node);
    let max = c.caps().size_max;
    let offsets = [
        Some(max),
        max.checked_sub(1),
        max.checked_add(1),
        Some(u64::MAX),
        Some(u64::MAX - 1),
    ];
    for offset in offsets.into_iter().flatten() {
        c.refuses(Kind::TooBig, || c.write(open, offset, b"two"));
    }
    c.close(open);
}

fn an_append_past_the_greatest_size_is_too_big(c: &Case) {
    let node = c.touch(c.root(), "f");
    let max = c.caps().size_max;
    c.resize(node, max);
    let open = c.open(node);
    assert_eq!(c.append(open, b"x").unwrap_err(), Kind::TooBig);
    assert_eq!(c.attr(node).size, max);
    c.close(open);
    c.resize(node, 0);
}

fn a_large_file_in_odd_pieces(c: &Case) {
    let content = pattern(9, 3 << 20);
    let node = c.touch(c.root(), "f");
    let open = c.open(node);
    let mut at = 0;
    for part in content.chunks(77_777) {
        c.write(open, at, part).expect("write");
        at += part.len() as u64;
    }
    let mut got = Vec::new();
    loop {
        let part = c.read(open, got.len() as u64, 12_345).expect("read");
        if part.is_empty() {
            break;
        }
        got.extend(part);
    }
    c.close(open);
    assert!(got == content);
    for offset in [0, 1, 4095, 1 << 20, (3 << 20) - 10] {
        let open = c.open_to_read(node);
        let part = c.read(open, offset as u64, 5000).expect("read");
        assert!(part == content[offset..content.len().min(offset + 5000)]);
        c.close(open);
    }
}

fn files_written_in_turns_do_not_mix(c: &Case) {
    let opens: Vec<_> = (0..8)
        .map(|i| c.open(c.touch(c.root(), format!("file {i}"))))
        .collect();
    for round in 0..20 {
        for (i, &open) in opens.iter().enumerate() {
            let data = pattern(i as u64 * 100 + round, 1000 + i * 100);
            c.append(open, &data).expect("append");
        }
    }
    opens.into_iter().for_each(|open| c.close(open));
    for i in 0..8 {
        let want: Vec<u8> = (0..20)
            .flat_map(|round| pattern(i as u64 * 100 + round, 1000 + i * 100))
            .collect();
        let node = c.find(c.root(), format!("file {i}"));
        assert!(c.content(node) == want, "file {i}");
    }
}

fn random_writes_equal_a_vector(c: &Case) {
    let mut rng = Rng::new(4);
    let (mut want, node) = (Vec::new(), c.touch(c.root(), "f"));
    let open = c.open(node);
    for round in 0..300 {
        let offset = rng.index(60_000);
        if rng.one_in(8) {
            want.resize(offset, 0);
            c.resize(node, offset as u64);
        } else {
            let len = 1 + rng.index(5000);
            let data = pattern(round, len);
            if want.len() < offset + len {
                want.resize(offset + len, 0);
            }
            want[offset..offset + len].copy_from_slice(&data);
            c.write(open, offset as u64, &data).expect("write");
        }
        let from = rng.index(60_000);
        let got = c.read(open, from as u64, 3000).expect("read");
        let end = want.len().min(from + 3000);
        assert!(got == want[from.min(end)..end], "round {round}");
    }
    c.close(open);
    assert!(c.content(node) == want);
}

fn content_is_there_after_reattaching(c: &Case) {
    let content = pattern(3, 123_457);
    let node = c.file(c.root(), "f", &content);
    c.resize(node, 100_001);
    let open = c.open(node);
    c.write(open, 150_000, b"tail").expect("write");
    c.close(open);
    if !c.reattach() {
        return;
    }
    let got = c.content(c.find(c.root(), "f"));
    assert_eq!(got.len(), 150_004);
    assert!(got[..100_001] == content[..100_001]);
    assert!(got[100_001..150_000].iter().all(|&b| b == 0));
    assert_eq!(&got[150_000..], b"tail");
}

fn content_written_before_sync_survives_it(c: &Case) {
    let node = c.touch(c.root(), "f");
    let open = c.open(node);
    for i in 0..10_u8 {
        c.write(open, u64::from(i) * 3000, &[i; 5000])
            .expect("write");
        c.fs().sync(&c.cx()).expect("sync");
    }
    c.close(open);
    let content = c.content(node);
    assert_eq!(content.len(), 32_000);
    for i in 0..10_u8 {
        let at = usize::from(i) * 3000;
        assert!(content[at..at + 3000].iter().all(|&b| b == i));
    }
}

fn an_open_for_reading_only_reads(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.try_open(node, Mode::Read).expect("open");
    assert_eq!(c.read(open, 0, 10).expect("read"), b"content");
    c.close(open);
    let open = c.try_open(node, Mode::Write).expect("open");
    c.write(open, 0, b"C").expect("write");
    c.close(open);
    assert_eq!(c.content(node), b"Content");
}

fn a_byte_of_a_large_hole_takes_little_memory(c: &Case) {
    if c.caps().size_max < LARGE {
        return c.skip("no file can have 64 MiB");
    }
    let node = c.touch(c.root(), "f");
    match c.setattr(node, &SetAttr::size(LARGE)) {
        Err(e) if [Kind::NoSpace, Kind::Quota].contains(&e.kind()) => {
            return c.skip("the volume has no room for a file of 64 MiB");
        }
        done => done.expect("setattr of the size"),
    };
    let read = || {
        let open = c.open_to_read(node);
        for at in [0, LARGE - 1] {
            assert_eq!(c.read(open, at, 1).expect("read"), [0]);
        }
        c.close(open);
    };
    let write = || {
        let open = c.open(node);
        c.write(open, LARGE - 1, b"x").expect("write");
        c.close(open);
    };
    if takes_little(c, "a read of a byte in a hole of 64 MiB", read)
        && takes_little(c, "a write of a byte behind a hole of 64 MiB", write)
    {
        let open = c.open_to_read(node);
        assert_eq!(c.read(open, LARGE - 2, 10).expect("read"), b"\0x");
        c.close(open);
    }
    c.resize(node, 0);
}
