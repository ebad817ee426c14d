//! `bench paper`: tables as text and as JSON, and what is none.

use crate::sandbox::Sandbox;
use serde_json::Value;

#[test]
fn a_table_of_the_dosfs_paper_has_the_same_figures_as_text_and_as_json() {
    let sandbox = Sandbox::empty();
    let text = sandbox.run("bench paper dosfs --table 3").ok();
    let json = sandbox.run("bench paper dosfs --table 3 --json").ok();
    let tables: Vec<Value> = serde_json::from_str(&json).unwrap();
    let [table] = &tables[..] else {
        panic!("{json}");
    };
    assert!(text.starts_with(table["title"].as_str().unwrap()), "{text}");
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let ratio = row["cells"][2]["ratio"].as_f64().unwrap();
        assert!(line.contains(&format!(" {ratio:.2}")), "{line}: {ratio}");
        let ours = row["cells"][2]["ours"].as_f64().unwrap();
        let paper = row["cells"][2]["paper"].as_f64().unwrap();
        assert!((ours / paper - ratio).abs() < 1e-9);
    }
    let both = sandbox.run("bench paper dosfs --table 2 --json").ok();
    let tables: Vec<Value> = serde_json::from_str(&both).unwrap();
    assert_eq!(tables[0]["rows"][0]["cells"][2]["paper"], 422.0);
}

#[test]
fn what_a_paper_does_not_have_is_refused() {
    let sandbox = Sandbox::empty();
    for (line, words) in [
        ("bench paper dosfs --table 2a", "--table 2a"),
        ("bench paper ffs --table 3", "--table 3"),
        ("bench paper cedar --table 1", "--table 1"),
        ("bench paper dosfs tree", "DIR is for the paper ffs"),
        ("bench paper fifs --disk hdd", "--disk is for the papers"),
        ("bench paper dosfs --table 2 --disk hdd", "3, 4, 5, 6, 7"),
        ("bench paper cedar --table 3 --disk hdd", "2, 5"),
        ("bench paper ffs tree --disk hdd", "DIR is for table 1"),
        ("bench paper dosfs --table 3 --disk drum", "drum is none of"),
    ] {
        let told = sandbox.run(line).fails(2);
        assert!(told.contains(words), "{line}: {told}");
    }
}

/// On a faster disk than the paper's, a file of 5 MB is read faster, and notes on the paper's disk are left out.
#[test]
fn a_table_on_another_disk_has_its_times_and_says_so() {
    let sandbox = Sandbox::empty();
    let reads = |line: &str| {
        let json = sandbox.run(line).ok();
        let mut tables: Vec<Value> = serde_json::from_str(&json).unwrap();
        let table = tables.swap_remove(0);
        let rate = table["rows"][0]["cells"][0]["ours"].as_f64().unwrap();
        (rate, table["title"].as_str().unwrap().to_owned(), json)
    };
    let (slow, title, _) = reads("bench paper dosfs --table 4 --json");
    assert!(!title.contains("; on "), "{title}");
    let (fast, title, json) = reads("bench paper dosfs --table 4 --disk nvme --json");
    assert!(title.ends_with("; on nvme"), "{title}");
    assert!(fast > 2.0 * slow, "{fast} {slow}");
    assert!(json.contains("another disk, nvme") && !json.contains("rotdelay"));
    // Too small for the paper's volumes.
    let told = sandbox.run("bench paper dosfs --table 4 --disk floppy");
    assert_ne!(told.code, 0);
    assert!(told.err.contains("1474560"), "{}", told.err);
}

#[test]
fn figures_are_drawn_into_the_directory_that_is_named() {
    let sandbox = Sandbox::empty();
    let line = "bench paper dosfs --table fig3 --svg drawn/here";
    assert!(sandbox.run(line).ok().contains("Figure 3"));
    let drawn = sandbox.read("drawn/here/dosfs-figure-3.svg");
    assert!(drawn.starts_with(b"<svg"));
    let told = sandbox.run("bench paper dosfs --table fig3 --svg drawn/here/dosfs-figure-3.svg/no");
    assert_ne!(told.code, 0, "{}", told.err);
}
