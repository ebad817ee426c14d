//! An encrypted FAT volume is what the model is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary::block::MemDevice;
use volary::layers::{Crypt, CryptCost, Outside};
use volary::{Attach, BlockDevice, Fs, Make, Options, Result, Time};
use volary_testkit::diff::{Diff, Rules, Times};
use volary_testkit::{Fresh, Suite};

/// Numbers that anybody can guess, never the same.
struct Dice;

impl Outside for Dice {
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        for byte in bytes {
            let n = NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            *byte = (n ^ n >> 29).to_le_bytes()[4];
        }
        Ok(())
    }
}

fn encrypted(dev: Arc<dyn BlockDevice>) -> Fs {
    let fat = volary::attach(dev, &Attach::default()).expect("attach").fs;
    let cost = CryptCost {
        memory: 8,
        passes: 1,
        lanes: 1,
    };
    Arc::new(Crypt::new(fat, Arc::new(Dice), b"words", cost).expect("crypt"))
}

fn fresh() -> Fresh {
    let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(8 << 20));
    let how = Make {
        now: Time::from_secs(1_700_000_000),
        // Encrypted names are long, and a FAT volume's root has room for few.
        options: Options::parse("root-entries=8192"),
        ..Make::default()
    };
    let format = volary::format_of("fat16").expect("FAT");
    format.make(dev.clone(), "fat16", &how).expect("mkfs");
    let again = dev.clone();
    Fresh::new(encrypted(dev)).reattach(move || encrypted(again.clone()))
}

#[test]
fn the_suite_holds() {
    Suite::new("crypt over FAT", fresh).run();
}

#[test]
fn random_operations_do_what_they_do_on_the_model() {
    let attach = Attach::default();
    let mode = 0o777 & !attach.umask;
    let rules = Rules {
        times: Times::Files,
        owner: (attach.uid, attach.gid, mode, mode),
        ..Rules::default()
    };
    Diff::new("crypt over FAT", fresh).rules(rules).run(0, 15);
}
