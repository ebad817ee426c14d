//! FAT: recovery is `fsck -p`, then attaching.

use volary::torture::{Depth, Plan, run, volume};

fn plan() -> Plan {
    Plan {
        pairs: None,
        random: 0,
        steps: 60,
        seed: 0,
        depth: Depth::default(),
    }
}

fn torture(name: &str, plan: &Plan) {
    let volume = volume(name).unwrap();
    let tally = run(volume, plan, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{name}: {tally}");
    assert!(tally.states > 0);
}

#[test]
fn all_pairs_of_operations_on_each_kind() {
    for name in ["fat12", "fat16", "fat32"] {
        let pairs = Some((0, 1));
        torture(name, &Plan { pairs, ..plan() });
    }
}

#[test]
fn random_scripts_on_each_kind() {
    for name in ["fat12", "fat12-keeping", "fat16", "fat32", "fat32-keeping"] {
        torture(
            name,
            &Plan {
                random: 4,
                ..plan()
            },
        );
    }
}
