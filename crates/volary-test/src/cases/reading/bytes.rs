//! The bytes of files, read at every kind of offset.

use super::seen::{Seen, files, sample, walk};
use crate::memory::takes_little;
use crate::reference::LARGE;
use crate::suite::{Case, case_list};
use volary_core::OpenId;

case_list! {
    about Read;
    every_file_reads_whole;
    a_file_reads_whole_in_parts_of_any_length;
    a_read_gives_what_lies_at_its_offset;
    a_read_past_the_end_gives_nothing;
    a_read_into_an_empty_buffer_gives_nothing;
    reads_of_two_files_in_turns_do_not_mix;
    a_file_reads_the_same_backwards;
    a_byte_of_a_large_file_takes_little_memory;
}

/// The greatest size of a file that is read in all its parts.
const LENGTH_MAX: u64 = 2 << 20;

/// Asserts that a read returns exactly the bytes of the manifest.
fn hold(c: &Case, seen: &Seen<'_>, open: OpenId, offset: u64, len: usize) {
    let Some(want) = seen.want.content.read(offset, len) else {
        return;
    };
    let got = c.read(open, offset, len);
    let got = got.unwrap_or_else(|e| panic!("{}: read at {offset}: {e}", seen.shown()));
    assert_eq!(
        got.len(),
        want.len(),
        "{}: bytes of a read of {len} at {offset}",
        seen.shown()
    );
    let wrong = got.iter().zip(&want).position(|(a, b)| a != b);
    assert!(
        wrong.is_none(),
        "{}: a read of {len} at {offset} is wrong from its byte {} on",
        seen.shown(),
        wrong.unwrap_or(0)
    );
}

fn every_file_reads_whole(c: &Case) {
    for seen in files(&walk(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let len = seen.want.content.len();
        let (mut at, part) = (0, 1 << 16);
        while at < len {
            hold(c, seen, open, at, part);
            at += part as u64;
        }
        hold(c, seen, open, len, part);
        c.close(open);
    }
}

fn a_file_reads_whole_in_parts_of_any_length(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all).filter(|seen| seen.want.content.len() <= LENGTH_MAX) {
        let len = seen.want.content.len();
        let open = c.open_to_read(seen.node);
        for part in [1, 7, 100, 511, 1000, 4096, 4097, 100_000, 4 << 20] {
            let steps = len.div_ceil(part as u64);
            // If there are many parts, only the first and the last 50.
            let some = |step: &u64| *step < 50 || *step + 50 > steps;
            for step in (0..steps).filter(some) {
                hold(c, seen, open, step * part as u64, part);
            }
        }
        c.close(open);
    }
}

fn a_read_gives_what_lies_at_its_offset(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all) {
        let len = seen.want.content.len();
        let open = c.open_to_read(seen.node);
        let borders = [512, 1024, 2048, 4096, 8192, 32_768, 65_536, 1 << 20];
        let near = |at: u64| [at.saturating_sub(1), at, at + 1];
        let mut offsets: Vec<u64> = borders.into_iter().flat_map(near).collect();
        offsets.extend([
            0,
            1,
            len / 2,
            len / 3,
            len.saturating_sub(1),
            len.saturating_sub(513),
        ]);
        offsets.sort_unstable();
        offsets.dedup();
        for offset in offsets.into_iter().filter(|&offset| offset <= len) {
            for want in [1, 2, 511, 513, 4096, 70_000] {
                hold(c, seen, open, offset, want);
            }
        }
        c.close(open);
    }
}

fn a_read_past_the_end_gives_nothing(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all) {
        let len = seen.want.content.len();
        let open = c.open_to_read(seen.node);
        for offset in [
            len,
            len + 1,
            len + 4096,
            len + (1 << 32),
            i64::MAX as u64,
            u64::MAX - 1,
            u64::MAX,
        ] {
            for want in [1, 4096] {
                match c.read(open, offset, want) {
                    Ok(got) => assert!(got.is_empty(), "{}: bytes at {offset}", seen.shown()),
                    // A network client may refuse an offset that its protocol cannot represent.
                    Err(e) => assert!(
                        offset > i64::MAX as u64 - 4096,
                        "{}: at {offset}: {e}",
                        seen.shown()
                    ),
                }
            }
        }
        c.close(open);
    }
}

fn a_read_into_an_empty_buffer_gives_nothing(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all).take(20) {
        let open = c.open_to_read(seen.node);
        for offset in [0, 1, seen.want.content.len(), u64::MAX >> 1] {
            let got = c.read(open, offset, 0);
            assert!(
                got.is_ok_and(|got| got.is_empty()),
                "{} at {offset}",
                seen.shown()
            );
        }
        c.close(open);
    }
}

fn reads_of_two_files_in_turns_do_not_mix(c: &Case) {
    let all = sample(c, c.manifest());
    let some: Vec<_> = files(&all)
        .filter(|seen| !seen.want.content.is_empty())
        .collect();
    for pair in some.windows(2).take(30) {
        let opens = [c.open_to_read(pair[0].node), c.open_to_read(pair[1].node)];
        assert_ne!(opens[0], opens[1], "one number for two opens");
        for step in 0..6_u64 {
            for (seen, &open) in pair.iter().zip(&opens) {
                hold(c, seen, open, step * 700, 700);
            }
        }
        opens.into_iter().for_each(|open| c.close(open));
    }
}

fn a_file_reads_the_same_backwards(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all).filter(|seen| seen.want.content.len() <= LENGTH_MAX) {
        let open = c.open_to_read(seen.node);
        let parts = seen.want.content.len() / 10_007;
        for part in (0..=parts).rev() {
            hold(c, seen, open, part * 10_007, 10_007);
        }
        c.close(open);
    }
}

fn a_byte_of_a_large_file_takes_little_memory(c: &Case) {
    let all = sample(c, c.manifest());
    let largest = files(&all).max_by_key(|seen| seen.attr.size);
    let Some(seen) = largest.filter(|seen| seen.attr.size >= LARGE) else {
        return c.skip("the volume holds no file of 64 MiB, as the reference tree does");
    };
    for at in [0, seen.attr.size / 2, seen.attr.size - 1] {
        let what = format!("byte {at} of {}", seen.shown());
        let read = || {
            let open = c.open_to_read(seen.node);
            let got = c.read(open, at, 1).expect("read");
            c.close(open);
            let want = seen.want.content.read(at, 1);
            assert!(want.is_none_or(|want| want == got), "{what}");
        };
        if !takes_little(c, &what, read) {
            return;
        }
    }
}
