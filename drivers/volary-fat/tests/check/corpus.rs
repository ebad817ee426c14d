//! Each kind of damage on each kind of volume.

use crate::check::base::{KINDS, base};
use crate::check::damage::{ALL, Damage, On, Preen};
use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{assert_kept, check, mend, mend_with, show};
use volary_core::{CheckMode, Severity};

/// Returns all cases: the damage, the volume's kind and the damaged volume.
pub(crate) fn cases() -> impl Iterator<Item = (&'static Damage, &'static str, Image)> {
    ALL.iter().flat_map(|damage| {
        damage.on.kinds().0.iter().map(move |kind| {
            let mut image = base(kind);
            (damage.harm)(&mut image);
            (damage, *kind, image)
        })
    })
}

#[test]
fn there_are_more_than_100_kinds_of_damage() {
    assert!(ALL.len() > 100, "{}", ALL.len());
}

#[test]
fn sound_volumes_are_called_sound() {
    for on in [On::All, On::Unix, On::Paper] {
        let (kinds, options) = on.kinds();
        for kind in kinds {
            let image = base(kind);
            let count = files(&image).len();
            assert!(count > 80, "{kind}: {:?}", files(&image).keys());
            let done = check(&image.bytes, CheckMode::Look, options);
            assert_eq!(done.codes(), [""; 0], "{kind}: {}", show(&done.findings));
            mend_with(&image.bytes, options, kind);
        }
    }
}

#[test]
fn looking_finds_it_and_writes_nothing() {
    for (damage, kind, image) in cases() {
        let about = format!("{} on {kind}", damage.name);
        let done = check(&image.bytes, CheckMode::Look, damage.on.kinds().1);
        assert!(done.report.is_ok(), "{about}: {:?}", done.report);
        assert!(done.has(damage.code), "{about}: {}", show(&done.findings));
        assert!(!done.wrote(), "{about}");
        assert!(
            done.findings
                .iter()
                .all(|f| f.severity == Severity::Note || !f.repair.is_empty()),
            "{about}"
        );
    }
}

#[test]
fn mending_mends_it_and_loses_nothing_unsaid() {
    for (damage, kind, image) in cases() {
        let about = format!("{} on {kind}", damage.name);
        let boot = Image::new(image.bytes.clone());
        let done = mend_with(&image.bytes, damage.on.kinds().1, &about);
        assert!(done.has(damage.code), "{about}: {}", show(&done.findings));
        if let Some(seen) = boot.filter(|b| b.data == image.data) {
            assert_kept(&files(&seen), &done, &about);
        }
    }
}

#[test]
fn preening_mends_what_a_crash_leaves_and_refuses_the_rest() {
    for (damage, kind, image) in cases() {
        let about = format!("{} on {kind}", damage.name);
        let options = damage.on.kinds().1;
        let done = check(&image.bytes, CheckMode::Preen, options);
        let report = done
            .report
            .as_ref()
            .unwrap_or_else(|e| panic!("{about}: {e}"));
        match damage.preen {
            Preen::Mends => {
                assert_eq!(report.left(), 0, "{about}: {}", show(&done.findings));
                let again = check(&done.bytes, CheckMode::Look, options);
                assert_eq!(again.codes(), [""; 0], "{about}");
            }
            Preen::Refuses => {
                assert!(
                    report.left() > 0 && report.mended == 0,
                    "{about}: {}",
                    show(&done.findings)
                );
                assert!(!done.wrote(), "{about}");
                assert!(done.bytes == image.bytes, "{about}");
            }
        }
    }
}

/// Some kinds of damage that can be done together. With both FATs gone nothing
/// can be mended.
fn fits(step: usize) -> impl Iterator<Item = &'static Damage> {
    ALL.iter().filter(move |d| {
        d.on == On::All
            && !["fat-choice", "dir-too-long"].contains(&d.code)
            && d.name.len() % 12 == step
    })
}

#[test]
fn mixed_damage_is_mended_too() {
    for kind in KINDS {
        for step in 0..12 {
            let sound = base(kind);
            let mut image = sound.clone();
            let mut names = Vec::new();
            for damage in fits(step) {
                let mut one = sound.clone();
                (damage.harm)(&mut one);
                // All bytes that this one changes.
                for (at, byte) in one.bytes.iter().enumerate() {
                    if *byte != sound.bytes[at] {
                        image.bytes[at] = *byte;
                    }
                }
                names.push(damage.name);
            }
            mend(&image.bytes, &format!("{names:?} on {kind}"));
        }
    }
}
