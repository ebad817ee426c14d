use crate::{Rig, memory, n};
use std::sync::{Arc, Mutex};
use volary_core::{Call, Kind, SetAttr};
use volary_layers::{Count, Fault, Trace};

#[test]
fn calls_failures_and_bytes_are_counted() {
    let count = Arc::new(Count::new(memory()));
    let rig = Rig::over(count.clone());
    let root = rig.fs.root();
    let node = rig.file(root, "a", b"12345");
    rig.read(node).unwrap();
    assert_eq!(rig.find(root, "b").unwrap_err(), Kind::NotFound);
    rig.find(root, "a").unwrap();

    let rows = count.snapshot();
    let of = |call| {
        let row = rows.iter().find(|row| row.call == call).unwrap();
        (row.calls, row.failed, row.bytes)
    };
    assert_eq!(of(Call::Create), (1, 0, 0));
    assert_eq!(of(Call::Write), (1, 0, 5));
    assert_eq!(of(Call::Read), (1, 0, 1000));
    assert_eq!(of(Call::Lookup), (2, 1, 0));
    assert_eq!(of(Call::Close), (2, 0, 0));
    assert_eq!(rows.len(), 6);
    assert_eq!(count.calls(Call::MkDir), 0);
    let table = count.to_string();
    assert_eq!(table.lines().count(), 7);
    assert!(table.contains("lookup"), "{table}");
}

#[test]
fn each_call_is_told_in_one_line_with_names_escaped() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let lines = lines.clone();
        Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()))
    };
    let failing = Arc::new(Fault::parse(memory(), "write@1:NoSpace").unwrap());
    let rig = Rig::new(Trace::new(failing, sink));
    let (root, set) = (rig.fs.root(), SetAttr::default());
    rig.find(root, "a\n\x1b[2J").unwrap_err();
    let made = rig
        .fs
        .create(&rig.cx(), root, n("b"), volary_core::Create::New, &set);
    let open = made.unwrap().1;
    rig.fs.write(&rig.cx(), open, Some(7), b"xyz").unwrap_err();
    rig.fs.close(&rig.cx(), open).unwrap();
    assert_eq!(
        *lines.lock().unwrap(),
        [
            r#"lookup node=1 name="a\n\u{1b}[2J" -> NotFound"#,
            r#"create node=1 name="b" -> ok"#,
            "write open=1 offset=7 len=3 -> NoSpace",
            "close open=1 -> ok",
        ]
    );
}
