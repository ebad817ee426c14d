use super::*;
use volary_core::{Ctx, Fs, Layer, Name, NodeId, Result, SetAttr};

fn mem(caps: impl Fn(Caps) -> Caps) -> Fs {
    let all = MemOptions::default();
    let options = MemOptions {
        caps: caps(all.caps),
        ..all
    };
    Mem::attach(options, Time::from_secs(pair::START)).expect("an in-memory volume")
}

#[test]
fn the_model_equals_itself() {
    Diff::new("mem", || mem(|c| c)).run(0, 20);
}

#[test]
fn the_model_equals_itself_in_the_shape_of_fat() {
    let lacks = Caps::MODES
        | Caps::SYMLINKS
        | Caps::HARD_LINKS
        | Caps::DEVICES
        | Caps::HOLES
        | Caps::CASE_SENSITIVE
        | Caps::ANY_NAME;
    Diff::new("mem like FAT", move || mem(|c| c.without(lacks))).run(0, 20);
}

/// Forgets a set size now and then: only where it is 4096 or more.
struct Forgetful(Fs);

impl Layer for Forgetful {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<volary_core::Attr> {
        if set.size.is_some_and(|s| s >= 4096) {
            return self.0.getattr(cx, node);
        }
        self.0.setattr(cx, node, set)
    }
}

/// Takes a name away and says that it did not.
struct Liar(Fs);

impl Layer for Liar {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.0.rmdir(cx, dir, name)?;
        Err(volary_core::Kind::NotEmpty.into())
    }
}

fn failing(make: fn(Fs) -> Fs) -> (Vec<Op>, Failure) {
    let diff = Diff::new("broken", move || make(mem(|c| c)));
    let (ops, failure) = (0..50)
        .find_map(|seed| {
            let ops = diff.sequence(seed);
            diff.try_ops(&ops).map(|f| (ops, f))
        })
        .expect("a seed that fails");
    shrink::shrink(ops, failure, |ops| diff.try_ops(ops))
}

#[test]
fn a_size_that_is_forgotten_is_found_and_shrunk_to_two_operations() {
    let (ops, failure) = failing(|fs| std::sync::Arc::new(Forgetful(fs)));
    assert_eq!(ops.len(), 2, "{ops:?}");
    let size = match &ops[1] {
        Op::SetSize(_, size) | Op::SetSizeOpen { size, .. } => *size,
        other => panic!("{other:?}"),
    };
    assert_eq!(size, 4096, "the smallest size that fails");
    assert_eq!(failure.at, 1);
}

#[test]
fn a_wrong_error_is_found_and_shrunk_to_two_operations() {
    let (ops, _) = failing(|fs| std::sync::Arc::new(Liar(fs)));
    assert_eq!(ops.len(), 2, "{ops:?}");
    assert!(matches!(ops[..], [Op::MkDir(_), Op::RmDir(_)]), "{ops:?}");
}

#[test]
fn the_report_of_a_failure_has_each_operation_and_the_command() {
    let diff = Diff::new("mem", || mem(|c| c));
    let ops = [
        Op::MkDir(Path(vec![0])),
        Op::Stat(Path(vec![0, 2])),
        Op::Close(3),
    ];
    let failure = Failure {
        at: 1,
        words: "gave x".into(),
    };
    let report = diff.report(7, &ops, &failure);
    assert!(report.contains("mkdir(\"a\");\n"), "{report}");
    assert!(
        report.contains("stat(\"a/readme.txt\");  // here"),
        "{report}"
    );
    assert!(report.contains("close(o3)"), "{report}");
    assert!(report.contains("VOLARY_SEED=7 cargo test -p"), "{report}");
}
