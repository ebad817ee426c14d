//! The smallest sequence that still fails: delta debugging (Zeller and
//! Hildebrandt, 2002) over operations, then over what each says.

use super::op::Op;
use super::rules::Failure;

/// How many sequences are tried at most.
const TRIES: usize = 3000;

/// Shrinks `ops`, which fail with `failure`, as long as `fails` says that the
/// rest still does.
pub(super) fn shrink(
    mut ops: Vec<Op>,
    mut failure: Failure,
    fails: impl Fn(&[Op]) -> Option<Failure>,
) -> (Vec<Op>, Failure) {
    let mut tries = TRIES;
    let mut attempt = |ops: &[Op]| {
        tries = tries.checked_sub(1)?;
        fails(ops)
    };
    let cut = (failure.at + 1).min(ops.len());
    if let Some(f) = attempt(&ops[..cut]) {
        ops.truncate(cut);
        failure = f;
    }
    loop {
        let before = ops.clone();
        remove_chunks(&mut ops, &mut failure, &mut attempt);
        simplify(&mut ops, &mut failure, &mut attempt);
        if ops == before {
            return (ops, failure);
        }
    }
}

fn remove_chunks(
    ops: &mut Vec<Op>,
    failure: &mut Failure,
    attempt: &mut impl FnMut(&[Op]) -> Option<Failure>,
) {
    let mut chunk = ops.len().div_ceil(2).max(1);
    loop {
        // From the end: later operations rest on earlier ones.
        let mut end = ops.len();
        while end > 0 {
            let start = end.saturating_sub(chunk);
            let mut less = ops.clone();
            less.drain(start..end);
            if let Some(f) = attempt(&less) {
                *ops = less;
                *failure = f;
            }
            end = start.min(ops.len());
        }
        if chunk == 1 {
            return;
        }
        chunk = chunk.div_ceil(2);
    }
}

fn simplify(
    ops: &mut [Op],
    failure: &mut Failure,
    attempt: &mut impl FnMut(&[Op]) -> Option<Failure>,
) {
    for i in 0..ops.len() {
        'again: loop {
            for simpler in ops[i].simpler() {
                let old = std::mem::replace(&mut ops[i], simpler);
                if let Some(f) = attempt(ops) {
                    *failure = f;
                    continue 'again;
                }
                ops[i] = old;
            }
            break;
        }
    }
}
