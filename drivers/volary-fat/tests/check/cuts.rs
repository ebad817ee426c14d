//! Power cuts while a check mends: after any write, another check must come to
//! a sound volume, and to no less than the first would have kept.

use crate::check::corpus::cases;
use crate::check::image::Image;
use crate::check::reader::{Files, files};
use crate::check::run::{Checked, assert_kept_in, check, show};
use volary_core::CheckMode;

/// The volume after each of the writes of a check, and with each sector of it.
pub(crate) fn prefixes(before: &[u8], done: &Checked) -> Vec<Vec<u8>> {
    let mut now = before.to_vec();
    let mut all = Vec::new();
    for (at, data) in &done.writes {
        for (i, sector) in data.chunks(512).enumerate() {
            let at = at + i * 512;
            now[at..at + sector.len()].copy_from_slice(sector);
            all.push(now.clone());
        }
    }
    all
}

/// Cuts a check after each write, and checks again.
pub(crate) fn cut(before: &[u8], about: &str) {
    cut_with(before, "", about);
}

fn cut_with(before: &[u8], options: &str, about: &str) {
    let whole = check(before, CheckMode::Mend, options);
    let kept: Files = Image::new(whole.bytes.clone()).map_or_else(Files::new, |i| files(&i));
    for (i, state) in prefixes(before, &whole).into_iter().enumerate() {
        let about = format!("{about}, cut after write {i}");
        let again = check(&state, CheckMode::Mend, options);
        let report = again
            .report
            .as_ref()
            .unwrap_or_else(|e| panic!("{about}: {e}"));
        assert_eq!(report.left(), 0, "{about}: {}", show(&again.findings));
        let after = files(&Image::new(again.bytes.clone()).unwrap());
        assert_kept_in(
            &kept,
            &after,
            &again.findings,
            &format!("{about}, after {}", show(&whole.findings)),
        );
        let third = check(&again.bytes, CheckMode::Look, options);
        assert_eq!(third.codes(), [""; 0], "{about}: {}", show(&third.findings));
    }
}

#[test]
fn a_check_that_is_cut_short_can_be_done_again() {
    for (damage, kind, image) in cases() {
        let options = damage.on.kinds().1;
        cut_with(&image.bytes, options, &format!("{} on {kind}", damage.name));
    }
}
