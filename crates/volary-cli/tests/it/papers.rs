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
    ] {
        let told = sandbox.run(line).fails(2);
        assert!(told.contains(words), "{line}: {told}");
    }
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
